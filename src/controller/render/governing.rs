//! What the status of objects says of which one governs the pool: `SubmitPolicy` and Negotiator.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::of_policy;
use super::status::size;
use super::waiting;
use crate::api::{CycleStatistics, NegotiatorStatus, SubmitPolicyStatus};
use crate::controller::translate::kube_time;
use crate::pool::{Governing, NegotiatorConfig, Pool, Problem, SubmitConfig, Time};

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
    let another = another(&pool.negotiators, name, "AnotherNegotiator", "negotiator");
    let figures = pool.schedule.last.as_ref().filter(|_| another.is_none());
    NegotiatorStatus {
        observed_generation: Some(object.generation),
        accepted_spec: object.accepted.as_deref().map(str::to_owned),
        cycles: size(pool.schedule.cycles),
        last_cycle: figures.map(|cycle| CycleStatistics {
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
        conditions: conditions(object, another, old, now),
    }
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
        let problems = (object.problems.as_slice(), object.meanwhile());
        return of_policy(old, problems, object.warnings.as_deref(), object.generation, now);
    };
    let problems = [object.problems.clone(), vec![another]].concat();
    of_policy(old, (&problems, ""), None, object.generation, now)
}
