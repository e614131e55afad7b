//! Effects: what the deciders ask the shell to do.

use std::sync::Arc;
use std::time::Duration;

use super::agent::Benchmarks;
use super::backfill;
use super::cron::Crontab;
use super::ids::{ClaimId, JobKey, MachineName, PodRef, PolicyName, SlotName};
use super::policy::Toleration;
use super::resources::Resources;
use super::slot::Claim;
use super::stuck::{FAILED_TO_CREATE_PROCESS, INVALID_DOCKER_IMAGE, STARTD_HELD_JOB};
use super::time::Time;

/// One call to make, or one thing to tell people. A decision may have tens of thousands of effects, so that those with the most to say
/// are in boxes.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Create the Slot object, or update its claim.
    WriteSlot(Box<ClaimPlan>),
    /// Delete the Slot object; for a static slot, take the claim off its object.
    DeleteSlot {
        /// The slot.
        slot: SlotName,
        /// The claim that is over; `None` for an object that the pool does not know.
        claim: Option<ClaimId>,
        /// Earlier claims that are over, too, and that a static slot's object may still have, because no later claim
        /// was written.
        before: Vec<ClaimId>,
    },
    /// Create the pod of a proc. Only asked for once the claim is written.
    CreatePod(Box<PodPlan>),
    /// Delete a pod.
    DeletePod {
        /// The pod.
        pod: PodRef,
        /// The pod's slot, so that the deletion can be decided again if it fails.
        slot: Option<SlotName>,
        /// The grace period in seconds; `None` for the pod's own. A pod that is being deleted may be deleted again with
        /// a shorter grace period: Kubernetes shortens the rest, and never lengthens it.
        grace: Option<u32>,
        /// The grace period of an earlier deletion, if that period lets the pod run for longer than `grace` does. The
        /// shell writes the longer period on the pod before the shell deletes the pod again: the API server forgets the
        /// longer period, while a kubelet that has begun to end the pod keeps to the longer period.
        granted: Option<Duration>,
        /// If set, delete only if this node is gone or out of service, which the API server is asked first: the watch
        /// may be behind, and the node back and running the pod.
        off: Option<MachineName>,
        /// Why the pod is evicted; written on the pod before it is deleted. `None` if the pod's user wants it to end,
        /// or if the pod has the reason already.
        why: Option<Vacate>,
    },
    /// Ask the agent of the pod's node to suspend the pod's processes, or to let them continue. The machine's report
    /// will show that the agent did.
    Suspend {
        /// The pod.
        pod: PodRef,
        /// The slot in which the pod runs, so that the request can be decided again if it fails.
        slot: SlotName,
        /// True to suspend, false to continue.
        suspended: bool,
    },
    /// Ask the agent of the pod's node to kill the pod's processes, because the kubelet has not ended them, or will end
    /// them much later.
    KillByAgent {
        /// The pod.
        pod: PodRef,
        /// The slot in which the pod runs, so that the request can be decided again if it fails.
        slot: SlotName,
    },
    /// Create the backfill pod of a slot.
    CreateBackfill(Box<backfill::Plan>),
    /// Look up the backfill pod of a slot, which no watch has shown.
    LookForBackfill {
        /// The slot.
        slot: SlotName,
        /// The namespace of the pod.
        namespace: Arc<str>,
    },
    /// Delete a backfill pod.
    DeleteBackfill {
        /// The pod.
        pod: PodRef,
        /// The pod's machine, so that the deletion can be decided again if it fails.
        machine: MachineName,
        /// The grace period in seconds; `None` for the pod's own.
        grace: Option<u32>,
        /// Whether to delete only if the machine's node is gone or out of service, as in [`Effect::DeletePod`].
        off: bool,
    },
    /// Ask the agent of a machine for a benchmark run that begins no earlier than `asked`. If the machine has no
    /// report, nothing comes of it.
    Benchmark {
        /// The machine.
        machine: MachineName,
        /// When the run was asked for. It is done once the report has benchmarks of this time or later.
        asked: Time,
        /// The averages of the earlier runs.
        so_far: Option<Benchmarks>,
    },
    /// Ask the agent of a machine to run these cron jobs, and no others. If the machine has no report, nothing comes of it.
    Cron {
        /// The machine.
        machine: MachineName,
        /// The jobs.
        tab: Arc<Crontab>,
    },
    /// Look up a pod that was created and that no watch has shown.
    LookAtPod {
        /// The pod.
        pod: PodRef,
        /// The slot in which the pod runs.
        slot: SlotName,
    },
    /// Read the Lease of a machine's agent, to find a renewal that no watch has shown.
    ReadAgentLease {
        /// The machine.
        machine: MachineName,
    },
    /// Take the tracking finalizer off a pod whose end is recorded.
    UntrackPod {
        /// The pod.
        pod: PodRef,
        /// Whether to delete the pod, too.
        delete: bool,
    },
    /// Put the operator's finalizer on a job that was accepted.
    AddJobFinalizer(JobKey),
    /// Take the operator's finalizer off a job that is being deleted and has no claims and pods left.
    RemoveJobFinalizer(JobKey),
    /// Tell something to the people who look at an object.
    Tell(Notice),
}

