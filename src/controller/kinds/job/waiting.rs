//! Why a job's procs wait: the condition `Matchable` says whether a machine could run them and what keeps them from it,
//! `PodRefused` that the API server takes no pod of theirs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::super::conditions::{Says, condition};
use api::condition as types;
use model::pool::{Job, Matchable, RejectReason, Time, Waits};

/// The condition `Matchable`: whether some machine could run the job's procs, and what keeps waiting procs from a slot.
pub(super) fn matchable(cluster: &Job, old: &[Condition], now: Time) -> Condition {
    let waits = cluster.waits.as_ref();
    let (status, reason, message) = match (&cluster.matchable, waits) {
        // Nothing is looked for any more, and what an earlier operator found is forgotten.
        _ if cluster.idle.is_empty() => (Some(true), "NoneWaits", "no proc waits for a node".to_owned()),
        (Matchable::No(problem), _) => (Some(false), problem.reason, problem.to_string()),
        (Matchable::Unknown, Some(waits)) if !no_slot(waits) => (None, waits.reason.word(), barred(waits)),
        (Matchable::Unknown, _) => {
            (None, "NotNegotiated", "no cycle has looked for a node that could run the job yet".to_owned())
        }
        (Matchable::Yes, Some(waits)) => (
            Some(true),
            waits.reason.word(),
            format!("there is a node that could run a proc, but {}", barred(waits)),
        ),
        (Matchable::Yes, None) => (
            Some(true),
            "MachineFound",
            "there is a node that could run a proc, now or once it is free".to_owned(),
        ),
    };
    condition(old, Says { type_: types::MATCHABLE, status, reason, message }, cluster.generation, now)
}

/// The condition `PodRefused`, if procs wait because the API server refused a pod.
pub(super) fn refused(cluster: &Job, old: &[Condition], now: Time) -> Option<Condition> {
    let why = cluster.refused.as_deref().filter(|_| !cluster.idle.is_empty())?;
    let message = format!(
        "the API server refused the pod of a proc: {why}; the job's procs wait, and a pod is tried again after 10 s at first, \
         after five minutes at the most"
    );
    let says = Says { type_: types::POD_REFUSED, status: Some(true), reason: "RefusedByServer", message };
    Some(condition(old, says, cluster.generation, now))
}

/// Whether procs wait only because no slot is free. As long as no cycle has found out whether any slot could match, that
/// says nothing about the job.
fn no_slot(waits: &Waits) -> bool {
    matches!(waits.reason, RejectReason::NoMatch | RejectReason::NoSlots)
}

/// What keeps procs from a slot, and what to do about it.
fn barred(waits: &Waits) -> String {
    let of = waits.of.as_deref();
    match waits.reason {
        RejectReason::NoMatch => {
            "every slot that matches is in use or has too little left, and none may be taken from its job"
                .to_owned()
        }
        RejectReason::NoSlots => "no slot was left when its submitter's turn came".to_owned(),
        RejectReason::TimeLimit => {
            "the negotiator had no time left for it: see NEGOTIATOR_MAX_TIME_PER_CYCLE, _SUBMITTER and _PIESPIN"
                .to_owned()
        }
        RejectReason::EvaluationShare => {
            "evaluating its expressions, or its submitter's other jobs', has cost what one cycle may spend on that; write \
             simpler requirements and ranks, or fewer different jobs"
                .to_owned()
        }
        RejectReason::TooExpensive => {
            "evaluating one of its expressions takes too many steps; write simpler requirements, rank, and attributes that \
             these read"
                .to_owned()
        }
        RejectReason::SubmitterLimit => {
            "its submitter has the share of the pool that its priority gives it; see kubectl get submitters"
                .to_owned()
        }
        RejectReason::Ceiling => format!("the ceiling of {} is reached", of.unwrap_or("its submitter")),
        RejectReason::GroupQuota => format!("the quota of group {} is used up", of.unwrap_or("<none>")),
        RejectReason::ConcurrencyLimit => match of {
            Some(limit) => format!("concurrency limit {limit} is reached"),
            None => "a concurrency limit is reached on every machine that matches".to_owned(),
        },
        RejectReason::PreemptionPolicy => {
            "the slots that match are in use, and PREEMPTION_REQUIREMENTS does not let it take one".to_owned()
        }
        RejectReason::PreemptionRank => {
            "the slots that match are in use by jobs that their Rank prefers".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bars_is_said_in_words() {
        let said = |reason: RejectReason, of: Option<&str>| {
            barred(&Waits { reason, of: of.map(Into::into), since: Time::default() })
        };
        for (reason, of, expected) in [
            (RejectReason::GroupQuota, Some("physics"), "the quota of group physics is used up"),
            (RejectReason::ConcurrencyLimit, Some("xsw"), "concurrency limit xsw is reached"),
            (
                RejectReason::ConcurrencyLimit,
                None,
                "a concurrency limit is reached on every machine that matches",
            ),
            (RejectReason::Ceiling, Some("alice"), "the ceiling of alice is reached"),
            (
                RejectReason::TimeLimit,
                None,
                "the negotiator had no time left for it: see NEGOTIATOR_MAX_TIME_PER_CYCLE, _SUBMITTER and _PIESPIN",
            ),
        ] {
            assert_eq!(said(reason, of), expected);
        }
    }
}
