//! What happens: the only way in which the world changes the pool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::accountant::Correction;
use super::agent::ReportFacts;
use super::backfill;
use super::drain::DrainFacts;
use super::fence::Renewal;
use super::governing::GoverningFacts;
use super::holdings::LimitObject;
use super::ids::{
    ClaimId, JobKey, JobUid, MachineName, PodRef, PodUid, PolicyName, ProcId, SlotName, SubmitterName,
};
use super::job::{End, JobSpec, Problem};
use super::job_defaults::JobDefaults;
use super::leaving::HoldReason;
use super::machine::MachineFacts;
use super::policy::{Group, NegotiatorConfig, Selector, StartdConfig, SubmitConfig};
use super::ranges::Ranges;
use super::resources::{Capacity, Resources};
use super::slot::{Claim, Recorded, Slot};
use super::stuck::Obstacle;
use super::submitter::Accounts;
use super::time::Time;

/// Something that happened, as a shell reports it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node is there, or changed.
    Machine(MachineFacts),
    /// A node was deleted.
    MachineGone(MachineName),
    /// This `ClusterId` and those below it were given before, be it to jobs that are gone.
    ClustersGiven(i64),
    /// A node's kubelet renewed its Lease.
    Heartbeat {
        /// The node.
        machine: MachineName,
        /// For how long that says that it lives.
        ttl: Duration,
    },
    /// A node has no Lease any more: nothing can be concluded from its silence.
    HeartbeatsEnded(MachineName),
    /// The agent of a machine reports, for the first time or something else than before.
    Report(ReportFacts),
    /// A machine's report is gone: nobody senses on it any more.
    ReportGone(MachineName),
    /// The agent of a machine renewed its Lease.
    AgentHeartbeat {
        /// The machine.
        machine: MachineName,
        /// For how long that says that it lives.
        ttl: Duration,
        /// Which renewal it is, and what the agent promises with it.
        renewal: Renewal,
    },
    /// The agent of a machine has no Lease any more: nothing can be concluded from its silence.
    AgentHeartbeatsEnded(MachineName),
    /// A pod outside the pool holds resources of a node.
    ForeignPod {
        /// The pod.
        pod: PodUid,
        /// Its node.
        machine: MachineName,
        /// What it requests.
        requests: Capacity,
    },
    /// A pod outside the pool ended or was deleted.
    ForeignPodGone(PodUid),
    /// A backfill pod is there, or changed.
    Backfill(backfill::Facts),
    /// A backfill pod is gone for good.
    BackfillGone(MachineName, PodUid),
    /// A pod of the pool is there, or changed.
    Pod(PodFacts),
    /// A pod of the pool is gone for good.
    PodGone(PodFacts),
    /// An HTCJob is there, or changed.
    Job(JobFacts),
    /// An HTCJob is gone for good.
    JobGone(JobUid),
    /// A Slot object is there, or changed.
    Slot(SlotFacts),
    /// A Slot object is gone.
    SlotGone {
        /// The slot.
        slot: SlotName,
        /// The claim that it carried.
        claim: Option<ClaimId>,
    },
    /// A Submitter object is there, or changed.
    Submitter(SubmitterFacts),
    /// A Submitter object is gone: what an admin set is forgotten.
    SubmitterGone(SubmitterName),
    /// A `GroupQuota` is there, or changed.
    Group(Group),
    /// A `GroupQuota` is gone; the object's name.
    GroupGone(Arc<str>),
    /// A `ConcurrencyLimit` is there, or changed.
    Limit(LimitObject),
    /// A `ConcurrencyLimit` is gone; the object's name.
    LimitGone(Arc<str>),
    /// A `NodePolicy` is there, or changed.
    Policy(PolicyFacts),
    /// A `NodePolicy` is gone.
    PolicyGone(PolicyName),
    /// A `DrainRequest` is there, or changed.
    Drain(DrainFacts),
    /// A `DrainRequest` is gone; the object's name.
    DrainGone(Arc<str>),
    /// A `SubmitPolicy` is there, or changed.
    SubmitPolicy(SubmitPolicyFacts),
    /// A `SubmitPolicy` is gone; the object's name.
    SubmitPolicyGone(Arc<str>),
    /// A Negotiator is there, or changed.
    Negotiator(NegotiatorFacts),
    /// A Negotiator is gone.
    NegotiatorGone(Arc<str>),
    /// Everything that existed at the start has been reported: deciding may begin.
    Synced,
    /// A call that an effect asked for has succeeded or failed.
    Outcome(Outcome),
}

