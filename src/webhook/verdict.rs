//! Finds what is wrong with an object. Each check is the operator's own: the functions here are those that make the
//! conditions `Accepted` and `FullyApplied`.

use std::sync::Arc;

use kube::Resource;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use api::{
    ConcurrencyLimit, DrainRequest, GroupQuota, HTCJob, Negotiator, NodePolicy, SubmitPolicy, Submitter,
};
use controller::kinds;
use model::decide::refused_groups;
use model::negotiator::groups::GroupError;
use model::pool::{Event, GoverningFacts, Pool, Problem};
use model::schedd::group_problem;

use crate::known::Known;

/// What is to be said of an object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    /// Why the object is refused. The object is accepted if there is no problem.
    pub(crate) problems: Vec<Problem>,
    /// What the object says in vain, and what it refers to that does not exist yet.
    pub(crate) warnings: Vec<Problem>,
}

/// The reasons of problems that another object ends, which may be created later or may just not be known here yet. Such
/// an object is accepted with a warning: the order in which manifests are applied must not matter.
const MAY_PASS: [&str; 4] = ["UnknownGroup", "NegotiatorNotFound", "AnotherSubmitPolicy", "NameInUse"];

impl Verdict {
    fn of(found: impl IntoIterator<Item = Problem>, warnings: impl IntoIterator<Item = Problem>) -> Self {
        let (pass, problems): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|problem| MAY_PASS.contains(&problem.reason));
        Self { problems, warnings: pass.into_iter().chain(warnings).collect() }
    }

    fn of_policy<C>(facts: GoverningFacts<C>) -> Self {
        Self::of(facts.config.err().into_iter().flatten(), facts.warnings.into_iter().flatten())
    }
}

/// Says what is wrong with an object of one of the kinds that people write. `uid` and `namespace` are those of the
/// request: an object that is being created may have none.
pub(crate) fn verdict(
    kind: &str,
    object: &DynamicObject,
    (uid, namespace): (&str, Option<&str>),
    known: &Known,
) -> Verdict {
    let judged = match kind {
        "HTCJob" => typed(object).map(|job| of_job(job, uid, namespace, known)),
        "SubmitPolicy" => typed(object).map(|policy| of_submit_policy(&policy, known)),
        "NodePolicy" => typed::<NodePolicy>(object).map(|policy| {
            let facts = kinds::node_policy::facts(&policy);
            Verdict::of(facts.config.err().into_iter().flatten(), facts.warnings.into_iter().flatten())
        }),
        "Negotiator" => {
            typed::<Negotiator>(object).map(|object| Verdict::of_policy(kinds::negotiator::facts(&object)))
        }
        "GroupQuota" => typed(object).map(|quota| of_group(&quota, known)),
        "ConcurrencyLimit" => typed(object).map(|limit| of_limit(&limit, known)),
        "Submitter" => typed(object).map(|submitter| of_submitter(&submitter, known)),
        "DrainRequest" => typed::<DrainRequest>(object).map(|drain| {
            Verdict::of(kinds::drain_request::facts(&drain).spec.err().into_iter().flatten(), [])
        }),
        _ => Ok(Verdict::default()),
    };
    judged.unwrap_or_else(|problem| Verdict::of([problem], []))
}

fn typed<K: DeserializeOwned>(object: &DynamicObject) -> Result<K, Problem> {
    serde_json::to_value(object).and_then(serde_json::from_value).map_err(|error| Problem {
        reason: "Unreadable",
        field: String::new(),
        message: format!("the object cannot be read: {error}"),
    })
}

fn of_job(mut job: HTCJob, uid: &str, namespace: Option<&str>, known: &Known) -> Verdict {
    let metadata = job.meta_mut();
    metadata.uid.get_or_insert_with(|| uid.to_owned());
    if metadata.namespace.is_none() {
        metadata.namespace = namespace.map(str::to_owned);
    }
    let Some(facts) = kinds::job::facts(&job) else { return Verdict::default() };
    let uid = facts.key.uid.clone();
    let pool = known.after(Event::Job(facts));
    let Some(job) = pool.jobs().get(&uid) else { return Verdict::default() };
    let group = group_problem(&pool, job).filter(|_| known.is_complete());
    Verdict::of(job.problems.iter().cloned().chain(group), job.warnings.iter().cloned())
}

fn of_submit_policy(policy: &SubmitPolicy, known: &Known) -> Verdict {
    let facts = kinds::submit_policy::facts(policy);
    let name: Arc<str> = facts.name.clone();
    let pool = known.after(Event::SubmitPolicy(facts.clone()));
    let another = |pool: &Pool, name| kinds::submit_policy::another(pool.submit_policies(), name);
    let displaced = known.before().submit_policies().keys().filter(|other| **other != name);
    let displaced = displaced.filter(|other| another(known.before(), other).is_none());
    let told = displaced.filter_map(|other| {
        let problem = another(&pool, other)?;
        Some(Problem {
            message: format!("SubmitPolicy {other} is no longer in force: {}", problem.message),
            ..problem
        })
    });
    let mut verdict = Verdict::of_policy(facts);
    verdict.warnings.extend(another(&pool, &name).into_iter().chain(told));
    verdict
}

/// Judges the tree of groups as it would be: what is refused there and is not refused now is this object's doing.
fn of_group(quota: &GroupQuota, known: &Known) -> Verdict {
    let facts = kinds::group_quota::facts(quota);
    let own = facts.object.clone();
    let unused = kinds::group_quota::unused_share(&facts);
    let (before, after) = (refused_groups(known.before()), refused_groups(&known.after(Event::Group(facts))));
    let mut verdict = Verdict::of([], unused);
    for (object, error) in after {
        if object != own && before.get(&object) == Some(&error) {
            continue;
        }
        let message = if object == own {
            error.to_string()
        } else {
            format!("the GroupQuota {object} would not count: {error}")
        };
        let problem = Problem { reason: "GroupNotAccepted", field: "spec.group".to_owned(), message };
        match error {
            // The parent may be created later.
            GroupError::MissingParent { .. } if known.is_complete() => verdict.warnings.push(problem),
            GroupError::MissingParent { .. } => {}
            _ => verdict.problems.push(problem),
        }
    }
    verdict
}

fn of_limit(limit: &ConcurrencyLimit, known: &Known) -> Verdict {
    let facts = kinds::concurrency_limit::facts(limit);
    let shared = kinds::concurrency_limit::shared(known.before(), &facts);
    Verdict::of(facts.problems.into_iter().chain(shared), [])
}

fn of_submitter(submitter: &Submitter, known: &Known) -> Verdict {
    let Some(facts) = kinds::submitter::facts(submitter).filter(|_| known.is_complete()) else {
        return Verdict::default();
    };
    let name = facts.name.clone();
    let pool = known.after(Event::Submitter(facts));
    Verdict::of(pool.submitters().get(&name).into_iter().flat_map(|submitter| submitter.problems.clone()), [])
}
