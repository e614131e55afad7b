//! What the status of objects says that govern the pool: `SubmitPolicy`, of which one does, and Negotiator.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::{Says, condition, of_policy};
use super::status::size;
use super::waiting;
use crate::translate::kube_time;
use api::{CycleStatistics, NegotiatorStatus, SubmitPolicyStatus, condition as types};
use model::decide::overlap_message;
use model::pool::{Governing, NegotiatorConfig, NegotiatorId, Pool, Problem, SubmitConfig, Time};

/// The status of a `SubmitPolicy`.
pub(super) fn submit_policy(
    pool: &Pool,
    name: &Arc<str>,
    policy: &Governing<SubmitConfig>,
    old: &[Condition],
    now: Time,
) -> SubmitPolicyStatus {
    let another = another(&pool.submit_policies, name, "AnotherSubmitPolicy", "SubmitPolicy");
    SubmitPolicyStatus {
        observed_generation: Some(policy.generation),
        accepted_spec: policy.accepted.as_deref().map(str::to_owned),
        conditions: conditions(policy, another, old, now),
    }
}

/// The status of a Negotiator.
pub(super) fn negotiator(
    pool: &Pool,
    name: &Arc<str>,
    object: &Governing<NegotiatorConfig>,
    old: &[Condition],
    now: Time,
) -> NegotiatorStatus {
    let id = NegotiatorId::Named(name.clone());
    let turn = pool.schedule.turn(&id);
    let several = pool.negotiators.len() > 1;
    NegotiatorStatus {
        observed_generation: Some(object.generation),
        accepted_spec: object.accepted.as_deref().map(str::to_owned),
        cycles: size(turn.cycles),
        last_cycle: turn.last.map(|cycle| CycleStatistics {
            start_time: Some(kube_time(cycle.started)),
            duration_millis: cycle.ended.since(cycle.started).as_millis().try_into().unwrap_or(i64::MAX),
            matches: size(cycle.matches),
            rejects: size(cycle.rejects),
            submitters: size(cycle.submitters),
            slots: size(cycle.slots),
            idle_procs: size(cycle.idle),
            pies: size(cycle.pies),
            rejections: cycle.rejections.reasons.iter().map(waiting::rejection).collect(),
            other_rejected_procs: size(cycle.rejections.other_procs),
        }),
        uncovered_slots: several.then(|| size(pool.sharing.uncovered.count)),
        conditions: {
            let problems = (object.problems.as_slice(), object.meanwhile(pool.others_work(name)));
            let own = of_policy(old, problems, object.warnings.as_deref(), object.generation, now);
            let shared = several.then(|| condition(old, overlaps(pool, &id), object.generation, now));
            own.into_iter().chain(shared).collect()
        },
    }
}

/// `Overlaps`: whether a negotiator's slots are within another's constraint, too.
fn overlaps(pool: &Pool, id: &NegotiatorId) -> Says<'static> {
    let message = overlap_message(id, &pool.sharing);
    let (status, reason) =
        (Some(message.is_some()), if message.is_some() { "SlotsShared" } else { "NoneShared" });
    let none = || "no slot is within the slotConstraint of this Negotiator and another's".to_owned();
    Says { type_: types::OVERLAPS, status, reason, message: message.unwrap_or_else(none) }
}

/// Of several the first by name counts, and the others say so.
fn another<C>(
    all: &BTreeMap<Arc<str>, Governing<C>>,
    name: &Arc<str>,
    reason: &'static str,
    called: &str,
) -> Option<Problem> {
    let first = all.keys().next().filter(|first| *first != name)?;
    let message = format!("the {called} {first} is in force, the first by name; delete one of the two");
    Some(Problem { reason, field: "metadata.name".to_owned(), message })
}

