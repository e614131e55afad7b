//! SubmitPolicies, of which one is in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::conditions::of_policy;
use super::governing::{self, Read, problems_of};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use api::{JobOwner, SubmitPolicy, SubmitPolicySpec, SubmitPolicyStatus};
use classad::Maps;
use model::pool::{
    Document, Event, Fallback, Governing, OwnerRule, OwnerSource, Pool, Problem, SubmitConfig,
    SubmitPolicyFacts, Time,
};
use model::schedd;

impl Custom for SubmitPolicy {
    type Kept = ();
    const KIND: Kind = Kind::of(&("SubmitPolicy", "submitpolicies"));
    const STAGE: Stage = Stage::Policies;

    fn keep(_: &Self) {}

    fn there(policy: Self, (): &()) -> Vec<News> {
        told(Event::SubmitPolicy(facts(&policy)))
    }

    fn document(policy: &Self, (): &()) -> Option<Document> {
        Some(Document::SubmitPolicy(policy.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::SubmitPolicyGone(names.name.as_str().into()))
    }
}

impl Shown for SubmitPolicy {
    type Subject = Arc<str>;

    fn subject(document: &Document) -> Option<&Arc<str>> {
        match document {
            Document::SubmitPolicy(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &Arc<str>) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.to_string()))
    }

    fn render(pool: &Pool, name: &Arc<str>, old: &[Condition], now: Time) -> Rendered {
        let policy = pool.submit_policies().get(name);
        policy.map_or(Rendered::Nothing, |policy| Rendered::status(&status(pool, name, policy, old, now)))
    }
}

/// The pool's facts of a `SubmitPolicy`. If the spec cannot be used, the facts include the spec that the status records
/// as accepted.
pub fn facts(object: &SubmitPolicy) -> SubmitPolicyFacts {
    let accepted = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
    governing::facts(object, &object.spec, accepted, read)
}

fn read(spec: &SubmitPolicySpec) -> Read<SubmitConfig> {
    let (config, remarks) = match &spec.config {
        Some(text) => schedd::policy::understand(text),
        None => (Some(SubmitConfig::default()), Vec::new()),
    };
    let (mut errors, warnings) = problems_of(&remarks);
    let warnings = spec.config.as_ref().map(|_| warnings);
    let Some(mut config) = config else {
        return Read { selection: (), config: Err(errors), warnings };
    };
    match spec.owner.as_ref().map(|owner| owner_rule(owner, config.rules.maps())) {
        None => {}
        Some(Ok(rule)) => config.owner = rule,
        Some(Err(problem)) => errors.push(problem),
    }
    let config = if errors.is_empty() { Ok(Arc::new(config)) } else { Err(errors) };
    Read { selection: (), config, warnings }
}

fn owner_rule(owner: &JobOwner, maps: &Maps) -> Result<OwnerRule, Problem> {
    let problem = |field: &str, message: String| Problem {
        reason: "InvalidOwner",
        field: format!("spec.owner.{field}"),
        message,
    };
    let source = match (owner.from, &owner.group) {
        (api::OwnerSource::Namespace, None) => OwnerSource::Namespace,
        (api::OwnerSource::User, None) => OwnerSource::User,
        (api::OwnerSource::Group, Some(pattern)) => OwnerSource::Group(pattern.as_str().into()),
        (api::OwnerSource::Group, None) => {
            return Err(problem(
                "group",
                "is missing: give a pattern for the groups that name owners, such as owner:*".to_owned(),
            ));
        }
        (_, Some(_)) => {
            return Err(problem("group", "has a meaning with from: Group alone; leave it out".to_owned()));
        }
    };
    let map = match &owner.map {
        Some(map) if !maps.has(map) => {
            let message = format!(
                "the config has no user map {map}; add it to SCHEDD_CLASSAD_USER_MAP_NAMES, with its lines in CLASSAD_USER_MAPDATA_{map}"
            );
            return Err(problem("map", message));
        }
        map => map.as_deref().map(|map| (map.into(), maps.clone())),
    };
    Ok(OwnerRule::new(source, map))
}

/// The status of a `SubmitPolicy`.
fn status(
    pool: &Pool,
    name: &Arc<str>,
    policy: &Governing<SubmitConfig>,
    old: &[Condition],
    now: Time,
) -> SubmitPolicyStatus {
    let another = another(pool.submit_policies(), name);
    SubmitPolicyStatus {
        observed_generation: Some(policy.generation),
        accepted_spec: policy.accepted.as_deref().map(str::to_owned),
        conditions: conditions(policy, another, old, now),
    }
}