/// How an effect went.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The Slot object carries this claim, for this proc.
    SlotWritten {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc, by which uses of one claim are told apart.
        proc: ProcId,
    },
    /// The Slot object could not be written, or nobody knows whether it was.
    SlotRefused {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc.
        proc: ProcId,
        /// Why.
        why: String,
    },
    /// The Slot object that carried this claim is gone.
    SlotDeleted {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// It was there until now: a watch will tell that it went. One that was not may be made late yet.
        there: bool,
    },
    /// The Slot object of a slot is not there.
    SlotMissing(SlotName),
    /// The pod was made, or was there already and is the one that was asked for.
    PodCreated {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The pod.
        pod: PodRef,
    },
    /// A pod that was made, and that no watch has shown, is not there.
    PodMissing {
        /// The slot.
        slot: SlotName,
        /// The pod.
        pod: PodRef,
    },
    /// The pod could not be made, or nobody knows whether it was.
    PodRefused {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc.
        proc: ProcId,
        /// Why.
        why: String,
    },
    /// The backfill pod of a slot was made, or was there already.
    BackfillMade(SlotName),
    /// The backfill pod of a slot, which no watch has shown, is not there.
    BackfillMissing(SlotName),
    /// The backfill pod of a slot was not made.
    BackfillRefused {
        /// The slot.
        slot: SlotName,
        /// Why.
        why: String,
        /// Whether that is known; or else it may have been made all the same.
        certain: bool,
    },
    /// The job's finalizer is in place.
    JobFinalizerSet(JobUid),
    /// The Lease of a machine's agent was read; none where there is none.
    AgentLeaseRead {
        /// The machine.
        machine: MachineName,
        /// Its last renewal.
        found: Option<Renewal>,
    },
    /// A call failed for now; what it was for must be decided again.
    Failed(Retry),
}

/// What to decide again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// Deleting a pod, letting it go, or asking its agent for something, and the slot that it is in.
    Pod(PodUid, Option<SlotName>),
    /// Holding or releasing a job.
    Job(JobUid),
    /// Deleting a backfill pod.
    Backfill(MachineName, PodUid),
    /// Deleting a Slot.
    Slot(SlotName),
    /// Reading the Lease of a machine's agent.
    AgentLease(MachineName),
}

/// What the shell sees of a pod of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PodFacts {
    /// The pod.
    pub pod: PodRef,
    /// Its node.
    pub machine: Option<MachineName>,
    /// The job that it works for.
    pub job: JobUid,
    /// The proc.
    pub proc: u32,
    /// The claim under which it was made.
    pub claim: ClaimId,
    /// Whether its containers have started.
    pub running: bool,
    /// When its main container did, as far as that is known.
    pub started: Option<Time>,
    /// How its proc ended, if it has: with the main container, or with the pod.
    pub end: Option<End>,
    /// Whether the proc counts as evicted for no other reason than that its pod was asked to go.
    pub told: bool,
    /// What is left of the pod. Read only where `end` is known.
    pub remains: Remains,
    /// What its proc is held for, as whoever deleted it wrote on it.
    pub hold: Option<HoldReason>,
    /// Why it cannot start, if the kubelet says so.
    pub obstacle: Option<Arc<Obstacle>>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The longest grace period of its deletions, as far as the pod shows them.
    pub grace: Option<Duration>,
    /// Whether the pod was taken off its kubelet: deleted by force, or declared over by the pod garbage collector.
    pub forced: Forced,
    /// Whether somebody has said on the pod why it is disrupted.
    pub disrupted: bool,
    /// The lease of its claim, as it carries it for the agent of its node.
    pub lease: Option<Duration>,
    /// Whether our finalizer is on it.
    pub tracked: bool,
    /// What it requests.
    pub requests: Capacity,
}

