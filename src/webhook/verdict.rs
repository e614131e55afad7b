//! Finds what is wrong with an object. Each check is the operator's own: the functions here are those that make the
//! conditions `Accepted` and `FullyApplied`.

use std::sync::Arc;

use kube::Resource;
use kube::api::DynamicObject;
use kube::core::admission::AdmissionRequest;
use serde::de::DeserializeOwned;

use api::{
    ConcurrencyLimit, DrainRequest, GroupQuota, HTCJob, Negotiator, NodePolicy, SubmitPolicy, Submitter,
};
use controller::kinds;
use model::decide::{excesses, refusal, refused_groups, shares_all};
use model::negotiator::groups::GroupError;
use model::pool::{Event, GoverningFacts, PolicyName, Pool, Problem, is_namespace};
use model::schedd::group_problem;
use model::startd::shadowed;

use crate::known::OtherObjects;
use crate::sealing::requester;

/// The problems and warnings that a review tells of an object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    /// Why the object is refused. The object is accepted if there is no problem.
    pub(crate) problems: Vec<Problem>,
    /// Parts of the object that have no effect, and objects to which it refers and that do not exist yet.
    pub(crate) warnings: Vec<Problem>,
}

/// The reasons of problems that a change of another object can end: the other object may be created or deleted later,
/// or may just not be known here yet. An object with such a problem is accepted with a warning: the order in which
/// manifests are applied must not matter.
const MAY_PASS: [&str; 4] = ["UnknownGroup", "NegotiatorNotFound", "AnotherSubmitPolicy", "NameInUse"];

impl Verdict {
    fn of(found: impl IntoIterator<Item = Problem>, warnings: impl IntoIterator<Item = Problem>) -> Self {
        let (pass, problems): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|problem| MAY_PASS.contains(&problem.reason));
        Self { problems, warnings: pass.into_iter().chain(warnings).collect() }
    }

    fn of_policy<C, S>(facts: GoverningFacts<C, S>) -> Self {
        Self::of(facts.config.err().into_iter().flatten(), facts.warnings.into_iter().flatten())
    }
}

/// The kinds that people write, which the webhook judges.
pub const JUDGED: [&str; 8] = [
    "HTCJob",
    "SubmitPolicy",
    "NodePolicy",
    "Negotiator",
    "GroupQuota",
    "ConcurrencyLimit",
    "Submitter",
    "DrainRequest",
];

