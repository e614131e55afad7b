//! The attributes that a slot publishes about the job that runs in it. Values that grow with time are expressions over `time()`,
//! so that nothing need be written when time passes.

use super::ask::integer;
use crate::pool::{Policy, Running, Slot};
use crate::startd::ad::constant;
use crate::startd::view::seconds;
use classad::{Ad, Env, Expr};

/// Puts the attributes of the running job into the slot's ad: `JobStart`, `TotalJobRunTime`, `TotalJobSuspendTime`,
/// `CurrentRank`, `RetirementTimeRemaining`, and the `Preempting*` attributes if a claim waits for the slot. `target` is the ad of
/// the running job.
pub fn publish(ad: &mut Ad, policy: &Policy, slot: &Slot, target: Option<&Ad>, env: &Env) {
    let job = slot.running();
    if let Some(started) = job.and_then(|job| job.started) {
        ad.set("JobStart", started.secs());
    }
    ad.insert("TotalJobRunTime", job.map_or_else(nothing, run_time));
    ad.insert("TotalJobSuspendTime", job.map_or_else(nothing, suspend_time));
    ad.set("CurrentRank", slot.rank());
    let left = remaining(ad, policy, job, target, env);
    ad.insert("RetirementTimeRemaining", left);
    if let Some(next) = slot.preemptor() {
        ad.set("PreemptingUser", next.claim.submitter.as_str());
        let user = next.claim.submitter.as_str();
        ad.set("PreemptingOwner", user.rsplit_once('.').map_or(user, |(_, owner)| owner));
        ad.set("PreemptingRank", next.rank);
        if next.claim.group.is_some() {
            ad.set("PreemptingAccountingGroup", user);
        }
    }
}

fn nothing() -> Expr {
    Expr::literal(0_i64)
}

/// An expression for the job's run time.
fn run_time(job: &Running) -> Expr {
    match (job.started, job.suspended_since) {
        (None, _) => nothing(),
        (Some(_), Some(since)) => Expr::literal(seconds(job.run_time(since))),
        (Some(started), None) => {
            constant(&format!("time() - {}", started.secs().saturating_add(seconds(job.suspended))))
        }
    }
}

fn suspend_time(job: &Running) -> Expr {
    match job.suspended_since {
        None => Expr::literal(seconds(job.suspended)),
        Some(since) => constant(&format!("time() - {}", since.secs().saturating_sub(seconds(job.suspended)))),
    }
}

/// A job's ad with the attributes that change while the job runs: `JobStatus` and `JobCurrentStartDate`, which HTCondor's schedd
/// sets, and `JobState`, which its starter sets.
pub fn running_job_ad(job: &Ad, running: Option<&Running>) -> Ad {
    let Some((running, started)) = running.and_then(|running| Some((running, running.started?))) else {
        return job.clone();
    };
    let (status, state) = match running.suspended_since {
        None => (2_i64, "Running"),
        Some(_) => (7_i64, "Suspended"),
    };
    let mut ad = Ad::new().with("JobStatus", status).with("JobState", state);
    for name in ["JobCurrentStartDate", "JobCurrentStartExecutingDate"] {
        ad.set(name, started.secs());
    }
    ad.chain(Some(job.clone()));
    ad
}

/// An expression for the retirement time that is left: the lesser of what the machine's `MaxJobRetirementTime` grants the job now
/// and what the job asks for, less the run time.
fn remaining(ad: &mut Ad, policy: &Policy, job: Option<&Running>, target: Option<&Ad>, env: &Env) -> Expr {
    let Some(granted) = &policy.max_job_retirement_time else { return nothing() };
    ad.insert("MaxJobRetirementTime", granted.clone());
    let Some(job) = job.filter(|job| job.started.is_some()) else { return nothing() };
    let granted = integer(&granted.eval(Some(ad), target, env)).unwrap_or(0);
    let granted = job.own_retirement.map_or(granted, |own| granted.min(own));
    constant(&format!("max({{0, {granted} - TotalJobRunTime}})"))
}
