//! The terms of a claim, and the one check that each claim passes before it is made.

use std::sync::Arc;

use super::caps::{Claimant, Place, Quotas, within};
use super::claims::may_start;
use crate::pool::limits::Wants;
use crate::pool::{Assignment, Claim, ClaimId, JobSpec, JobUid, OwnSpec, Pool, SlotName, Time};
use classad::{Ad, Env};

/// A match: a job that the negotiator matched with a slot, and the quotas that bind the claim.
#[derive(Clone, Copy)]
pub struct Matched<'a> {
    /// The job.
    pub job: &'a JobUid,
    /// The own spec of the procs for which the match was made; `None` if these procs have the job's spec.
    pub own: Option<&'a Arc<OwnSpec>>,
    /// Whether the match was made in the root's turn although the submitter is in a group (`GROUP_AUTOREGROUP`).
    pub regrouped: bool,
    /// The quotas in force of the negotiator that made the match.
    pub quotas: &'a Quotas,
}

impl Matched<'_> {
    /// The spec of the procs for which the match was made.
    pub fn spec<'p>(&'p self, pool: &'p Pool) -> Option<&'p Arc<JobSpec>> {
        self.own.map(|own| own.spec()).or_else(|| pool.jobs().get(self.job)?.spec.as_ref())
    }
}

/// Why a match does not become a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The job has no idle proc that may start.
    NothingWaits,
    /// The slot is no longer free, or can no longer make room.
    Unavailable,
    /// The slot and the job no longer match, or the slot ranks its present job higher.
    NoMatch,
    /// The rest of the partitionable slot is too small for the job.
    TooLittle,
    /// `START` is not true for a dynamic slot of the size that would be carved.
    Unwilling,
    /// The submitter or its owner has reached a ceiling.
    Ceiling,
    /// The group, or a group around it, has reached its quota.
    Quota,
    /// A concurrency limit is reached.
    Limit(String),
}

/// The reason, as a clause for people.
impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NothingWaits => "no proc of the job waits any more",
            Self::Unavailable => "the slot cannot be had any more",
            Self::NoMatch => "the slot and the job do not match any more",
            Self::TooLittle => "too little is left to carve",
            Self::Unwilling => "START is not true for a dynamic slot of that size",
            Self::Ceiling => "the ceiling of the submitter is reached",
            Self::Quota => "the quota of the accounting group is reached",
            Self::Limit(limit) => return write!(f, "the concurrency limit {limit} is reached"),
        })
    }
}

/// The proc, weight and concurrency limits of a claim that passed the check.
#[derive(Debug)]
pub struct Terms {
    proc: u32,
    weight: f64,
    limits: Wants,
}

/// Checks whether a job's next proc may have a claim of this weight on the slot with this ad: a proc of the job must be
/// idle, and ceilings, quotas and concurrency limits must leave room. `place` names the claims whose weight does not
/// count.
pub fn check(
    pool: &Pool,
    matched: Matched,
    ad: &Ad,
    weight: f64,
    place: Place,
    now: Time,
) -> Result<Terms, Refusal> {
    let job = pool.jobs().get(matched.job).filter(|job| may_start(pool, job)).ok_or(Refusal::NothingWaits)?;
    let (Some(spec), Some(proc)) = (matched.spec(pool), job.next_idle_with(matched.own, now)) else {
        return Err(Refusal::NothingWaits);
    };
    let claimant = Claimant { submitter: &spec.submitter, group: spec.group.as_ref(), weight };
    within(pool, claimant, place, matched.quotas)?;
    let limits = Wants::on_slot(&spec.ad, ad, &Env::at(now.secs()));
    if let Some(limit) = pool.holdings().book().blocked(&limits) {
        return Err(Refusal::Limit(limit.to_owned()));
    }
    Ok(Terms { proc, weight, limits })
}

/// Checks whether ceilings, quotas and concurrency limits still leave room for a claim that passed [`check`] before.
/// People may have lowered them since, or other claims used them up.
pub fn check_again(
    pool: &Pool,
    slot: &SlotName,
    claim: &Claim,
    place: Place,
    quotas: &Quotas,
) -> Result<(), Refusal> {
    if let Some(limit) = pool.holdings().blocked_in(slot, &claim.limits) {
        return Err(Refusal::Limit(limit.to_owned()));
    }
    let claimant =
        Claimant { submitter: &claim.submitter, group: claim.group.as_ref(), weight: claim.weight };
    within(pool, claimant, place, quotas)
}

impl Terms {
    /// The claim on a slot that follows from these terms; `None` if the job is gone.
    ///
    /// A claim that has to wait for its slot names the proc that is next now. The schedd decides which proc the claim
    /// serves when the slot is free.
    pub fn into_claim(self, pool: &mut Pool, slot: &SlotName, matched: Matched, now: Time) -> Option<Claim> {
        let id = ClaimId::new(slot, now, pool.next_claim_number());
        let job = pool.jobs().get(matched.job)?;
        let spec = job.spec.as_ref()?;
        Some(Claim {
            id,
            submitter: spec.submitter.clone(),
            group: spec.group.clone(),
            negotiator: matched.quotas.negotiator.clone(),
            regrouped: matched.regrouped,
            weight: self.weight,
            limits: self.limits,
            since: now,
            last: Assignment { job: job.key.clone(), cluster_id: job.cluster_id, proc: self.proc },
        })
    }
}
