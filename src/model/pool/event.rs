//! Events: the only way in which the outside world changes the pool.

use std::sync::Arc;
use std::time::Duration;

use super::absent::AbsentMachine;
use super::accountant::Correction;
use super::acts::Act;
use super::agent::{ReportFacts, Usage};
use super::backfill;
use super::by_proc::ByProc;
use super::drain::DrainFacts;
use super::fence::Renewal;
use super::governing::GoverningFacts;
use super::history::History;
use super::holdings::LimitObject;
use super::ids::{
    ClaimId, GroupName, JobKey, JobUid, MachineName, PodRef, PodUid, PolicyName, ProcId, SlotName,
    SubmitterName,
};
use super::job::{End, JobSpec, Problem};
use super::job_defaults::JobDefaults;
use super::leaving::{Deletion, HoldReason};
use super::machine::MachineFacts;
use super::owner::{RecordedOwner, Requester, UnknownCreator};
use super::plain::PlainSize;
use super::policy::{Group, NegotiatorConfig, Selection, StartdConfig, SubmitConfig};
use super::ranges::Ranges;
use super::resources::{Capacity, Resources};
use super::slot::{Claim, Recorded, Slot};
use super::stuck::Obstacle;
use super::submit_rules::Transformed;
use super::submitter::Accounts;
use super::time::{Seconds, Time};

/// Something that happened, as a shell reports it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node appeared or changed.
    Machine(MachineFacts),
    /// A node was deleted.
    MachineGone(MachineName),
    /// This `ClusterId` and all below it were given before, perhaps to jobs that are gone.
    ClusterIdsGiven(i64),
    /// An `AbsentMachine` appeared or changed.
    Absent(AbsentMachine),
    /// An `AbsentMachine` is gone.
    AbsentGone {
        /// The machine.
        machine: MachineName,
        /// Since when the machine was absent, as the object had it.
        since: Time,
    },
    /// A node's kubelet renewed its Lease.
    Heartbeat {
        /// The node.
        machine: MachineName,
        /// How long the renewal counts as a sign of life.
        ttl: Duration,
    },
    /// A node's Lease is gone: nothing can be concluded from its silence.
    HeartbeatsEnded(MachineName),
    /// The agent of a machine reported for the first time, or something new.
    Report(ReportFacts),
    /// A machine's report is gone: no agent senses there any more.
    ReportGone(MachineName),
    /// The agent of a machine renewed its Lease.
    AgentHeartbeat {
        /// The machine.
        machine: MachineName,
        /// How long the renewal counts as a sign of life.
        ttl: Duration,
        /// The renewal, and what the agent promises with it.
        renewal: Renewal,
    },
    /// The Lease of a machine's agent is gone: nothing can be concluded from its silence.
    AgentHeartbeatsEnded(MachineName),
    /// A pod outside the pool holds resources of a node.
    ForeignPod {
        /// The pod.
        pod: PodUid,
        /// The pod's node.
        machine: MachineName,
        /// The requests of the pod.
        requests: Capacity,
    },
    /// A pod outside the pool ended or was deleted.
    ForeignPodGone(PodUid),
    /// A backfill pod appeared or changed.
    Backfill(backfill::Facts),
    /// A backfill pod's object is gone.
    BackfillGone(MachineName, PodUid),
    /// A pod of the pool appeared or changed.
    Pod(PodFacts),
    /// The object of a pod of the pool is gone.
    PodGone(PodFacts),
    /// An HTCJob appeared or changed.
    Job(JobFacts),
    /// An HTCJob's object is gone.
    JobGone(JobUid),
    /// The shell has written the batch of this number in the history, or has given up writing it.
    Archived(u64),
    /// A Slot object appeared or changed.
    Slot(SlotFacts),
    /// A Slot object is gone.
    SlotGone {
        /// The slot.
        slot: SlotName,
        /// The claim that the object named.
        claim: Option<ClaimId>,
    },
    /// A Submitter object appeared or changed.
    Submitter(SubmitterFacts),
    /// A Submitter object is gone: the settings of admins in it are forgotten.
    SubmitterGone(SubmitterName),
    /// A `GroupQuota` appeared or changed.
    Group(Group),
    /// A `GroupQuota` is gone; the object's name.
    GroupGone(Arc<str>),
    /// A `ConcurrencyLimit` appeared or changed.
    Limit(LimitObject),
    /// A `ConcurrencyLimit` is gone; the object's name.
    LimitGone(Arc<str>),
    /// A `NodePolicy` appeared or changed.
    Policy(PolicyFacts),
    /// A `NodePolicy` is gone.
    PolicyGone(PolicyName),
    /// A `DrainRequest` appeared or changed.
    Drain(DrainFacts),
    /// A `DrainRequest` is gone; the object's name.
    DrainGone(Arc<str>),
    /// A `SubmitPolicy` appeared or changed.
    SubmitPolicy(SubmitPolicyFacts),
    /// A `SubmitPolicy` is gone; the object's name.
    SubmitPolicyGone(Arc<str>),
    /// A Negotiator appeared or changed.
    Negotiator(NegotiatorFacts),
    /// A Negotiator is gone.
    NegotiatorGone(Arc<str>),
    /// Everything that existed at the start has been reported: deciding may begin.
    Synced,
    /// A call that an effect asked for has succeeded or failed.
    Outcome(Outcome),
}