impl PodFacts {
    /// A slot's pod of which nothing is known but that it was made.
    pub(super) fn of_nothing(pod: PodRef, slot: &Slot) -> Self {
        Self {
            pod,
            machine: Some(slot.name().machine.clone()),
            job: slot.claim().last.job.uid.clone(),
            proc: slot.claim().last.proc,
            claim: slot.claim().id.clone(),
            running: false,
            started: None,
            end: None,
            told: false,
            remains: Remains::Nothing,
            hold: None,
            obstacle: None,
            deleting: false,
            grace: None,
            forced: Forced::No,
            disrupted: false,
            lease: None,
            tracked: false,
            requests: Capacity::default(),
        }
    }

    /// Whether its proc has ended and its containers have too, so that the node has back what the pod held.
    pub fn is_over(&self) -> bool {
        self.end.is_some() && self.remains == Remains::Nothing
    }
}

/// What is left of a pod whose proc has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remains {
    /// Nothing: its kubelet has confirmed the end of all containers.
    #[default]
    Nothing,
    /// All containers have ended, and the kubelet says in a moment what the pod's last phase is, and whether the kubelet
    /// itself ended the pod: until then the end is not certain.
    Ending,
    /// Another container runs on, and does so until the pod is deleted.
    Others,
}

/// Whether a pod was taken off its kubelet, so that no kubelet has confirmed the end of its containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// It was not.
    #[default]
    No,
    /// It was, and no container was seen to run.
    Idle,
    /// It was, while a container ran.
    Running,
}

/// What the shell sees of an HTCJob.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// The job.
    pub key: JobKey,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub submitted: Time,
    /// Who submitted it.
    pub owner: Arc<str>,
    /// The spec, or everything that is wrong with it.
    pub spec: Result<Arc<JobSpec>, Vec<Problem>>,
    /// What the object says and nothing acts on.
    pub warnings: Vec<Problem>,
    /// It is being deleted.
    pub removing: bool,
    /// Our finalizer is on it.
    pub finalizer: bool,
    /// `status.clusterId`.
    pub cluster: Option<i64>,
    /// `status.completedProcs`.
    pub succeeded: Ranges,
    /// `status.failedProcs`.
    pub failed: Ranges,
    /// `status.startTime`.
    pub first_start: Option<Time>,
    /// `status.completionTime`.
    pub completed_at: Option<Time>,
    /// `status.defaults`.
    pub defaults: Option<Arc<JobDefaults>>,
    /// `status.heldProcs`, as long as the spec is the one under which they were held.
    pub on_hold: BTreeMap<u32, HoldReason>,
}

/// What the shell sees of a Slot.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotFacts {
    /// The slot.
    pub name: SlotName,
    /// What it holds.
    pub resources: Resources,
    /// The claim.
    pub claim: Option<Claim>,
    /// What its status says of the job that runs.
    pub recorded: Option<Recorded>,
}

/// What the shell sees of a Submitter.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitterFacts {
    /// The accountant's name.
    pub name: SubmitterName,
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec.priorityFactor`.
    pub factor: Option<f64>,
    /// `spec.ceiling`.
    pub ceiling: Option<f64>,
    /// `spec.floor`.
    pub floor: Option<f64>,
    /// `spec.correction`.
    pub correction: Option<Correction>,
    /// The id of the correction that its status says was made last.
    pub corrected: Option<Arc<str>>,
    /// The accounts in its status.
    pub accounts: Accounts,
}

/// What the shell sees of a `NodePolicy`.
#[derive(Clone, Debug)]
pub struct PolicyFacts {
    /// Its name.
    pub name: PolicyName,
    /// Its uid.
    pub uid: Arc<str>,
    /// `metadata.generation`.
    pub generation: i64,
    /// Which nodes.
    pub selector: Selector,
    /// Its precedence.
    pub precedence: i32,
    /// The configuration, or everything that is wrong with it.
    pub config: Result<Arc<StartdConfig>, Vec<Problem>>,
    /// What of its text does nothing, or not what it seems to; none where it has no text.
    pub warnings: Option<Vec<Problem>>,
    /// The spec as text, to be recorded once it is accepted.
    pub spec: Arc<str>,
    /// Where this spec cannot be used: the one that the object's status records as accepted, which can.
    pub recorded: Option<Box<Self>>,
}

/// What the shell sees of a `SubmitPolicy`.
pub type SubmitPolicyFacts = GoverningFacts<SubmitConfig>;

/// What the shell sees of a Negotiator.
pub type NegotiatorFacts = GoverningFacts<NegotiatorConfig>;
