//! Dynamic slots, their state and activity, and the claim on them.

use std::sync::Arc;
use std::time::Duration;

use super::event::Remains;
use super::ids::{ClaimId, GroupName, JobKey, PodRef, ProcId, SlotName, SubmitterName};
use super::leaving::{Cause, Eviction, HoldReason, Preemptor, Recorded, Running};
use super::limits::Wants;
use super::machine::Load;
use super::negotiators::NegotiatorId;
use super::resources::Resources;
use super::time::Time;
use classad::Expr;

/// A slot's state with the activity that it has there: only the pairs of the manual's diagram can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The machine's owner has it.
    Owner,
    /// Free for jobs.
    Unclaimed(Unclaimed),
    /// Promised to a submitter, the claim not yet made: here, not yet written.
    Matched,
    /// Claimed by a submitter.
    Claimed(Claimed),
    /// The claim is being ended.
    Preempting(Preempting),
    /// Backfill work runs.
    Backfill(Backfill),
    /// Drained, or about to be.
    Drained(Drained),
}

/// Activities of Unclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Unclaimed {
    Idle,
    Benchmarking,
}

/// Activities of Claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Claimed {
    Idle,
    Busy,
    Suspended,
    Retiring,
}

/// Activities of Preempting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Preempting {
    Vacating,
    Killing,
}

/// Activities of Backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Backfill {
    Idle,
    Busy,
    Killing,
}

/// Activities of Drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Drained {
    Retiring,
    Idle,
}

impl State {
    /// The state's name, as in the ad's `State`.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Owner => "Owner",
            Self::Unclaimed(_) => "Unclaimed",
            Self::Matched => "Matched",
            Self::Claimed(_) => "Claimed",
            Self::Preempting(_) => "Preempting",
            Self::Backfill(_) => "Backfill",
            Self::Drained(_) => "Drained",
        }
    }

    /// The activity's name, as in the ad's `Activity`.
    pub const fn activity(self) -> &'static str {
        match self {
            Self::Owner
            | Self::Matched
            | Self::Unclaimed(Unclaimed::Idle)
            | Self::Claimed(Claimed::Idle)
            | Self::Backfill(Backfill::Idle)
            | Self::Drained(Drained::Idle) => "Idle",
            Self::Unclaimed(Unclaimed::Benchmarking) => "Benchmarking",
            Self::Claimed(Claimed::Busy) | Self::Backfill(Backfill::Busy) => "Busy",
            Self::Claimed(Claimed::Suspended) => "Suspended",
            Self::Claimed(Claimed::Retiring) | Self::Drained(Drained::Retiring) => "Retiring",
            Self::Preempting(Preempting::Vacating) => "Vacating",
            Self::Preempting(Preempting::Killing) | Self::Backfill(Backfill::Killing) => "Killing",
        }
    }
}

/// A submitter's claim on a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its id; it stays when the claim is used for another proc.
    pub id: ClaimId,
    /// Who is charged.
    pub submitter: SubmitterName,
    /// The accounting group that is charged.
    pub group: Option<GroupName>,
    /// The negotiator that made the match, and with which the submitter is charged.
    pub negotiator: NegotiatorId,
    /// Whether it came of the root's turn though the submitter is in a group: `RemoteAutoregroup`.
    pub regrouped: bool,
    /// What it costs: the slot's `SLOT_WEIGHT`.
    pub weight: f64,
    /// What its match took of limited things: `MatchedConcurrencyLimits`.
    pub limits: Wants,
    /// When it was made. `CLAIM_WORKLIFE` counts from here.
    pub since: Time,
    /// The job of the proc that it is for.
    pub job: JobKey,
    /// `HTCondor`'s number of that job.
    pub cluster: i64,
    /// The proc.
    pub proc: u32,
}

impl Claim {
    /// The proc that the claim is for.
    pub fn proc_id(&self) -> ProcId {
        ProcId { job: self.job.uid.clone(), proc: self.proc }
    }

    /// `ClusterId.ProcId`.
    pub fn job_id(&self) -> String {
        format!("{}.{}", self.cluster, self.proc)
    }

    /// The name of the pod. It follows from the proc alone, so that the API server itself refuses a second pod for it.
    pub fn pod_name(&self) -> String {
        pod_name(&self.job.name, self.proc)
    }
}

/// The name of a proc's pod.
pub fn pod_name(job: &str, proc: u32) -> String {
    format!("{job}-{proc}")
}

/// How long after a refusal a claim under which a pod runs is written again.
pub const CLAIM_RETRY: Duration = Duration::from_secs(30);

/// A pod that is being let go, kept in mind until that is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The pod.
    pub pod: PodRef,
    /// Whether it is deleted too.
    pub delete: bool,
    /// The call failed: it has to be made again.
    pub again: bool,
}