/// The outcome of an effect.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The Slot object has this claim, for this proc.
    SlotWritten {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc. The same claim may be written once for each proc that it serves.
        proc: ProcId,
    },
    /// The Slot object could not be written, or nobody knows whether it was written.
    SlotRefused {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc.
        proc: ProcId,
        /// The reason.
        why: String,
    },
    /// The Slot object that had this claim is gone.
    SlotDeleted {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// Whether the object existed until now; a watch will then show that it went. If it did not exist, it may still
        /// be created late.
        there: bool,
    },
    /// The Slot object of a slot does not exist.
    SlotMissing(SlotName),
    /// The pod was created, or existed already and is the one that was asked for.
    PodCreated {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The pod.
        pod: PodRef,
    },
    /// A pod that was created, and that no watch has shown, does not exist.
    PodMissing {
        /// The slot.
        slot: SlotName,
        /// The pod.
        pod: PodRef,
    },
    /// The pod could not be created, or nobody knows whether it was created.
    PodRefused {
        /// The slot.
        slot: SlotName,
        /// The claim.
        claim: ClaimId,
        /// The proc.
        proc: ProcId,
        /// The reason.
        why: String,
    },
    /// The backfill pod of a slot was created, or existed already.
    BackfillMade(SlotName),
    /// The backfill pod of a slot, which no watch has shown, does not exist.
    BackfillMissing(SlotName),
    /// The backfill pod of a slot was not created.
    BackfillRefused {
        /// The slot.
        slot: SlotName,
        /// The reason.
        why: String,
        /// Whether that is certain. If not, the pod may have been created all the same.
        certain: bool,
    },
    /// The job has the operator's finalizer.
    JobFinalizerSet(JobUid),
    /// The Lease of a machine's agent was read.
    AgentLeaseRead {
        /// The machine.
        machine: MachineName,
        /// The Lease's last renewal; `None` if there is no Lease.
        found: Option<Renewal>,
    },
    /// A call failed for now; its purpose must be decided again.
    Failed(Retry),
}

/// A decision that must be taken again after a failed call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// The deletion of a pod, taking its finalizer off, or a request to its agent; with the pod's slot.
    Pod(PodUid, Option<SlotName>),
    /// Putting the finalizer on a job, or taking it off.
    Job(JobUid),
    /// The deletion of a backfill pod.
    Backfill(MachineName, PodUid),
    /// The deletion of a Slot.
    Slot(SlotName),
    /// Reading the Lease of a machine's agent.
    AgentLease(MachineName),
}