fn conditions<C>(
    object: &Governing<C>,
    another: Option<Problem>,
    old: &[Condition],
    now: Time,
) -> Vec<Condition> {
    let Some(another) = another else {
        let problems = (object.problems.as_slice(), object.meanwhile(false));
        return of_policy(old, problems, object.warnings.as_deref(), object.generation, now);
    };
    let problems = [object.problems.clone(), vec![another]].concat();
    of_policy(old, (&problems, ""), None, object.generation, now)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::render::{Rendered, render};
    use crate::translate;
    use model::pool::{Claim, Document, Event, JobKey, NegotiatorId, Pool, SlotTally, SubmitterName, Time};

    const NOW: i64 = 1_700_000_000;

    fn pool(specs: &[(&str, Value)]) -> Pool {
        let mut pool = Pool::default();
        for (name, spec) in specs {
            see(&mut pool, name, spec);
        }
        pool.apply(Event::Synced, Time::from_secs(NOW));
        pool
    }

    fn see(pool: &mut Pool, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
                            "metadata": {"name": name, "uid": name}, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        pool.apply(Event::Negotiator(translate::negotiator(&object)), Time::from_secs(NOW));
    }

    fn status(pool: &Pool, document: &Document) -> Value {
        match render(pool, document, &Value::Null, Time::from_secs(NOW)) {
            Rendered::Status(status) | Rendered::Object { status, .. } => status,
            other => panic!("{other:?}"),
        }
    }

    fn conditions(pool: &Pool, name: &str) -> Vec<String> {
        let status = status(pool, &Document::Negotiator(name.into()));
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        let shown =
            |one: &Value| ["type", "status", "reason", "message"].map(|field| text(one, field)).join(" ");
        status["conditions"].as_array().unwrap().iter().map(shown).collect()
    }

    #[test]
    fn one_negotiator_says_nothing_of_others() {
        let pool = pool(&[("default", json!({"slotConstraint": "Cpus > 1"}))]);
        assert_eq!(conditions(&pool, "default"), ["Accepted True Accepted the spec is in force"]);
        assert_eq!(status(&pool, &Document::Negotiator("default".into())).get("uncoveredSlots"), None);
    }

    #[test]
    fn several_say_what_they_share_and_who_is_wrong() {
        let mut pool = pool(&[
            ("cpu", json!({"slotConstraint": "Cpus > 1"})),
            ("gpu", json!({"slotConstraint": "TotalGPUs > 0"})),
            ("new", json!({"slotConstraint": "Cpus >"})),
        ]);
        let [cpu, gpu] = ["cpu", "gpu"].map(|name| NegotiatorId::from(Some(name)));
        let example = model::pool::SlotName::parse("slot1@n1").ok();
        pool.sharing.overlaps.insert((cpu, gpu), SlotTally { count: 2, example });
        pool.sharing.uncovered.count = 3;
        insta::assert_yaml_snapshot!(["cpu", "gpu", "new"].map(|name| conditions(&pool, name)));
        assert_eq!(status(&pool, &Document::Negotiator("new".into()))["uncoveredSlots"], 3);
    }

    /// What a status says of accounts is all that a new leader knows of them.
    #[test]
    fn accounts_are_read_as_they_were_written() {
        let mut pool = pool(&[]);
        let alice = SubmitterName::from("alice");
        let account = |pool: &mut Pool, name: Option<&str>, weight| {
            let now = Time::from_secs(NOW);
            let accounts = &mut pool.submitter_mut(&"alice".into(), now).accounts;
            accounts.of_mut(&NegotiatorId::from(name), now).charge(weight, NOW * 1000, 3600.0);
        };
        let written = |pool: &Pool| -> api::Submitter {
            let status = status(pool, &Document::Submitter("alice".into()));
            let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter",
                                "metadata": {"name": "alice"}, "spec": {}, "status": status});
            serde_json::from_value(object).unwrap()
        };
        account(&mut pool, None, 2.0);
        let alone = written(&pool);
        let read = translate::submitter(&alone).unwrap().accounts;
        assert_eq!(read, pool.submitters[&alice].accounts);
        let before = alone.status.unwrap();
        assert_eq!(
            (before.negotiator, before.accounts.len(), before.weighted_resources_used),
            (None, 0, 2.0)
        );

        let mut pool = self::pool(&[("cpu", json!({})), ("gpu", json!({"defaultPriorityFactor": 10.0}))]);
        account(&mut pool, Some("cpu"), 3.0);
        account(&mut pool, Some("gpu"), 5.0);
        let several = written(&pool);
        let read = translate::submitter(&several).unwrap().accounts;
        assert_eq!(read, pool.submitters[&alice].accounts);
        let status = several.status.unwrap();
        assert_eq!((status.negotiator.as_deref(), status.weighted_resources_used), (Some("cpu"), 3.0));
        let gpu = &status.accounts["gpu"];
        assert_eq!(
            (gpu.weighted_resources_used, gpu.effective_priority, gpu.priority_factor),
            (5.0, 5.0, 10.0)
        );
    }

    #[test]
    fn a_claim_is_read_with_its_negotiator() {
        for negotiator in [None, Some("gpu")] {
            let claim = Claim {
                id: "slot1_1@n1#0#1".into(),
                submitter: "alice".into(),
                group: None,
                negotiator: negotiator.into(),
                regrouped: false,
                weight: 2.0,
                limits: model::pool::limits::Wants::default(),
                since: Time::from_secs(0),
                job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
                cluster: 12,
                proc: 3,
            };
            let name = model::pool::SlotName::parse("slot1_1@n1").unwrap();
            let object = crate::render::slot(&name, &model::pool::Resources::default(), &claim);
            assert_eq!(object.spec.claim.as_ref().unwrap().negotiator.as_deref(), negotiator);
            assert_eq!(translate::slot(&object).unwrap().claim, Some(claim));
        }
    }
}
