//! Claimed slots: dynamic slots, and static slots for as long as a claim is on them.
//!
//! | part | is |
//! | --- | --- |
//! | `state` | state and activity, and since when |
//! | `claim` | who has the slot, and for which proc |
//! | `record` | whether the API server has the claim |
//! | `activation` | how far the proc has come, and its pod |
//! | `happenings` | what happens to a slot: the only way in which a slot changes |

use std::sync::Arc;

use super::ids::{PodUid, SlotName};
use super::leaving::{Cause, Eviction, HoldReason, Preemptor, Retirement};
use super::limits::Wants;
use super::machine::Load;
use super::resources::Resources;
use super::time::Time;
use classad::Expr;
use state::CLAIM_ACTIVATED;

mod activation;
mod claim;
mod happenings;
#[cfg(test)]
mod kit;
mod record;
mod state;

pub use activation::{Activation, Entered, Recorded, Running};
pub use claim::{Assignment, Claim, pod_name};
pub use record::{CLAIM_RETRY, Record, Shown};
pub use state::{Backfill, Claimed, Drained, LastTransition, Number, Phase, Preempting, State, Unclaimed};

pub(super) use happenings::PodNews;

/// Why a proc must leave its slot before it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The proc's user wants that: the job was deleted, or the proc was removed, held or vacated. The pod has its own grace
    /// period.
    ByUser,
    /// The proc's user wants that at once: `condor_vacate_job -fast`.
    AtOnce,
    /// The node was deleted, or an admin says that it is out of service.
    MachineGone,
}

impl Removal {
    /// Whether the proc's user wants the proc to leave.
    pub const fn is_asked(self) -> bool {
        matches!(self, Self::ByUser | Self::AtOnce)
    }
}

/// The value of a [`Latch`](super::Latch) at its last evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Latched {
    /// The latch's name.
    pub name: Arc<str>,
    /// The value; a boolean is 1 or 0.
    pub value: Expr,
    /// Since when the latch has had this value.
    pub since: Time,
}

/// A claimed slot: a dynamic slot, or a static slot while a claim is on it.
///
/// Only the slot's own methods change a slot. Each fact is kept where the fact has a meaning: the pod and everything
/// that is known about its job are in [`Activation`], and the eviction is in the [`Retirement`] to which it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    name: SlotName,
    resources: Resources,
    load: Load,
    latched: Vec<Latched>,
    phase: Phase,
    claim: Claim,
    record: Record,
    sent: bool,
    named: Option<u32>,
    shown: Shown,
    carried_limits: Wants,
    activation: Activation,
    removal: Option<Removal>,
    spent: bool,
    rank: f64,
    recorded: Option<Box<Recorded>>,
    retirement: Option<Box<Retirement>>,
    preempting: Option<Box<Preemptor>>,
    alarm: Option<Time>,
    discounted: bool,
}

impl Slot {
    /// A newly claimed slot, whose claim is not written and has no proc yet.
    pub fn new(name: SlotName, resources: Resources, claim: Claim, phase: Phase) -> Self {
        Self {
            name,
            resources,
            load: Load::default(),
            latched: Vec::new(),
            phase,
            claim,
            record: Record::Due,
            sent: false,
            named: None,
            shown: Shown::Own,
            carried_limits: Wants::default(),
            activation: Activation::Vacant,
            removal: None,
            spent: false,
            rank: 0.0,
            recorded: None,
            retirement: None,
            preempting: None,
            alarm: None,
            discounted: false,
        }
    }

    /// The slot's name.
    pub const fn name(&self) -> &SlotName {
        &self.name
    }

    /// The resources that the slot holds.
    pub const fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The slot's part of the machine's load.
    pub const fn load(&self) -> Load {
        self.load
    }

    /// The values of the slot's latched expressions, in the order of `STARTD_LATCH_EXPRS`.
    pub fn latched(&self) -> &[Latched] {
        &self.latched
    }

    /// State and activity, and since when.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// State and activity.
    pub const fn state(&self) -> State {
        self.phase.state()
    }

    /// The claim.
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Whether the Slot object in the API server has the claim.
    pub const fn record(&self) -> Record {
        self.record
    }

    /// Whether the slot's object may exist: an operator has tried to write it.
    pub const fn may_have_object(&self) -> bool {
        self.sent
    }