/// Says what is wrong with the object of a request, if the object is of one of [`JUDGED`].
pub(crate) fn verdict(
    request: &AdmissionRequest<DynamicObject>,
    object: &DynamicObject,
    known: &OtherObjects,
) -> Verdict {
    let judged = match request.kind.kind.as_str() {
        "HTCJob" => typed(object).map(|job| of_job(job, request, known)),
        "SubmitPolicy" => typed(object).map(|policy| of_submit_policy(&policy, known)),
        "NodePolicy" => typed(object).map(|policy| of_node_policy(&policy, known)),
        "Negotiator" => typed(object).map(|negotiator| of_negotiator(&negotiator, known)),
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

/// Judges a job as the operator would, with the policy in force: transforms, requirements and warnings act on what the job would be.
fn of_job(mut job: HTCJob, request: &AdmissionRequest<DynamicObject>, known: &OtherObjects) -> Verdict {
    let metadata = job.meta_mut();
    // An object that is being created may have no uid yet.
    metadata.uid.get_or_insert_with(|| request.uid.clone());
    if metadata.namespace.is_none() {
        metadata.namespace.clone_from(&request.namespace);
    }
    let rule = known.before().owner_rule();
    let requester = requester(request, &rule);
    let mut before = request.old_object.as_ref().and_then(|old| kinds::job::facts(&typed(old).ok()?));
    if let Some(before) = &mut before {
        // Some versions of the API server raise the generation only after admission.
        job.metadata.generation = Some(before.generation.saturating_add(1));
    }
    let Some(mut facts) = kinds::job::facts(&job) else { return Verdict::default() };
    // An edit may come before the operator has recorded the owner: the editor is then taken for the creator.
    before.as_mut().unwrap_or(&mut facts).requester = Ok(requester.clone());
    let uid = facts.key.uid.clone();
    let editor = rule.decide(Ok(&requester), &facts.key.namespace);
    let owner = before.as_ref().and_then(|before| before.owner.owner().cloned());
    let pool = known.after(before.map(Event::Job).into_iter().chain([Event::Job(facts)]));
    let Some(job) = pool.jobs().get(&uid) else { return Verdict::default() };
    let group = group_problem(&pool, job).filter(|_| known.is_complete());
    let edit = edit_of_another(owner.as_deref(), editor.as_deref(), request, known);
    let policy = job.told.policy.iter();
    Verdict::of(
        job.problems.iter().cloned().chain(group).chain(edit),
        job.warnings.iter().chain(policy).cloned(),
    )
}

/// The problem that somebody edits the spec of a job that is another's. Administrators of the cluster may, and the schedd's
/// QUEUE_SUPER_USERS. A job that is charged to its namespace is edited by whoever may edit jobs there.
fn edit_of_another(
    owner: Option<&str>,
    editor: Option<&str>,
    request: &AdmissionRequest<DynamicObject>,
    known: &OtherObjects,
) -> Option<Problem> {
    let (owner, editor) = (owner.filter(|owner| !is_namespace(owner))?, editor?);
    let is_admin = request.user_info.groups.iter().flatten().any(|group| group == "system:masters");
    let is_super = known.before().submit_config().is_some_and(|config| config.rules.is_superuser(editor));
    let user = request.user_info.username.as_deref().unwrap_or_default();
    (editor != owner && !is_admin && !is_super).then(|| Problem {
        reason: "NotTheOwner",
        field: "spec".to_owned(),
        message: format!(
            "the job is {owner}'s, and {user} may not edit its spec; ask {owner}, or submit a job of your own"
        ),
    })
}

/// Judges a NodePolicy, and warns where it leaves a policy no node, whatever labels nodes have. Policies that share only some nodes say
/// so in their conditions: the webhook knows no nodes.
fn of_node_policy(policy: &NodePolicy, known: &OtherObjects) -> Verdict {
    let facts = kinds::node_policy::facts(policy);
    let (name, after) = (PolicyName::from(&*facts.name), known.after([Event::Policy(facts.clone())]));
    let mut verdict = Verdict::of_policy(facts);
    let others = after.policies().keys().filter(|other| **other != name);
    verdict.warnings.extend(shadowed(after.policies(), &name));
    verdict.warnings.extend(others.filter_map(|other| {
        let problem = shadowed(after.policies(), other)?;
        let is_new = shadowed(known.before().policies(), other).as_ref() != Some(&problem);
        is_new.then(|| of_another("NodePolicy", other.as_str(), &problem))
    }));
    verdict
}

/// Judges a Negotiator, and warns where it shares all slots of a negotiator, whatever slots there are. Negotiators that share only some
/// slots say so in their conditions.
fn of_negotiator(negotiator: &Negotiator, known: &OtherObjects) -> Verdict {
    let facts = kinds::negotiator::facts(negotiator);
    let (name, after) = (facts.name.clone(), known.after([Event::Negotiator(facts.clone())]));
    let mut verdict = Verdict::of_policy(facts);
    let others = after.negotiators().keys().filter(|other| **other != name);
    verdict.warnings.extend(shares_all(&after, &name));
    verdict.warnings.extend(others.filter_map(|other| {
        let problem = shares_all(&after, other)?;
        let is_new = shares_all(known.before(), other).as_ref() != Some(&problem);
        is_new.then(|| of_another("Negotiator", other, &problem))
    }));
    verdict
}

/// A problem of an object other than the one that is judged.
fn of_another(kind: &str, name: &str, problem: &Problem) -> Problem {
    Problem { field: format!("{kind} {name}: {}", problem.field), ..problem.clone() }
}

fn of_submit_policy(policy: &SubmitPolicy, known: &OtherObjects) -> Verdict {
    let facts = kinds::submit_policy::facts(policy);
    let name: Arc<str> = facts.name.clone();
    let pool = known.after([Event::SubmitPolicy(facts.clone())]);
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

/// Judges the tree of groups as it would be with this object. If the tree refuses another group then, and does not
/// refuse that group in the same way now, the refusal is this object's doing.
fn of_group(quota: &GroupQuota, known: &OtherObjects) -> Verdict {
    let facts = kinds::group_quota::facts(quota);
    let own = facts.object.clone();
    let unused = kinds::group_quota::unused_share(&facts);
    let pool = known.after([Event::Group(facts)]);
    let (before, after) = (refused_groups(known.before()), refused_groups(&pool));
    let mut verdict = Verdict::of([], unused.into_iter().chain(new_excesses(known, &pool)));
    for (object, error) in after {
        if object != own && before.get(&object) == Some(&error) {
            continue;
        }
        let message = if object == own {
            refusal(&pool, &object, &error)
        } else {
            format!("the GroupQuota {object} would not count: {}", refusal(&pool, &object, &error))
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

/// The sums of quotas that exceed what there is, and did not before.
fn new_excesses(known: &OtherObjects, after: &Pool) -> Vec<Problem> {
    let before: Vec<String> = excesses(known.before()).iter().map(|(_, excess)| excess.to_string()).collect();
    let new = excesses(after).into_iter().map(|(_, excess)| (excess.quota.is_some(), excess.to_string()));
    let new = new.filter(|(_, text)| !before.contains(text));
    new.map(|(is_static, text)| Problem {
        reason: "QuotasExceeded",
        field: if is_static { "spec.quota" } else { "spec.dynamicQuota" }.to_owned(),
        message: format!("{text}; all of them are scaled down"),
    })
    .collect()
}

fn of_limit(limit: &ConcurrencyLimit, known: &OtherObjects) -> Verdict {
    let facts = kinds::concurrency_limit::facts(limit);
    let shared = kinds::concurrency_limit::shared(known.before(), &facts);
    Verdict::of(facts.problems.into_iter().chain(shared), [])
}

fn of_submitter(submitter: &Submitter, known: &OtherObjects) -> Verdict {
    let Some(facts) = kinds::submitter::facts(submitter) else { return Verdict::default() };
    if !known.is_complete() {
        return Verdict::of(facts.misnamed, []);
    }
    let name = facts.name.clone();
    let pool = known.after([Event::Submitter(facts)]);
    Verdict::of(pool.submitters().get(&name).into_iter().flat_map(|submitter| submitter.problems.clone()), [])
}
