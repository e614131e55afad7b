//! What the deciders ask of the shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ids::{ClaimId, JobKey, PodRef, PolicyName, ProcId, SlotName};
use super::policy::Toleration;
use super::resources::Resources;
use super::slot::Claim;

/// One call, or one thing to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Make the Slot object, or bring its claim up to date.
    WriteSlot {
        /// The slot.
        slot: SlotName,
        /// What it holds.
        resources: Resources,
        /// The claim.
        claim: Claim,
        /// The Slot was written before: whatever it carries now is replaced. A new claim never replaces another, which may
        /// be that of a former leader.
        again: bool,
    },
    /// Delete the Slot object; take the claim off that of a static slot.
    DeleteSlot {
        /// The slot.
        slot: SlotName,
        /// The claim that is over; none for an object that nobody here knows.
        claim: Option<ClaimId>,
    },
    /// Make the pod of a proc. Only asked for once the claim is written.
    CreatePod(PodPlan),
    /// Delete a pod.
    DeletePod {
        /// The pod.
        pod: PodRef,
        /// Whose it is, so that a failure can be decided again.
        slot: Option<SlotName>,
        /// The grace; the pod's own where none is given.
        grace: Option<u32>,
    },
    /// Take the tracking finalizer off a pod whose end is recorded.
    ReleasePod {
        /// The pod.
        pod: PodRef,
        /// Delete it too.
        delete: bool,
    },
    /// Put the finalizer on a job that has been accepted.
    HoldJob(JobKey),
    /// Take the finalizer off a job that is being deleted and has nothing left.
    ReleaseJob(JobKey),
    /// Tell the people who look at an object.
    Tell(Notice),
}

/// Everything the shell needs to make a pod, beside the job's template.
#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    /// The job.
    pub job: JobKey,
    /// The proc.
    pub proc: ProcId,
    /// The slot.
    pub slot: SlotName,
    /// What the slot holds: the pod's requests and limits.
    pub resources: Resources,
    /// The claim.
    pub claim: Claim,
    /// Taints to tolerate.
    pub tolerations: Vec<Toleration>,
    /// The slot's name and the job's id, for the process in the pod.
    pub environment: BTreeMap<Arc<str>, String>,
}

/// What a Kubernetes event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An HTCJob.
    Job(JobKey),
    /// A `NodePolicy`.
    Policy {
        /// Its name.
        name: PolicyName,
        /// Its uid.
        uid: Arc<str>,
    },
}

impl Subject {
    /// The uid of the object.
    pub fn uid(&self) -> &str {
        match self {
            Self::Job(job) => job.uid.as_str(),
            Self::Policy { uid, .. } => uid,
        }
    }
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub about: Subject,
    /// Whether something is wrong.
    pub warning: bool,
    /// The reason in one word.
    pub reason: &'static str,
    /// What was done, in one word.
    pub action: &'static str,
    /// The story.
    pub note: String,
}

/// An object whose status no longer says what is so. What it should say follows from the pool at the time of writing, so
/// that many changes cost one write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Document {
    /// An HTCJob's status.
    Job(super::ids::JobUid),
    /// A Slot: its status, and the existence of a static slot's.
    Slot(SlotName),
    /// A `PartitionableSlot`, with its existence.
    PartitionableSlot(SlotName),
    /// A Submitter, with its existence.
    Submitter(super::ids::SubmitterName),
    /// A `GroupQuota`'s status; the object's name.
    Group(Arc<str>),
    /// A `NodePolicy`'s status.
    Policy(super::ids::PolicyName),
    /// A Negotiator's status.
    Negotiator(Arc<str>),
    /// A `DrainRequest`'s status.
    Drain(Arc<str>),
}

impl Document {
    /// The object that shows what claims hold: that of the partitionable slot of a dynamic one, or a static slot's own.
    pub fn of_holder(slot: &SlotName) -> Self {
        match slot.dynamic {
            Some(_) => Self::PartitionableSlot(SlotName { dynamic: None, ..slot.clone() }),
            None => Self::Slot(slot.clone()),
        }
    }
}
