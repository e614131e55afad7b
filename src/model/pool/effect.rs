//! What the deciders ask of the shell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::agent::Benchmarks;
use super::backfill;
use super::ids::{ClaimId, JobKey, MachineName, PodRef, PolicyName, ProcId, SlotName};
use super::policy::Toleration;
use super::resources::Resources;
use super::slot::Claim;
use super::stuck::{FAILED_TO_CREATE_PROCESS, INVALID_DOCKER_IMAGE, STARTD_HELD_JOB};
use super::time::Time;

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
        /// Those before it, over too, that a static slot's object may still carry: it was never written in their place.
        before: Vec<ClaimId>,
    },
    /// Make the pod of a proc. Only asked for once the claim is written.
    CreatePod(PodPlan),
    /// Delete a pod.
    DeletePod {
        /// The pod.
        pod: PodRef,
        /// Whose it is, so that a failure can be decided again.
        slot: Option<SlotName>,
        /// The grace in seconds; the pod's own where none is given. A pod that is being deleted may be deleted again with a
        /// shorter one: Kubernetes shortens what is left, and never lengthens it.
        grace: Option<u32>,
        /// The grace period of an earlier deletion that lets the pod run for longer: written on the pod first, since the API
        /// server forgets that period and a kubelet that has begun to end the pod keeps to it.
        granted: Option<Duration>,
        /// Only while this node is gone or out of service, which is asked of the API server first: the watch that told may be
        /// behind, and the node back and running the pod.
        off: Option<MachineName>,
        /// Why it is evicted: said on the pod before it is deleted. None where its end is what its user asked for, and where
        /// it was said before.
        why: Option<Vacate>,
    },
    /// Ask the agent of the pod's node to suspend the pod's processes, or to let them go on. That it did is heard in the
    /// machine's report.
    Suspend {
        /// The pod.
        pod: PodRef,
        /// The slot that it runs in, so that a failure can be decided again.
        slot: SlotName,
        /// Suspend; else continue.
        suspended: bool,
    },
    /// Ask the agent of the pod's node to kill the pod's processes: the kubelet has not within `KILLING_TIMEOUT`.
    KillByAgent {
        /// The pod.
        pod: PodRef,
        /// The slot that it runs in, so that a failure can be decided again.
        slot: SlotName,
    },
    /// Make the backfill pod of a slot.
    CreateBackfill(Box<backfill::Plan>),
    /// Look whether the backfill pod of a slot is there, which no watch has shown.
    LookForBackfill {
        /// The slot.
        slot: SlotName,
        /// The namespace that it is made in.
        namespace: Arc<str>,
    },
    /// Delete a backfill pod.
    DeleteBackfill {
        /// The pod.
        pod: PodRef,
        /// Its machine, so that a failure can be decided again.
        machine: MachineName,
        /// The grace in seconds; the pod's own where none is given.
        grace: Option<u32>,
        /// Only while the machine's node is gone or out of service, as in [`Effect::DeletePod`].
        off: bool,
    },
    /// Ask the agent of a machine for a benchmark run that begins no earlier than `asked`. A machine without a report has
    /// nobody to run one: nothing comes of it.
    Benchmark {
        /// The machine.
        machine: MachineName,
        /// When it was asked for: the run is done once the report has benchmarks of this time or later.
        asked: Time,
        /// What those before it measured, on average.
        so_far: Option<Benchmarks>,
    },
    /// Look whether a pod is there that was made and that no watch has shown.
    LookAtPod {
        /// The pod.
        pod: PodRef,
        /// The slot that it runs in.
        slot: SlotName,
    },
    /// Read the Lease of a machine's agent: whether it was renewed since a watch last told of it.
    ReadAgentLease {
        /// The machine.
        machine: MachineName,
    },
    /// Take the tracking finalizer off a pod whose end is recorded.
    UntrackPod {
        /// The pod.
        pod: PodRef,
        /// Delete it too.
        delete: bool,
    },
    /// Put the finalizer on a job that has been accepted.
    AddJobFinalizer(JobKey),
    /// Take the finalizer off a job that is being deleted and has nothing left.
    RemoveJobFinalizer(JobKey),
    /// Tell the people who look at an object.
    Tell(Notice),
}

/// Why a pod is evicted, as its condition `DisruptionTarget` says it: to its user, and to failure policies, which count such
/// an end as none of the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacate {
    /// The reason in one word.
    pub reason: VacateReason,
    /// The reason for people.
    pub message: Arc<str>,
}

/// `HTCondor`'s own names for why a job had to leave its machine, each a `VacateReasonCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VacateReason {
    /// 6: the kubelet cannot make a container of the pod.
    FailedToCreateProcess,
    /// 35: the kubelet cannot have an image of the pod.
    InvalidDockerImage,
    /// 21: `PREEMPT` was true, and `WANT_HOLD` too.
    StartdHeldJob,
    /// 1008: the claim is lost, or its lease has run out.
    ReconnectFailed,
    /// 1010: an admin asked for it.
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
    /// All of them.
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

    /// Those for which a proc is held, with the `HoldReasonCode` that it has then: the same number.
    pub const HOLDS: [(Self, i64); 3] = [
        (Self::FailedToCreateProcess, FAILED_TO_CREATE_PROCESS),
        (Self::StartdHeldJob, STARTD_HELD_JOB),
        (Self::InvalidDockerImage, INVALID_DOCKER_IMAGE),
    ];

    /// What a proc is held for with a `HoldReasonCode`.
    pub fn of_hold(code: i64) -> Option<Self> {
        Self::HOLDS.into_iter().find(|(_, known)| *known == code).map(|(reason, _)| reason)
    }

    /// The `HoldReasonCode` of a proc that is held for it, if one is.
    pub fn hold_code(self) -> Option<i64> {
        Self::HOLDS.into_iter().find(|(reason, _)| *reason == self).map(|(_, code)| code)
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The name, for conditions.
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

/// Everything the shell needs to make a pod, beside the job's template.
#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    /// The job.
    pub job: JobKey,
    /// The proc.
    pub proc: ProcId,
    /// The slot.
    pub slot: SlotName,
    /// The job's part of what the slot holds: the pod's requests and limits.
    pub resources: Resources,
    /// The lease of the claim, in whole seconds: for how long its node may be silent.
    pub lease: Duration,
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
    /// A Negotiator.
    Negotiator {
        /// Its name.
        name: Arc<str>,
        /// Its uid.
        uid: Arc<str>,
    },
    /// A `SubmitPolicy`.
    SubmitPolicy {
        /// Its name.
        name: Arc<str>,
        /// Its uid.
        uid: Arc<str>,
    },
    /// A `DrainRequest`.
    Drain {
        /// Its name.
        name: Arc<str>,
        /// Its uid.
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
    /// The object that shows what claims hold: that of the partitionable slot of a dynamic one, or a static slot's own.
    pub fn of_holder(slot: &SlotName) -> Self {
        match slot.dynamic {
            Some(_) => Self::PartitionableSlot(SlotName { dynamic: None, ..slot.clone() }),
            None => Self::Slot(slot.clone()),
        }
    }
}
