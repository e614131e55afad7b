//! The terms of a claim, and the one check that each claim passes before it is made.

use super::caps::{Charge, Place, Quotas, within};
use super::claims::may_start;
use crate::pool::limits::Wants;
use crate::pool::{Assignment, Claim, ClaimId, JobUid, Pool, SlotName, Time};
use classad::{Ad, Env};

/// A job that the negotiator matched with a slot, and on what terms.
#[derive(Clone, Copy)]
pub struct Matched<'a> {
    /// The job.
    pub job: &'a JobUid,
    /// Whether the match was made in the root's turn though the submitter is in a group: by `GROUP_AUTOREGROUP`.
    pub regrouped: bool,
    /// What the job's negotiator lets groups and submitters have.
    pub quotas: &'a Quotas,
}

/// Why a match does not become a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No proc of the job waits that may start.
    NothingWaits,
    /// The slot is not free, or does not make room, any more.
    Unavailable,
    /// The slot and the job do not match any more, or the slot prefers the job that it has.
    NoMatch,
    /// There is too little left to carve.
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

/// The terms on which a proc gets a slot: nothing forbids the claim.
#[derive(Debug)]
pub struct Terms {
    proc: u32,
    weight: f64,
    limits: Wants,
}

/// Whether a job's next proc may have a claim of this weight on the slot with this ad, or why not: a proc of the job waits,
/// ceilings and quotas have room, and so have concurrency limits.
pub fn check(
    pool: &Pool,
    matched: Matched,
    ad: &Ad,
    weight: f64,
    place: Place,
    now: Time,
) -> Result<Terms, Refusal> {
    let job = pool.jobs().get(matched.job).filter(|job| may_start(pool, job)).ok_or(Refusal::NothingWaits)?;
    let (Some(spec), Some(proc)) = (&job.spec, job.next_idle(now)) else { return Err(Refusal::NothingWaits) };
    let charge = Charge { submitter: &spec.submitter, group: spec.group.as_ref(), weight };
    within(pool, charge, place, matched.quotas)?;
    let limits = Wants::on_slot(&spec.ad, ad, &Env::at(now.secs()));
    if let Some(limit) = pool.holdings().book().blocked(&limits) {
        return Err(Refusal::Limit(limit.to_owned()));
    }
    Ok(Terms { proc, weight, limits })
}

/// Whether ceilings, quotas and concurrency limits still leave room for a claim on a slot that was checked before, or why not:
/// people may have lowered them, or others reached them.
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
    let charge = Charge { submitter: &claim.submitter, group: claim.group.as_ref(), weight: claim.weight };
    within(pool, charge, place, quotas)
}

impl Terms {
    /// The claim on a slot on these terms. None if the job has gone.
    ///
    /// A claim that waits for its slot names the proc that is next now. The schedd says which proc the claim is for when the slot
    /// is free.
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
            last: Assignment { job: job.key.clone(), cluster: job.cluster, proc: self.proc },
        })
    }
}
