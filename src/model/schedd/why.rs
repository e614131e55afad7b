//! Decides why a job's procs do not run, and words the reason. Conditions, the column Why, events and
//! `kubectl slotwright q` all take their texts from here.

use crate::pool::units::{counted, plain};
use crate::pool::{
    Amount, Bar, Cooling, JOB_DURATION_EXCEEDED, JOB_EXECUTE_EXCEEDED, JOB_OUT_OF_RESOURCES, JOB_POLICY,
    JOB_POLICY_UNDEFINED, Job, MISSED_DEFERRED_TIME, Matchable, Paced, Problem, RejectReason, SYSTEM_POLICY,
    Time, USER_REQUEST, VacateReason, Waits,
};
use classad::{Env, Expr};

/// The status, reason and message of one condition of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// True or False; `None` means Unknown.
    pub status: Option<bool>,
    /// The reason in one word.
    pub reason: &'static str,
    /// The reason for people.
    pub text: String,
}

/// Why procs of a job do not run, in one text; `None` if no proc waits and none is held.
pub fn why(job: &Job, problems: &[Problem], now: Time) -> Option<String> {
    if job.removing {
        return None;
    }
    if !problems.is_empty() {
        return Some(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    }
    let waits = (!job.idle.is_empty()).then(|| refused(job).unwrap_or_else(|| matchable(job, now)).text);
    let all: Vec<String> = waits.into_iter().chain(held(job).map(|held| held.text)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Whether some machine could run the job's procs, and what keeps waiting procs from a slot.
pub fn matchable(job: &Job, now: Time) -> Said {
    let said = |status, reason, text: &str| Said { status, reason, text: text.to_owned() };
    if !matches!(job.matchable, Matchable::No(_)) {
        let status = (job.matchable == Matchable::Yes).then_some(true);
        if let Some(paced) = job.paced_by() {
            return held_back(paced, status);
        }
        if let Some(text) = pauses(job, now) {
            return Said { status, reason: "Pausing", text };
        }
    }
    match (&job.matchable, &job.waits) {
        // No proc waits any more, and the findings of an earlier operator are not known.
        _ if job.idle.is_empty() => said(Some(true), "NoneWaits", "no proc waits for a node"),
        (Matchable::No(problem), _) => said(Some(false), problem.reason, &problem.to_string()),
        // As long as no cycle has found out whether any slot could match, busy slots say nothing about the job.
        (Matchable::Unknown, None | Some(Waits { bar: Bar::Busy { .. }, .. })) => {
            said(None, "NotNegotiated", "no negotiation cycle has looked for a node yet")
        }
        (known, Some(Waits { bar, .. })) => {
            let status =
                if bar.is_for_ever() { Some(false) } else { (*known == Matchable::Yes).then_some(true) };
            Said { status, reason: bar.word(), text: barred(bar) }
        }
        (Matchable::Yes, None) => {
            said(Some(true), "MachineFound", "there is a node that could run a proc, now or once it is free")
        }
    }
}

/// The words of the conditions while the job's own pace keeps its procs from slots.
fn held_back(paced: Paced, status: Option<bool>) -> Said {
    match paced {
        Paced::Limit(most) => {
            let text = format!("JobMaterializeLimit is {most}, and as many procs have slots or are held");
            Said { status, reason: "MaterializeLimit", text }
        }
        Paced::Until(at) => {
            let text = format!("DeferralTime is {}: no proc starts before", utc(at));
            Said { status, reason: "Deferred", text }
        }
        Paced::Next(at) => {
            let text = format!("the next time of the job's crontab is {}: no proc starts before", utc(at));
            Said { status, reason: "Deferred", text }
        }
    }
}

/// The text about procs that all pause before they are tried again.
fn pauses(job: &Job, now: Time) -> Option<String> {
    let (proc, pause) = job.pausing(now)?;
    let Cooling { times, until } = pause.cooling;
    let retry = if times > 1 { format!(" (retry {times})") } else { String::new() };
    let others = match job.idle.len().saturating_sub(1) {
        0 => String::new(),
        1 => "; another proc pauses, too".to_owned(),
        more => format!("; {} pause, too", counted(more, "other proc")),
    };
    Some(format!("proc {proc} {}, and is tried again at {}{retry}{others}", pause.why, utc(until)))
}

/// A time for people, in UTC.
fn utc(at: Time) -> String {
    let text = format!("formatTime({}, \"%Y-%m-%dT%H:%M:%SZ\")", at.secs());
    let value = Expr::parse(&text).map(|expr| expr.eval(None, None, &Env::at(0)));
    let said = value.ok().and_then(|value| value.as_str().map(str::to_owned));
    said.unwrap_or_else(|| format!("{} seconds after 1970", at.secs()))
}

/// The reason and text of the conditions while procs wait because the API server refused a pod.
pub fn refused(job: &Job) -> Option<Said> {
    let why = job.refused.as_deref().filter(|_| !job.idle.is_empty())?;
    let text = format!(
        "the API server refused the pod of a proc: {why}; a pod is tried again after 10 s at first, after five minutes at the \
         most"
    );
    Some(Said { status: Some(true), reason: "RefusedByServer", text })
}

/// The reason and text of the conditions while procs are held.
pub fn held(job: &Job) -> Option<Said> {
    let (first, hold) = job.on_hold.first_key_value()?;
    let alike = job.on_hold.values().filter(|other| *other == hold).count();
    let others = job.on_hold.len() - alike;
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let which = if alike == 1 {
        format!("proc {first} is held")
    } else {
        format!("{alike} procs, the first of them proc {first}, are held")
    };
    let more = match others {
        0 => String::new(),
        1 => "; 1 proc is held for another reason".to_owned(),
        _ => format!("; {} are held for other reasons", counted(count(others), "proc")),
    };
    let all = if alike == 1 { "it" } else { "them" };
    let remedy = if hold.is_by_spec() {
        format!("take spec.hold out of the job's manifest to release {all}")
    } else if hold.outlasts_edits() {
        format!("release {all} with kubectl slotwright release")
    } else {
        format!("edit the job's spec to release {all}")
    };
    let text = format!("{which}: {hold}{more}; {remedy}");
    let reason = match hold.code {
        JOB_POLICY_UNDEFINED => "TooExpensive",
        code => hold_word(code),
    };
    Some(Said { status: Some(true), reason, text })
}

/// HTCondor's name of a `HoldReasonCode`.
fn hold_word(code: i64) -> &'static str {
    match code {
        USER_REQUEST => "UserRequest",
        JOB_POLICY => "JobPolicy",
        JOB_OUT_OF_RESOURCES => "JobOutOfResources",
        SYSTEM_POLICY => "SystemPolicy",
        JOB_DURATION_EXCEEDED => "JobDurationExceeded",
        JOB_EXECUTE_EXCEEDED => "JobExecuteExceeded",
        MISSED_DEFERRED_TIME => "MissedDeferredExecutionTime",
        code => VacateReason::of_hold(code).unwrap_or(VacateReason::StartdHeldJob).name(),
    }
}

/// The text for people about what keeps procs from slots that they match.
pub fn barred(bar: &Bar) -> String {
    match bar {
        Bar::GroupQuota(amount) if amount.inside >= 0.01 => beside_groups_inside(amount),
        Bar::GroupQuota(amount) if amount.is_too_small() => format!(
            "a proc takes {} of group {}, whose quota is {} in all; request less, or have an admin raise the quota",
            plain(amount.wants),
            amount.of,
            plain(amount.limit)
        ),
        Bar::GroupQuota(amount) => format!("waits for group {}: {}", amount.of, in_use(amount)),
        Bar::NoGroup => {
            "waits for slots that no group's quota reserves: jobs without a group have theirs".to_owned()
        }
        Bar::Ceiling(amount) if amount.is_too_small() => format!(
            "a proc takes {} of what {} may have, and the ceiling is {}; request less, or have an admin raise the ceiling",
            plain(amount.wants),
            amount.of,
            plain(amount.limit)
        ),
        Bar::Ceiling(amount) => format!("waits for the ceiling of {}: {}", amount.of, in_use(amount)),
        Bar::ConcurrencyLimit(Some(amount)) if amount.is_too_small() => format!(
            "a proc takes {} of concurrency limit {}, which has {} in all; ask for less, or have an admin raise the limit",
            plain(amount.wants),
            amount.of,
            plain(amount.limit)
        ),
        Bar::ConcurrencyLimit(Some(amount)) => {
            format!("waits for concurrency limit {}: {}", amount.of, in_use(amount))
        }
        Bar::ConcurrencyLimit(None) => "a concurrency limit is reached on every node that matches".to_owned(),
        Bar::Busy { first, withheld } => {
            let turn =
                first.as_ref().map(|first| format!("; the next turn is {first}'s")).unwrap_or_default();
            let withheld =
                withheld.as_ref().map(|nodes| format!("; not in use: {nodes}")).unwrap_or_default();
            format!("every node that could run a proc is busy{turn}{withheld}")
        }
        Bar::Kept { reason, by: Some(by) } => format!("{} ({by})", other(*reason)),
        Bar::Kept { reason, by: None } | Bar::Other(reason) => other(*reason).to_owned(),
    }
}

/// The text about a group whose own jobs have only what the groups inside it leave of its quota.
fn beside_groups_inside(amount: &Amount) -> String {
    let (group, quota) = (&amount.of, plain(amount.limit + amount.inside));
    format!(
        "waits for group {group}: {}; the groups inside {group} have the other {} of its quota of {quota}, and {group} gets what they \
         leave: wait, charge the job to one of them, or have an admin change the quotas",
        in_use(amount),
        plain(amount.inside)
    )
}

fn in_use(amount: &Amount) -> String {
    let takes = if amount.wants > 1.0 {
        format!(", and a proc takes {}", plain(amount.wants))
    } else {
        String::new()
    };
    format!("{} of {} in use{takes}", plain(amount.used), plain(amount.limit))
}

fn other(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NoMatch | RejectReason::NoSlots => "every node that could run a proc is busy",
        RejectReason::TimeLimit => {
            "the negotiator had no time left for the job in this cycle: see NEGOTIATOR_MAX_TIME_PER_CYCLE, _SUBMITTER and \
             _PIESPIN"
        }
        RejectReason::EvaluationShare => {
            "the expressions of the job, or of its submitter's other jobs, have cost what one cycle may spend on them; write \
             simpler requirements and ranks, or fewer different jobs"
        }
        RejectReason::TooExpensive => {
            "one of the job's expressions takes too many steps; write simpler requirements, rank, and attributes that these \
             read"
        }
        RejectReason::SubmitterLimit => {
            "the submitter has the share of the pool that its priority gives it; see kubectl slotwright userprio"
        }
        RejectReason::Ceiling => "waits for the submitter's ceiling",
        RejectReason::GroupQuota => "waits for the group's quota",
        RejectReason::ConcurrencyLimit => "waits for a concurrency limit",
        RejectReason::PreemptionPolicy => {
            "the nodes that match are in use, and PREEMPTION_REQUIREMENTS leaves them to their present jobs"
        }
        RejectReason::PreemptionRank => "the nodes that match are in use by jobs that their RANK prefers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(of: &str, used: f64, limit: f64, wants: f64) -> Amount {
        Amount { of: of.into(), used, limit, wants, may_grow: false, inside: 0.0 }
    }

    #[test]
    fn what_bars_is_said_in_words() {
        for (bar, word, expected) in [
            (
                Bar::GroupQuota(amount("physics.neutrino", 8.0, 8.0, 1.0)),
                "GroupQuotaReached",
                "waits for group physics.neutrino: 8 of 8 in use",
            ),
            (
                Bar::Kept { reason: RejectReason::PreemptionRank, by: Some("NodePolicy desktops".into()) },
                "PresentJobsRankHigher",
                "the nodes that match are in use by jobs that their RANK prefers (NodePolicy desktops)",
            ),
            (
                Bar::Kept { reason: RejectReason::PreemptionPolicy, by: Some("Negotiator default".into()) },
                "PreemptionNotAllowed",
                "the nodes that match are in use, and PREEMPTION_REQUIREMENTS leaves them to their present jobs (Negotiator default)",
            ),
            (
                Bar::GroupQuota(amount("g", 0.0, 8.0, 12.0)),
                "GroupQuotaTooSmall",
                "a proc takes 12 of group g, whose quota is 8 in all; request less, or have an admin raise the quota",
            ),
            (
                Bar::ConcurrencyLimit(Some(amount("xsw", 2.0, 3.0, 2.0))),
                "ConcurrencyLimitReached",
                "waits for concurrency limit xsw: 2 of 3 in use, and a proc takes 2",
            ),
            (
                Bar::ConcurrencyLimit(Some(amount("xsw", 0.0, 3.0, 9.0))),
                "ConcurrencyLimitTooSmall",
                "a proc takes 9 of concurrency limit xsw, which has 3 in all; ask for less, or have an admin raise the limit",
            ),
            (
                Bar::Ceiling(amount("alice", 3.0, 3.0, 1.0)),
                "CeilingReached",
                "waits for the ceiling of alice: 3 of 3 in use",
            ),
            (
                Bar::Busy { first: Some("bob".into()), withheld: Some("n2 is cordoned".into()) },
                "MachinesBusy",
                "every node that could run a proc is busy; the next turn is bob's; not in use: n2 is cordoned",
            ),
        ] {
            assert_eq!((bar.word(), barred(&bar).as_str()), (word, expected));
        }
    }

    /// How much surplus a group may use is not known beforehand.
    #[test]
    fn a_group_that_accepts_surplus_may_get_more_than_its_quota() {
        let bar = Bar::GroupQuota(Amount { may_grow: true, ..amount("g", 0.0, 8.0, 12.0) });
        assert_eq!((bar.word(), bar.is_for_ever()), ("GroupQuotaReached", false));
    }
}
