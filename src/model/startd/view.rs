//! What surrounds a slot, and what it does next in view of it.

use std::time::Duration;

use super::policy::{Answers, Question};
use super::retirement::{Terms, is_over, max_vacate_time};
use super::transitions::Transition;
use crate::pool::{BackfillStage, Cause, Eviction, Fence, HoldReason, Policy, Removal, Slot, Time};

/// How a machine is being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Jobs have their retirement time and their vacating time.
    Graceful,
    /// Jobs have their vacating time.
    Quick,
    /// Jobs are killed.
    Fast,
}

/// The retirement that jobs of a drained machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// When the drain began.
    pub since: Time,
    /// When the retirement of the last job ends that was there then.
    pub until: Time,
}

/// Whether a machine is off, so that nobody is there who could confirm a pod's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// It is on, or only silent.
    No,
    /// Its Node was deleted. A kubelet that is still there ends pods as it was last told.
    NodeGone,
    /// An admin vouches that it is off.
    OutOfService,
}

/// What surrounds a slot that somebody claims.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct View<'a> {
    /// Its machine offers resources for something new.
    pub offered: bool,
    /// Whether its machine is off.
    pub off: Off,
    /// The job of its proc still wants to start it.
    pub wanted: bool,
    /// The end of its proc is recorded, or there is nothing to record.
    pub settled: bool,
    /// An agent is at work on the machine, which can suspend the job. Without one `WANT_SUSPEND` counts as false.
    pub agent: bool,
    /// The agent says that the job is suspended.
    pub stands_still: bool,
    /// The machine is silent, and this is when the claim's lease expires, unless it is heard of.
    pub lease_ends: Option<Time>,
    /// Whether the machine's agent has ended the pod, as it promised for a silence of that length.
    pub fence: Fence,
    /// An earlier pod of its proc, which has the name of the next, is not gone yet.
    pub earlier_pod: bool,
    /// The pod cannot start, and this is when it is given up.
    pub starts_by: Option<Time>,
    /// How far the backfill work has come that holds what the slot is to have.
    pub backfill: BackfillStage,
    /// The machine is being drained.
    pub draining: Option<Pace>,
    /// For how long the jobs that a graceful drain found go on together.
    pub common: Option<Common>,
    /// The claim that waits for this one to end still wants the slot.
    pub next_wanted: bool,
    /// The policy's times.
    pub policy: &'a Policy,
    /// Who answers for the policy.
    pub answers: &'a dyn Answers,
    /// The time.
    pub now: Time,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing, until something happens.
    Rest,
    /// A transition, why, and what changes in the slot with it.
    Take(&'static Transition, &'static str, Change),
    /// Work that is no transition.
    Do(Chore),
}

/// What changes in a slot with a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    None,
    /// The claim is activated: what is pledged to the job.
    Activate {
        /// `MachineMaxVacateTime`, seconds.
        pledged_vacate: i64,
        /// The job's own `MaxJobRetirementTime`, seconds.
        own_retirement: Option<i64>,
        /// How long it may run in all, and vacate, seconds.
        granted: (i64, i64),
        /// `RANK`.
        rank: f64,
    },
    /// The job is over, the claim stays.
    Settle,
    /// The job stands still from now on.
    Suspend,
    /// The claim is in retirement.
    Retire(Cause),
    /// It is so no longer.
    Unretire,
    /// The claim, which is in retirement for this cause, is being ended.
    Evict(Cause, Eviction),
    /// The claim that waited takes the slot.
    Succeed,
}

/// Work that is no transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Write the claim.
    WriteClaim,
    /// Make the pod.
    CreatePod,
    /// Give the proc back to the queue: it has not started.
    Withdraw,
    /// Delete the pod.
    DeletePod(Grace),
    /// Delete the pod, which cannot start: the proc is held.
    GiveUp,
    /// Shorten the pod's grace to nothing: the job is killed.
    KillPod,
    /// Ask the agent to kill the pod now: the kubelet ends it much later.
    KillByAgent,
    /// `KILLING_TIMEOUT` is over: ask the agent to kill what is left, and warn.
    AskAgentToKill,
    /// Book the end of a pod whose end nobody confirms: it is certain that nothing of it runs.
    LosePod,
    /// Read the Lease of the machine's agent: whether it did as it promised depends on that.
    ReadAgentLease,
    /// Ask the agent to suspend the job, or to let it go on.
    Suspend(bool),
    /// The owner wants the machine: whatever the retirement was for, there is no way back from it.
    Condemn,
    /// The claim that waits goes: nobody wants it any more.
    StopWaiting,
    /// Let the pod go.
    UntrackPod,
    /// Ask the schedd for another proc for the claim.
    FindWork,
    /// Delete the claim's object: the claim is over.
    DeleteClaim,
    /// Return the resources.
    ReturnSlot,
}

/// How long a pod that is deleted has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// As long as its own spec says: its user deletes it.
    Own,
    /// The rest of its vacating time.
    Vacating,
    /// A moment: its proc has ended, and other containers run on.
    Others,
    /// None: nobody is left who could confirm the end, and it is certain that it does not run.
    Force,
}