/// The problem that another SubmitPolicy is in force. If there are several, the first by name is.
pub fn another(all: &BTreeMap<Arc<str>, Governing<SubmitConfig>>, name: &Arc<str>) -> Option<Problem> {
    let first = all.keys().next().filter(|first| *first != name)?;
    let message = format!("the SubmitPolicy {first} is in force, the first by name; delete one of the two");
    Some(Problem { reason: "AnotherSubmitPolicy", field: "metadata.name".to_owned(), message })
}

fn conditions(
    object: &Governing<SubmitConfig>,
    another: Option<Problem>,
    old: &[Condition],
    now: Time,
) -> Vec<Condition> {
    let Some(another) = another else {
        let problems = (object.problems.as_slice(), object.meanwhile(Fallback::Defaults));
        return of_policy(old, problems, object.warnings.as_deref(), object.generation, now);
    };
    let problems = [object.problems.clone(), vec![another]].concat();
    of_policy(old, (&problems, ""), None, object.generation, now)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(spec: &Value, status: &Value) -> SubmitPolicyFacts {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "SubmitPolicy",
                            "metadata": {"name": "p", "uid": "u1"}, "spec": spec, "status": status});
        facts(&serde_json::from_value(object).unwrap())
    }

    fn memory(pool: &Pool) -> String {
        pool.job_defaults().record()["RequestMemory"].clone()
    }

    #[test]
    fn the_last_accepted_text_stays_in_force_and_events_say_what_is_wrong() {
        let mut pool = Pool::default();
        let story: Vec<_> = [
            "JOB_DEFAULT_REQUESTMEMORY = (",
            "JOB_DEFAULT_REQUESTMEMORY = 256",
            "JOB_DEFAULT_REQUESTMEMORY = 512 *",
            "JOB_DEFAULT_REQUESTMEMORY = 1024\nMAX_JOBS_PER_SUBMISSION = 5",
        ]
        .map(|text| {
            pool.apply(
                Event::SubmitPolicy(policy(&json!({"config": text}), &Value::Null)),
                Time::from_secs(1),
            );
            let told: Vec<String> = pool
                .take_notices()
                .into_iter()
                .map(|notice| format!("{} {}", notice.reason, notice.note))
                .collect();
            (memory(&pool), told)
        })
        .into();
        insta::assert_yaml_snapshot!(story);
    }

    #[test]
    fn a_new_leader_knows_the_accepted_spec_by_the_record() {
        let bad = json!({"config": "JOB_DEFAULT_REQUESTMEMORY = ("});
        for (record, in_force) in [
            (json!({"config": "JOB_DEFAULT_REQUESTMEMORY = 256"}).to_string(), "256"),
            (bad.to_string(), "128"),
            ("no JSON".to_owned(), "128"),
        ] {
            let mut pool = Pool::default();
            let facts = policy(&bad, &json!({"acceptedSpec": record}));
            pool.apply(Event::SubmitPolicy(facts), Time::from_secs(1));
            assert_eq!(memory(&pool), in_force);
        }
    }

    #[test]
    fn without_a_text_or_without_a_policy_htcondors_defaults_hold() {
        let mut pool = Pool::default();
        assert_eq!(memory(&pool), "128");
        pool.apply(Event::SubmitPolicy(policy(&json!({}), &Value::Null)), Time::from_secs(1));
        assert_eq!(memory(&pool), "128");
        pool.apply(Event::SubmitPolicyGone("p".into()), Time::from_secs(1));
        assert_eq!(memory(&pool), "128");
    }

    /// The example of the page about admission.
    #[test]
    fn a_map_names_the_owner_of_a_controllers_account() {
        use model::pool::Requester;
        let text = "SCHEDD_CLASSAD_USER_MAP_NAMES = People\nCLASSAD_USER_MAPDATA_People @=end\n\
                    * system:serviceaccount:nightly:runner nightly\n* /^([a-z]+)$/ \\1\n@end\n";
        let facts =
            policy(&json!({"owner": {"from": "User", "map": "People"}, "config": text}), &Value::Null);
        let rule = &facts.config.unwrap().owner;
        for (user, owner) in [
            ("alice", "alice"),
            ("system:serviceaccount:nightly:runner", "nightly"),
            ("system:serviceaccount:nightly:other", "namespace:lab"),
        ] {
            let requester = Requester { user: user.into(), groups: Vec::new() };
            assert_eq!(rule.decide(Ok(&requester), "lab").as_deref(), Some(owner), "{user}");
        }
    }
}