/// Whether the Slot object in the API server carries the claim as it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// It does not; it has to be written before anything depends on it.
    Due,
    /// A write is under way.
    Writing,
    /// The write failed as far as is known; the object may carry the claim all the same.
    Refused {
        /// When that was heard.
        at: Time,
    },
    /// It does.
    Written,
    /// The claim is over and the object is being deleted. Until it is gone its resources are nobody else's: a leader that
    /// starts now would find the claim and go on with it.
    Deleting,
}

/// How far the proc has come in its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The claim has no proc to run.
    Vacant,
    /// The claim's proc has no pod yet: it is made once the claim is written.
    Assigned,
    /// The pod's creation is under way.
    Requested,
    /// The pod exists.
    Active {
        /// The pod.
        pod: PodRef,
        /// Whether its containers have started.
        running: bool,
        /// Whether it is being deleted.
        deleting: bool,
    },
    /// The proc has ended. The tracking finalizer holds the pod until that is recorded and nothing of the pod is left.
    Ended {
        /// The pod.
        pod: PodRef,
        /// Whether it is being deleted.
        deleting: bool,
        /// What is left of it.
        remains: Remains,
    },
}

/// Why a proc must leave its slot before it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The job was deleted: `condor_rm`.
    JobRemoved,
    /// The node was deleted, or an admin says that it is out of service.
    MachineGone,
}

/// The last change of state or activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTransition {
    /// Its number in the manual's diagram.
    pub number: u8,
    /// Why, for people.
    pub why: Arc<str>,
    /// When.
    pub at: Time,
}

/// What a [`Latch`](super::Latch) gave when it was last looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Latched {
    /// The value, a truth as 1 or 0.
    pub value: Expr,
    /// Since when it is that.
    pub since: Time,
}

/// A dynamic slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Its name.
    pub name: SlotName,
    /// What was carved for it.
    pub resources: Resources,
    /// Its part of the machine's load.
    pub load: Load,
    /// What its latches gave, in their order.
    pub latched: Vec<Latched>,
    /// State and activity.
    pub state: State,
    /// When the state was entered.
    pub entered_state: Time,
    /// When the activity was entered.
    pub entered_activity: Time,
    /// The last transition.
    pub last: Option<LastTransition>,
    /// The claim.
    pub claim: Claim,
    /// Whether the API server has the claim.
    pub record: Record,
    /// What its object may still say that it holds of limited things, until the present claim is written.
    pub carried_limits: Wants,
    /// How far the proc has come.
    pub activation: Activation,
    /// Set when the proc must go.
    pub removal: Option<Removal>,
    /// How what is seen under its name stands to its claim.
    pub shown: Shown,
    /// The kubelet refused a pod in it: the claim is used no more, so that a node that refuses everything is asked once a
    /// cycle and not without end.
    pub spent: bool,
    /// The job that runs in it.
    pub running: Running,
    /// `RANK` for the claim's job, and between jobs for the last: `CurrentRank`.
    pub rank: f64,
    /// What an earlier leader recorded of a job that ran in it.
    pub recorded: Option<Recorded>,
    /// Whether the agent was last asked to suspend the job, or to let it go on. Nothing is known of what an earlier leader
    /// asked for.
    pub frozen: Option<bool>,
    /// The claim is in retirement, and why.
    pub retirement: Option<Cause>,
    /// The claim is in Preempting, and how far.
    pub eviction: Option<Eviction>,
    /// The claim that waits for this one to end. It is in no object: a new leader negotiates it again.
    pub preempting: Option<Box<Preemptor>>,
    /// When the policy is looked at again: one alarm at a time.
    pub alarm: Option<Time>,
    /// Its submitter is not charged for it while its job stands still.
    pub discounted: bool,
}

/// How what is seen under a slot's name stands to its claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// It is the claim's own, or nothing.
    #[default]
    Own,
    /// It is another object under a dynamic slot's name, whose claim is not written yet.
    Another,
    /// The claim on a static slot, whose object stays, is to be deleted, and nobody had heard that it was written: the object
    /// without it proves nothing.
    Unheard,
}

impl Slot {
    /// What the proc is held for once its pod has ended, if it is.
    pub fn held_for(&self) -> Option<HoldReason> {
        let evicted = self.eviction.as_ref().and_then(|eviction| eviction.hold.as_ref());
        let given_up = self.running.stuck.as_ref().filter(|stuck| stuck.given_up);
        evicted.or(given_up.map(|stuck| &stuck.obstacle.hold)).cloned()
    }

    /// A slot that somebody claims, as it is first known.
    pub fn new(name: SlotName, resources: Resources, claim: Claim, state: State, now: Time) -> Self {
        Self {
            name,
            resources,
            load: Load::default(),
            latched: Vec::new(),
            state,
            entered_state: now,
            entered_activity: now,
            last: None,
            claim,
            record: Record::Due,
            carried_limits: Wants::default(),
            activation: Activation::Vacant,
            removal: None,
            shown: Shown::Own,
            spent: false,
            running: Running::default(),
            rank: 0.0,
            recorded: None,
            frozen: None,
            retirement: None,
            eviction: None,
            preempting: None,
            alarm: None,
            discounted: false,
        }
    }
}
