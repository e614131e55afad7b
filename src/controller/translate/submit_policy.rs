//! `SubmitPolicies` into what the pool knows of them.

use std::sync::Arc;

use super::governing::{Read, facts};
use super::policy::problems_of;
use api::{SubmitPolicy, SubmitPolicySpec};
use model::pool::{JobDefaults, SubmitConfig, SubmitPolicyFacts};
use model::schedd;

/// What the pool knows of a `SubmitPolicy`. Where its spec cannot be used: also of the one that its status records.
pub fn submit_policy(object: &SubmitPolicy) -> SubmitPolicyFacts {
    let accepted = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
    facts(object, &object.spec, accepted, read)
}

fn read(spec: &SubmitPolicySpec) -> Read<SubmitConfig> {
    let Some(text) = &spec.config else {
        return (Ok(Arc::new(SubmitConfig { job_defaults: JobDefaults::own(), groups: None })), None);
    };
    let (config, remarks) = schedd::policy::understand(text);
    let (errors, warnings) = problems_of(&remarks);
    (config.map(Arc::new).ok_or(errors), Some(warnings))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use model::pool::{Event, Pool, Time};

    fn policy(spec: &Value, status: &Value) -> SubmitPolicyFacts {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "SubmitPolicy",
                            "metadata": {"name": "p", "uid": "u1"}, "spec": spec, "status": status});
        submit_policy(&serde_json::from_value(object).unwrap())
    }

    fn memory(pool: &Pool) -> String {
        pool.job_defaults("alice").record()["RequestMemory"].clone()
    }

    #[test]
    fn the_last_accepted_text_stays_in_force_and_events_say_what_is_wrong() {
        let mut pool = Pool::default();
        let story: Vec<_> = [
            "JOB_DEFAULT_REQUESTMEMORY = (",
            "JOB_DEFAULT_REQUESTMEMORY = 256",
            "JOB_DEFAULT_REQUESTMEMORY = 512 *",
            "JOB_DEFAULT_REQUESTMEMORY = 1024\nSUBMIT_REQUIREMENT_NAMES = A",
        ]
        .map(|text| {
            pool.apply(
                Event::SubmitPolicy(policy(&json!({"config": text}), &Value::Null)),
                Time::from_secs(1),
            );
            let told: Vec<String> = std::mem::take(&mut pool.notices)
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
}
