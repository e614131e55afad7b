//! How far a `DrainRequest` has come.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::{Says, accepted, condition};
use crate::api::{DrainRequestStatus, condition as types};
use crate::controller::translate::kube_time;
use crate::pool::{Drain, DrainPhase, Pool, Time};

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
        conditions: vec![
            accepted(old, &drain.problems, drain.generation, now),
            condition(old, says, drain.generation, now),
        ],
    }
}