/// The facts of a pod of the pool, as the shell sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PodFacts {
    /// The pod.
    pub pod: PodRef,
    /// The pod's node.
    pub machine: Option<MachineName>,
    /// The job whose proc the pod runs.
    pub job: JobUid,
    /// The proc.
    pub proc: u32,
    /// The claim under which the pod was created.
    pub claim: ClaimId,
    /// Whether the pod's containers have started.
    pub running: bool,
    /// When the pod was created, by the API server's clock; `None` if nothing of the pod is known.
    pub created: Option<Time>,
    /// When the main container started, as far as known.
    pub started: Option<Time>,
    /// When the main container ended, by its node's clock and in whole seconds, as far as known.
    pub finished: Option<Time>,
    /// How the proc has ended: with the main container, or with the pod. `None` while it has not.
    pub end: Option<End>,
    /// Whether the proc counts as evicted only because the pod was asked to go.
    pub told: bool,
    /// The remains of the pod. Only meaningful if `end` is known.
    pub remains: Remains,
    /// The earliest second, by the API server's clock, since which the pod was seen to be asked to go. A later deletion with a
    /// shorter grace period hides the earlier one.
    pub asked: Option<i64>,
    /// The reason for which the proc is held, as whoever deleted the pod wrote on it.
    pub hold: Option<Box<HoldReason>>,
    /// Why the pod cannot start, if the kubelet says so.
    pub obstacle: Option<Arc<Obstacle>>,
    /// Whether the pod is being deleted.
    pub deleting: bool,
    /// The longest grace period of the pod's deletions, as far as the pod shows them; zero if a deletion by force has hidden it.
    pub grace: Option<Seconds>,
    /// The grace period that a deletion gives the pod if the deletion names none.
    pub own_grace: Seconds,
    /// Whether the pod was taken off its kubelet: deleted by force, or declared over by the pod garbage collector.
    pub forced: Forced,
    /// Whether the pod's condition says already why the pod is disrupted.
    pub disrupted: bool,
    /// Whether the operator last asked the agent to suspend the job: the pod's annotation says so.
    pub suspended: bool,
    /// The lease of the pod's claim, as written on the pod for the agent of its node.
    pub lease: Option<Duration>,
    /// How many runs of the proc came before this pod, as written on the pod.
    pub run: Option<u32>,
    /// The pod's request of its slot, as written on the pod. Only a request of nothing but CPUs, memory and disk is written there.
    pub size: Option<PlainSize>,
    /// Whether the operator's finalizer is on the pod.
    pub tracked: bool,
    /// The requests of the pod.
    pub requests: Capacity,
}

impl PodFacts {
    /// When the run of this pod that began at `started` was over: when the program ended, by its node's clock, or else `now`, when that
    /// is told. Between the two, no operator may have led for a while.
    pub(super) fn over_at(&self, started: Time, now: Time) -> Time {
        self.finished.map_or(now, |finished| finished.max(started).min(now))
    }

    /// The pod's deletion, as the object shows it.
    pub(super) fn deletion(&self) -> Deletion {
        let grace = self.grace.map(Duration::from);
        Deletion { deleting: self.deleting, grace, own_grace: self.own_grace.into() }
    }

    /// The pod of a slot, about which nothing is known except that the pod was created.
    pub(super) fn of_nothing(pod: PodRef, slot: &Slot) -> Self {
        Self::of_claim(pod, slot.claim(), Some(slot.name().machine.clone()))
    }

    /// The pod that was created for the proc of a claim, about which nothing else is known.
    pub fn of_claim(pod: PodRef, claim: &Claim, machine: Option<MachineName>) -> Self {
        Self {
            pod,
            machine,
            job: claim.last.job.uid.clone(),
            proc: claim.last.proc,
            claim: claim.id.clone(),
            running: false,
            created: None,
            started: None,
            finished: None,
            end: None,
            told: false,
            asked: None,
            remains: Remains::Nothing,
            hold: None,
            obstacle: None,
            deleting: false,
            grace: None,
            own_grace: Seconds::default(),
            forced: Forced::No,
            disrupted: false,
            suspended: false,
            lease: None,
            run: None,
            size: None,
            tracked: false,
            requests: Capacity::default(),
        }
    }

    /// Whether the proc and all containers of the pod have ended, so that the node has the pod's resources back.
    pub fn is_over(&self) -> bool {
        self.end.is_some() && self.remains == Remains::Nothing
    }
}

/// The remains of a pod whose proc has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remains {
    /// Nothing is left: the kubelet has confirmed the end of all containers.
    #[default]
    Nothing,
    /// All containers have ended. In a moment the kubelet will report the pod's final phase, which says whether the
    /// kubelet itself ended the pod. Until then the end is not certain.
    Ending,
    /// Another container still runs, until the pod is deleted.
    Others,
    /// The program itself runs, though its proc is held or was removed, until the pod is deleted.
    Program,
}

/// Whether a pod was taken off its kubelet, so that no kubelet may have confirmed the end of its containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// The pod was not taken off its kubelet.
    #[default]
    No,
    /// The pod was taken off its kubelet, and no container was seen to run.
    Idle,
    /// The pod was taken off its kubelet while a container ran.
    Running,
}