    /// Whether an object with this claim has the slot's claim as the operator last wrote it. While a write is due or under
    /// way, the object may already have what is being written.
    pub fn is_named_by(&self, claim: &Claim) -> bool {
        let proc = claim.last.proc;
        let written = self.named == Some(proc);
        let coming = self.record != Record::Written && self.claim.last.proc == proc;
        claim.id == self.claim.id
            && claim.last.job.uid == self.claim.last.job.uid
            && claim.limits == self.claim.limits
            && (written || coming)
    }

    /// Whether the slot's claim was activated, and nothing has happened to the job since.
    pub fn has_just_begun(&self) -> bool {
        let activated = self.phase.last().is_some_and(|last| last.number == CLAIM_ACTIVATED);
        activated && self.active().is_some() && self.state() == State::Claimed(Claimed::Busy)
    }

    /// How the object that is seen under the slot's name relates to the claim.
    pub const fn shown(&self) -> Shown {
        self.shown
    }

    /// The units of concurrency limits that the slot's object may still name for earlier claims, until the present
    /// claim is written.
    pub const fn carried_limits(&self) -> &Wants {
        &self.carried_limits
    }

    /// How far the claim's proc has come.
    pub const fn activation(&self) -> &Activation {
        &self.activation
    }

    /// The proc that the claim serves; `None` while the slot is vacant.
    pub fn assignment(&self) -> Option<&Assignment> {
        (self.activation != Activation::Vacant).then_some(&self.claim.last)
    }

    /// The pod and its job; `None` while no pod is known.
    pub fn running(&self) -> Option<&Running> {
        self.activation.running()
    }

    /// The pod and its job; `None` if no pod is known or the proc has ended.
    pub fn active(&self) -> Option<&Running> {
        self.activation.active()
    }

    /// Whether the claim has no proc to run.
    pub fn is_vacant(&self) -> bool {
        self.activation == Activation::Vacant
    }

    /// Whether the status that an earlier leader wrote says that this pod runs in the slot.
    pub fn records(&self, pod: &PodUid) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| recorded.pod == *pod)
    }

    /// Whether the claim has a proc whose pod the operator has not requested yet.
    pub fn is_assigned(&self) -> bool {
        self.activation == Activation::Assigned
    }

    /// Whether the pod's creation is under way.
    pub const fn is_requested(&self) -> bool {
        matches!(self.activation, Activation::Requested { .. })
    }

    /// Whether the proc has ended and the tracking finalizer still keeps its pod.
    pub const fn has_ended(&self) -> bool {
        matches!(self.activation, Activation::Ended(..))
    }

    /// Why the proc must leave the slot, if it must.
    pub const fn removal(&self) -> Option<Removal> {
        self.removal
    }

    /// Whether the claim may serve no further proc, because the kubelet refused a pod in the slot. So a node that
    /// refuses every pod is tried once a cycle, and not without end.
    pub const fn is_spent(&self) -> bool {
        self.spent
    }

    /// `CurrentRank`: the slot's `RANK` for the claim's job, or between two jobs for the last one.
    pub const fn rank(&self) -> f64 {
        self.rank
    }

    /// Why the claim is in retirement or being ended, if it is.
    pub fn retires_for(&self) -> Option<Cause> {
        self.retirement.as_ref().map(|retirement| retirement.cause)
    }

    /// How the job is being sent away, if it is.
    pub fn eviction(&self) -> Option<&Eviction> {
        self.retirement.as_ref()?.eviction.as_ref()
    }

    /// The claim that waits for this one to end. No object has it: a new leader negotiates it again.
    pub fn preemptor(&self) -> Option<&Preemptor> {
        self.preempting.as_deref()
    }

    /// When the deciders look at the slot again. A slot has at most one alarm.
    pub const fn alarm(&self) -> Option<Time> {
        self.alarm
    }

    /// Whether the submitter is not charged for the claim at present, because the job is suspended.
    pub const fn is_discounted(&self) -> bool {
        self.discounted
    }

    /// The hold that the proc gets once its pod has ended; `None` if the proc is not to be held.
    pub fn held_for(&self) -> Option<HoldReason> {
        let evicted = self.eviction().and_then(|eviction| eviction.hold.as_ref());
        let stuck = self.running().and_then(|running| running.stuck.as_ref());
        let given_up = stuck.filter(|stuck| stuck.given_up);
        evicted.or(given_up.map(|stuck| &stuck.obstacle.hold)).cloned()
    }
}