impl View<'_> {
    /// Whether the answer means yes. Suspension needs an agent.
    pub(super) fn holds(&self, question: Question) -> bool {
        (self.agent || question != Question::WantSuspend) && self.answers.holds(question)
    }

    /// Whether `KILL` is true.
    pub fn kills(&self) -> bool {
        self.holds(Question::Kill)
    }

    /// Whether nothing was heard of the machine for the claim's lease.
    pub(super) fn lease_is_over(&self) -> bool {
        self.lease_ends.is_some_and(|at| at <= self.now)
    }

    /// Why a claim ends at once, without retirement and vacating: its machine is gone, or as good as that.
    pub(super) fn lost(&self, slot: &Slot) -> Option<Cause> {
        if slot.removal() == Some(Removal::MachineGone) {
            Some(Cause::MachineGone)
        } else {
            self.lease_is_over().then_some(Cause::LeaseExpired)
        }
    }

    /// Whether the policy is asked now. What was just entered is not left by it at the same moment.
    pub(super) fn may_ask(&self, slot: &Slot) -> bool {
        self.now > slot.phase().entered_activity()
    }

    /// How long the job may run in all, and how long it may take to vacate, as machine and job say now.
    pub(super) fn granted(&self) -> (i64, i64) {
        let terms = Terms { machine: self.answers.retirement(), job: self.answers.job_retirement() };
        let (granted, pledged) = (terms.granted().max(0), self.answers.machine_vacate());
        (granted, max_vacate_time(pledged, self.answers.job_vacate(), granted))
    }

    /// How much retirement the job has left, and how long it may take to vacate.
    ///
    /// Of a machine that is drained all slots are to be free together: "the eviction of jobs with shorter retirement time is
    /// delayed until the job with the longest retirement time needs to be evicted". That is so for jobs which had any left when
    /// the drain began, and which `START` lets in meanwhile.
    pub(super) fn terms(&self, slot: &Slot) -> (i64, i64) {
        let terms = Terms { machine: self.answers.retirement(), job: self.answers.job_retirement() };
        let ran = seconds(slot.running().map_or(Duration::ZERO, |running| running.run_time(self.now)));
        let own = match self.draining {
            Some(Pace::Quick | Pace::Fast) => 0,
            _ => terms.remaining(ran),
        };
        let vacate = max_vacate_time(
            slot.running().map_or(0, |running| running.pledged_vacate),
            self.answers.job_vacate(),
            own,
        );
        let shared = self.common.filter(|common| {
            let before = ran.saturating_sub(seconds(self.now.since(common.since)));
            self.draining == Some(Pace::Graceful)
                && terms.remaining(before.max(0)) > 0
                && self.holds(Question::Start)
        });
        let left = shared.map_or(0, |common| seconds(common.until.since(self.now)));
        (own.max(left), vacate)
    }

    /// Whether the job has to go now.
    pub(super) fn retirement_is_over(&self, slot: &Slot) -> bool {
        let (remaining, vacate) = self.terms(slot);
        is_over(remaining, vacate)
    }

    /// How a claim with a running job is ended: softly, unless its owner wants the slot back and `WANT_VACATE` is false, or
    /// nobody waits for it.
    pub(super) fn eviction(&self, slot: &Slot, cause: Cause) -> (bool, Eviction) {
        let by_policy = cause == Cause::Preempt;
        // A fast drain kills whatever is on its way out for another cause, too.
        let kill = self.draining == Some(Pace::Fast)
            || match cause {
                Cause::MachineGone | Cause::LeaseExpired => true,
                Cause::Preempt => !self.holds(Question::WantVacate),
                Cause::BetterClaim | Cause::Draining => false,
            };
        let (_, vacate) = self.terms(slot);
        let until = if kill { self.now } else { self.now + span(vacate) };
        let hold: Option<HoldReason> =
            (by_policy && self.holds(Question::WantHold)).then(|| self.answers.hold());
        (kill, Eviction::until(until, hold))
    }
}

/// Whole seconds.
pub(super) fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

/// Seconds as a span; none below zero.
pub(super) fn span(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

impl Change {
    /// Makes the change. Called with the slot in its new state, by whoever took the transition.
    pub fn make(self, slot: &mut Slot, now: Time) {
        // Whatever the next change is, it ends a suspension.
        if self != Self::Suspend {
            slot.continue_job(now);
        }
        match self {
            Self::None => {}
            Self::Activate { pledged_vacate, own_retirement, granted, rank } => {
                slot.activate(pledged_vacate, own_retirement, granted, rank, now);
            }
            Self::Settle => slot.settle(),
            Self::Suspend => slot.suspend(now),
            Self::Retire(cause) => slot.retire(cause),
            Self::Unretire => slot.unretire(),
            Self::Evict(cause, eviction) => slot.evict(cause, eviction),
            Self::Succeed => slot.succeed(now),
        }
    }
}