/// The facts of an HTCJob, as the shell sees them.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// The job.
    pub key: JobKey,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub submitted: Time,
    /// `status.owner`, if an operator has written the status.
    pub owner: RecordedOwner,
    /// Who created the job, if the admission webhook or the API server's admission policies have said so and nobody else can have
    /// said so.
    pub requester: Result<Requester, UnknownCreator>,
    /// The spec, or everything that is wrong with it.
    pub spec: Result<Arc<JobSpec>, Vec<Problem>>,
    /// `status.submitter`: who was charged for the job when an operator last understood the spec.
    pub submitter: Option<SubmitterName>,
    /// `spec.accountingGroup` if it can be read, whatever is wrong with the rest of the spec.
    pub group: Option<GroupName>,
    /// Parts of the spec that have no effect.
    pub warnings: Vec<Problem>,
    /// Whether the job is being deleted.
    pub removing: bool,
    /// Whether the operator's finalizer is on the job.
    pub finalizer: bool,
    /// `status.clusterId`.
    pub cluster_id: Option<i64>,
    /// `status.completedProcs`.
    pub succeeded: Ranges,
    /// `status.failedProcs`.
    pub failed: Ranges,
    /// `status.startTime`.
    pub first_start: Option<Time>,
    /// `status.completionTime`.
    pub completed_at: Option<Time>,
    /// `status.usage`. In a box, since few events are about jobs and all events are of one size.
    pub used: Box<Usage>,
    /// `status.defaults`.
    pub defaults: Option<Arc<JobDefaults>>,
    /// Whether an operator has accepted this very spec: the job has the operator's finalizer, and its status is about the spec.
    pub accepted: bool,
    /// `status.policy`, if the status is about the present spec.
    pub transformed: Option<Arc<Transformed>>,
    /// `status.heldProcs`, without those that an edit of the spec has released since.
    pub on_hold: ByProc<HoldReason>,
    /// The life of the procs, as the object tells it. The facts are in a box, as `used` is.
    pub life: Box<LifeFacts>,
}

impl JobFacts {
    /// The facts of a job that was just made, and that no operator has seen.
    pub fn new(key: JobKey, submitted: Time, spec: Result<Arc<JobSpec>, Vec<Problem>>) -> Self {
        Self {
            key,
            generation: 1,
            submitted,
            owner: RecordedOwner::New,
            requester: Err(UnknownCreator::default()),
            group: spec.as_ref().ok().and_then(|spec| spec.group.clone()),
            spec,
            submitter: None,
            warnings: Vec::new(),
            removing: false,
            finalizer: false,
            cluster_id: None,
            succeeded: Ranges::default(),
            failed: Ranges::default(),
            first_start: None,
            completed_at: None,
            used: Box::default(),
            defaults: None,
            accepted: false,
            transformed: None,
            on_hold: ByProc::default(),
            life: Box::default(),
        }
    }
}

/// The life of the procs of an HTCJob, apart from how they ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LifeFacts {
    /// `status.removedProcs`.
    pub removed: Ranges,
    /// `status.runs`.
    pub history: ByProc<History>,
    /// `status.transformedProcs`: changes that `TransformOnEvict` made to the spec, each with the procs for which they hold. None if
    /// the spec was edited since.
    pub changes: Vec<(Ranges, Transformed)>,
    /// `status.lastAct`.
    pub last_act: u64,
    /// The acts that people wrote on the object.
    pub acts: Vec<Act>,
    /// The problem with the acts that people wrote. While there is a problem, none of the acts is carried out.
    pub bad_acts: Option<Problem>,
}

/// The facts of a Slot, as the shell sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotFacts {
    /// The slot.
    pub name: SlotName,
    /// The resources of the slot, as the object says.
    pub resources: Resources,
    /// The claim.
    pub claim: Option<Claim>,
    /// The record of the running job in the object's status.
    pub recorded: Option<Recorded>,
}

/// The facts of a Submitter, as the shell sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitterFacts {
    /// The submitter's name, as the accountant uses it.
    pub name: SubmitterName,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether the operator made the object.
    pub made: bool,
    /// Why the spec is not in force: it names another submitter than the object's. All that the spec sets is then unset here.
    pub misnamed: Option<Problem>,
    /// Parts of the spec that have no effect.
    pub in_vain: Vec<Problem>,
    /// `spec.priorityFactor`.
    pub factor: Option<f64>,
    /// `spec.ceiling`.
    pub ceiling: Option<f64>,
    /// `spec.floor`.
    pub floor: Option<f64>,
    /// `spec.correction`.
    pub correction: Option<Correction>,
    /// The id of the last correction that was made, by the object's status.
    pub corrected: Option<Arc<str>>,
    /// The accounts in the object's status.
    pub accounts: Accounts,
}

/// The facts of a `NodePolicy`, as the shell sees them.
pub type PolicyFacts = GoverningFacts<StartdConfig, Selection>;

/// The facts of a `SubmitPolicy`, as the shell sees them.
pub type SubmitPolicyFacts = GoverningFacts<SubmitConfig>;

/// The facts of a Negotiator, as the shell sees them.
pub type NegotiatorFacts = GoverningFacts<NegotiatorConfig>;
