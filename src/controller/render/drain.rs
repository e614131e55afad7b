//! How far a `DrainRequest` has come.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::{Says, accepted, condition};
use crate::translate::kube_time;
use api::{DrainRequestStatus, condition as types};
use model::pool::{Drain, DrainPhase, Pool, Time};

/// The status of a drain.
pub(super) fn drain(pool: &Pool, drain: &Drain, old: &[Condition], now: Time) -> DrainRequestStatus {
    let machine = drain.spec.as_ref().and_then(|spec| pool.machines.get(&spec.machine));
    let under_way = matches!(drain.phase, DrainPhase::Draining { .. });
    let claims = machine.filter(|_| under_way).map_or(0, |machine| machine.claimed_slots().count());
    let (reason, message) = match &drain.phase {
        DrainPhase::Waiting(why) => (why.reason, why.message.clone()),
        DrainPhase::Refused(why) => ("Refused", why.message.clone()),
        DrainPhase::Draining { .. } => {
            ("Draining", "jobs are leaving the node; see status.claims for how many are left".to_owned())
        }
        DrainPhase::Drained { .. } => {
            ("Drained", "all slots of the node are drained, until this DrainRequest is deleted".to_owned())
        }
        DrainPhase::Resumed { .. } => {
            ("Resumed", "all slots of the node were drained, and take jobs again".to_owned())
        }
    };
    let done = matches!(drain.phase, DrainPhase::Drained { .. } | DrainPhase::Resumed { .. });
    let says = Says { type_: types::DRAINED, status: Some(done), reason, message };
    DrainRequestStatus {
        observed_generation: Some(drain.generation),
        start_time: drain.phase.began().map(kube_time),
        completion_time: drain.phase.completed().map(kube_time),
        claims: i64::try_from(claims).unwrap_or(i64::MAX),
        badput_cpu_seconds: drain.cost.badput,
        unclaimed_cpu_seconds: drain.cost.unclaimed,
        conditions: vec![
            accepted(old, &drain.problems, drain.generation, now),
            condition(old, says, drain.generation, now),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::{
        Claim, DrainCost, DrainFacts, DrainSchedule, DrainSpec, Event, JobKey, MachineFacts, Resources,
        SlotFacts, SlotName,
    };

    /// A pool that knows of a drain of a machine on which so many claims are.
    fn draining(claims: u32, phase: DrainPhase) -> Pool {
        let (mut pool, now) = (Pool::default(), Time::from_secs(1000));
        pool.apply(Event::Machine(MachineFacts::of_nothing("n1".into())), now);
        let spec = DrainSpec {
            machine: "n1".into(),
            schedule: DrainSchedule::Graceful,
            resume: true,
            check: None,
            start: None,
            reason: None,
        };
        let cost = DrainCost { badput: 70, unclaimed: 90 };
        let drain = DrainFacts {
            name: "d".into(),
            generation: 3,
            created: now,
            spec: Ok(spec.into()),
            recorded: Some(phase),
            cost,
        };
        pool.apply(Event::Drain(drain), now);
        for id in 1..=claims {
            let name = SlotName { machine: "n1".into(), slot: 1, dynamic: Some(id) };
            let claim = Claim {
                id: format!("{name}#1#{id}").into(),
                submitter: "alice".into(),
                group: None,
                negotiator: model::pool::NegotiatorId::Unnamed,
                regrouped: false,
                weight: 1.0,
                limits: model::pool::limits::Wants::default(),
                since: now,
                job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
                cluster: 1,
                proc: id,
            };
            let resources = Resources { cpus: 1, ..Resources::default() };
            pool.apply(Event::Slot(SlotFacts { name, resources, claim: Some(claim), recorded: None }), now);
        }
        pool
    }

    #[test]
    fn a_status_tells_the_claims_that_are_left_and_what_the_drain_has_cost() {
        let (since, at) = (Time::from_secs(500), Time::from_secs(900));
        for (claims, phase, left, reason) in [
            (3, DrainPhase::Draining { since }, 3, "Draining"),
            (0, DrainPhase::Draining { since }, 0, "Draining"),
            // What is claimed of a node that takes jobs again is none of the drain's.
            (2, DrainPhase::Resumed { since, at }, 0, "Resumed"),
            (0, DrainPhase::Drained { since, at }, 0, "Drained"),
        ] {
            let pool = draining(claims, phase);
            let status = drain(&pool, &pool.drains["d"], &[], Time::from_secs(1000));
            let drained = status.conditions.iter().find(|condition| condition.type_ == types::DRAINED);
            assert_eq!((status.claims, drained.unwrap().reason.as_str()), (left, reason));
            assert_eq!((status.badput_cpu_seconds, status.unclaimed_cpu_seconds), (70, 90), "{reason}");
            assert_eq!(status.start_time, Some(kube_time(since)));
            assert_eq!(status.completion_time.is_some(), reason != "Draining");
        }
    }
}
