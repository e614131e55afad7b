//! The claim of a submitter on a slot, and the proc that is assigned to the claim.

use crate::pool::charges::Charge;
use crate::pool::ids::{ClaimId, GroupName, JobKey, ProcId, SubmitterName};
use crate::pool::limits::Wants;
use crate::pool::negotiators::NegotiatorId;
use crate::pool::time::Time;

/// A submitter's claim on a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim's id. The id stays the same when the claim is reused for another proc.
    pub id: ClaimId,
    /// The submitter who is charged.
    pub submitter: SubmitterName,
    /// The accounting group to which the claim is charged.
    pub group: Option<GroupName>,
    /// The negotiator that made the match. The submitter's account with this negotiator is charged.
    pub negotiator: NegotiatorId,
    /// Whether the match was made in the root's turn although the submitter is in a group: `RemoteAutoregroup`.
    pub regrouped: bool,
    /// The cost of the claim for its submitter: the slot's `SLOT_WEIGHT`, or 1 without `NEGOTIATOR_USE_SLOT_WEIGHTS`.
    pub weight: f64,
    /// The units of concurrency limits that the claim holds: `MatchedConcurrencyLimits`.
    pub limits: Wants,
    /// When the claim was made. `CLAIM_WORKLIFE` counts from this time.
    pub since: Time,
    /// The proc that was last assigned to the claim. The claim serves this proc now, unless the slot is
    /// [`Vacant`](super::Activation::Vacant): see [`Slot::assignment`](super::Slot::assignment).
    pub last: Assignment,
}

/// A proc that is assigned to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The proc's job.
    pub job: JobKey,
    /// HTCondor's number of that job.
    pub cluster_id: i64,
    /// The proc's number.
    pub proc: u32,
}

impl Claim {
    /// The name of the pod of the proc that the claim was given last. The name follows from the proc alone, so that the API
    /// server itself refuses a second pod for the proc.
    pub fn pod_name(&self) -> String {
        pod_name(&self.last.job.name, self.last.proc)
    }

    /// The claim's charge while the claim is not discounted.
    pub const fn charge(&self) -> Charge<'_> {
        Charge { submitter: &self.submitter, negotiator: &self.negotiator, weight: self.weight }
    }
}

impl Assignment {
    /// The proc.
    pub fn proc_id(&self) -> ProcId {
        ProcId { job: self.job.uid.clone(), proc: self.proc }
    }

    /// The job's id: `ClusterId.ProcId`.
    pub fn job_id(&self) -> String {
        format!("{}.{}", self.cluster_id, self.proc)
    }
}

/// The name of a proc's pod.
pub fn pod_name(job: &str, proc: u32) -> String {
    format!("{job}-{proc}")
}