/// Why a pod is evicted, as its condition `DisruptionTarget` says: for its user, and for failure policies, by which
/// such an end is not the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacate {
    /// The reason in one word.
    pub reason: VacateReason,
    /// The reason for people.
    pub message: Arc<str>,
}

/// HTCondor's names for the reasons for which a job had to leave its machine. Each has a `VacateReasonCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VacateReason {
    /// 6: the kubelet cannot create a container of the pod.
    FailedToCreateProcess,
    /// 35: the kubelet cannot pull an image of the pod.
    InvalidDockerImage,
    /// 21: `PREEMPT` was true, and `WANT_HOLD` too.
    StartdHeldJob,
    /// 1008: the claim is lost, or its lease has expired.
    ReconnectFailed,
    /// 1010: an admin asked the job to leave.
    StartdVacateCommand,
    /// 1011: `PREEMPT` was true.
    StartdPreemptExpression,
    /// 1013: the machine is gone.
    StartdShutdown,
    /// 1014: the machine is being drained.
    StartdDraining,
    /// 1017: the claim was released.
    StartdReleaseCommand,
    /// 1018: the machine prefers another job, by its `RANK`.
    StartdPreemptingClaimRank,
    /// 1019: a submitter with a better priority takes the slot.
    StartdPreemptingClaimUserPrio,
}

impl VacateReason {
    /// All reasons.
    pub const ALL: [Self; 11] = [
        Self::FailedToCreateProcess,
        Self::InvalidDockerImage,
        Self::StartdHeldJob,
        Self::ReconnectFailed,
        Self::StartdVacateCommand,
        Self::StartdPreemptExpression,
        Self::StartdShutdown,
        Self::StartdDraining,
        Self::StartdReleaseCommand,
        Self::StartdPreemptingClaimRank,
        Self::StartdPreemptingClaimUserPrio,
    ];

    /// The reasons for which a proc is held, each with its `HoldReasonCode`, which is the same number.
    pub const HOLDS: [(Self, i64); 3] = [
        (Self::FailedToCreateProcess, FAILED_TO_CREATE_PROCESS),
        (Self::StartdHeldJob, STARTD_HELD_JOB),
        (Self::InvalidDockerImage, INVALID_DOCKER_IMAGE),
    ];

    /// The reason for which a proc is held with this `HoldReasonCode`.
    pub fn of_hold(code: i64) -> Option<Self> {
        Self::HOLDS.into_iter().find(|(_, known)| *known == code).map(|(reason, _)| reason)
    }

    /// The `HoldReasonCode` of a proc that is held for this reason; `None` if procs are not held for it.
    pub fn hold_code(self) -> Option<i64> {
        Self::HOLDS.into_iter().find(|(reason, _)| *reason == self).map(|(_, code)| code)
    }

    /// The reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason's name, for conditions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailedToCreateProcess => "FailedToCreateProcess",
            Self::InvalidDockerImage => "InvalidDockerImage",
            Self::StartdHeldJob => "StartdHeldJob",
            Self::ReconnectFailed => "ReconnectFailed",
            Self::StartdVacateCommand => "StartdVacateCommand",
            Self::StartdPreemptExpression => "StartdPreemptExpression",
            Self::StartdShutdown => "StartdShutdown",
            Self::StartdDraining => "StartdDraining",
            Self::StartdReleaseCommand => "StartdReleaseCommand",
            Self::StartdPreemptingClaimRank => "StartdPreemptingClaimRank",
            Self::StartdPreemptingClaimUserPrio => "StartdPreemptingClaimUserPrio",
        }
    }
}

/// Everything that the shell needs to write a claim into a Slot.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimPlan {
    /// The slot.
    pub slot: SlotName,
    /// The resources that the slot holds.
    pub resources: Resources,
    /// The claim.
    pub claim: Claim,
    /// Whether the Slot was written before: then whatever claim it has now is replaced. A new claim never replaces another, which may
    /// be a former leader's.
    pub again: bool,
}

/// Everything that the shell needs to create a pod, besides the job's template.
#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    /// The slot.
    pub slot: SlotName,
    /// The job's part of the slot's resources: the pod's requests and limits.
    pub resources: Resources,
    /// The lease of the claim, in whole seconds: how long its node may be silent.
    pub lease: Duration,
    /// The longest time that any job may take to vacate the slot, which the pod's own grace period does not exceed.
    pub longest_vacating: Duration,
    /// How many runs of the proc came before this one.
    pub run: u32,
    /// The claim, which names the proc.
    pub claim: Claim,
    /// The image that policy chose for the job's container; if unset, the template's.
    pub image: Option<Arc<str>>,
    /// Taints that the pod tolerates.
    pub tolerations: Vec<Toleration>,
}

/// The object that a Kubernetes event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An HTCJob.
    Job(JobKey),
    /// A `NodePolicy`.
    Policy {
        /// The object's name.
        name: PolicyName,
        /// The object's uid.
        uid: Arc<str>,
    },
    /// A Negotiator.
    Negotiator {
        /// The object's name.
        name: Arc<str>,
        /// The object's uid.
        uid: Arc<str>,
    },
    /// A `SubmitPolicy`.
    SubmitPolicy {
        /// The object's name.
        name: Arc<str>,
        /// The object's uid.
        uid: Arc<str>,
    },
    /// A `DrainRequest`.
    Drain {
        /// The object's name.
        name: Arc<str>,
        /// The object's uid.
        uid: Arc<str>,
    },
}

impl Subject {
    /// The uid of the object.
    pub fn uid(&self) -> &str {
        match self {
            Self::Job(job) => job.uid.as_str(),
            Self::Policy { uid, .. }
            | Self::Negotiator { uid, .. }
            | Self::SubmitPolicy { uid, .. }
            | Self::Drain { uid, .. } => uid,
        }
    }
}

/// A Kubernetes event for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The object that the event is about.
    pub about: Subject,
    /// Whether something is wrong.
    pub warning: bool,
    /// The reason in one word.
    pub reason: &'static str,
    /// The action in one word.
    pub action: &'static str,
    /// The text of the event.
    pub note: String,
}

/// An object whose status must be written again. The new status follows from the pool at the time of writing, so that
/// many changes cost one write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Document {
    /// An HTCJob's status.
    Job(super::ids::JobUid),
    /// A Slot: its status; for a static slot also whether the object exists.
    Slot(SlotName),
    /// A `PartitionableSlot`: its status, and whether the object exists.
    PartitionableSlot(SlotName),
    /// An `AbsentMachine`: its status, and whether the object exists.
    AbsentMachine(super::ids::MachineName),
    /// A Submitter: its status, and whether the object exists.
    Submitter(super::ids::SubmitterName),
    /// A `GroupQuota`'s status; the object's name.
    Group(Arc<str>),
    /// A `NodePolicy`'s status.
    Policy(super::ids::PolicyName),
    /// A `SubmitPolicy`'s status; the object's name.
    SubmitPolicy(Arc<str>),
    /// A Negotiator's status.
    Negotiator(Arc<str>),
    /// A `ConcurrencyLimit`'s status; the object's name.
    Limit(Arc<str>),
    /// A `DrainRequest`'s status.
    Drain(Arc<str>),
}

impl Document {
    /// Whether the document is about a slot.
    pub const fn is_of_slot(&self) -> bool {
        matches!(self, Self::Slot(_) | Self::PartitionableSlot(_))
    }

    /// The object that shows what claims on the slot hold: for a dynamic slot its PartitionableSlot, for a static slot
    /// its own Slot.
    pub fn of_holder(slot: &SlotName) -> Self {
        match slot.dynamic {
            Some(_) => Self::PartitionableSlot(SlotName { dynamic: None, ..slot.clone() }),
            None => Self::Slot(slot.clone()),
        }
    }
}
