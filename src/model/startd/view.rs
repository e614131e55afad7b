//! The view of a claimed slot: everything that decides its next step; and the steps themselves.

use std::time::Duration;

use super::policy::{Answers, Question};
use super::retirement::{Terms, is_over, max_vacate_time};
use super::transitions::Transition;
use crate::pool::{BackfillStage, Cause, Eviction, Fence, HoldReason, Policy, Removal, Slot, Time};

/// How a machine is being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Jobs have their retirement times and their vacating times.
    Graceful,
    /// Jobs have only their vacating times.
    Quick,
    /// Jobs are killed at once.
    Fast,
}

/// The common retirement of jobs on a machine that is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// When the drain began.
    pub since: Time,
    /// When the retirement of the last job ends that ran when the drain began.
    pub until: Time,
}

/// Whether a machine is off, so that nobody can confirm a pod's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// The machine is on, or only silent.
    No,
    /// The machine's Node was deleted. A kubelet that is still there ends pods by the last grace period that it was
    /// told.
    NodeGone,
    /// An admin says that the machine is off.
    OutOfService,
}

/// Everything that decides the next step of a claimed slot.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct View<'a> {
    /// Whether the machine offers its resources to something new, and the slot is not broken.
    pub offered: bool,
    /// Whether the machine is off.
    pub off: Off,
    /// Whether the job still wants the claim's proc to start.
    pub wanted: bool,
    /// Whether the end or hold of the proc is recorded, or there is nothing to record.
    pub settled: bool,
    /// Whether the job's status records what people asked of its procs.
    pub acts_recorded: bool,
    /// The time before which no pod of the job starts, if the job says one.
    pub not_before: Option<Time>,
    /// Whether an agent works on the machine, which can suspend the job. Without an agent, `WANT_SUSPEND` counts as
    /// false.
    pub agent: bool,
    /// Whether the agent reports that the job is suspended.
    pub stands_still: bool,
    /// When the claim's lease expires, if the machine is silent and stays silent.
    pub lease_ends: Option<Time>,
    /// Whether the machine's agent has ended the pod. The agent promises to do so if the agent cannot renew its own
    /// Lease for as long as the claim's lease.
    pub fence: Fence,
    /// Whether an earlier pod of the proc, which has the name of the next pod, still exists.
    pub earlier_pod: bool,
    /// When the pod is given up, if it cannot start.
    pub starts_by: Option<Time>,
    /// The stage of the backfill work that still holds resources which the slot's claim needs.
    pub backfill: BackfillStage,
    /// How the machine is being drained, if it is.
    pub draining: Option<Pace>,
    /// The common retirement of the jobs that a graceful drain found.
    pub common: Option<Common>,
    /// Whether the claim that waits for this one still wants the slot.
    pub next_wanted: bool,
    /// The policy's times.
    pub policy: &'a Policy,
    /// Answers questions about the policy.
    pub answers: &'a dyn Answers,
    /// The present time.
    pub now: Time,
}

/// The next step of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing, until something happens.
    Rest,
    /// The slot takes a transition, with the reason and the change in the slot.
    Take(&'static Transition, &'static str, Change),
    /// Something must be done that is no transition.
    Do(Chore),
}

/// The change in a slot that comes with a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    None,
    /// The claim is activated: stores what is pledged to the job.
    Activate {
        /// `MachineMaxVacateTime`, seconds.
        pledged_vacate: i64,
        /// The job's own `MaxJobRetirementTime`, seconds.
        own_retirement: Option<i64>,
        /// How long the job may run in all, and how long it may vacate, in seconds.
        pledged: (i64, i64),
        /// `RANK` for the job.
        rank: f64,
    },
    /// The job is over, and the claim stays.
    Settle,
    /// The job is suspended from now on.
    Suspend,
    /// The job remains suspended, as an earlier leader left it.
    RemainSuspended,
    /// The claim is in retirement, for this cause.
    Retire(Cause),
    /// The claim is no longer in retirement.
    Unretire,
    /// The claim ends: its job is sent away. The cause counts if the claim was in no retirement.
    Evict(Cause, Eviction),
    /// The claim that waited takes the slot over.
    Succeed,
}

/// Something that must be done for a slot and is no transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Write the claim.
    WriteClaim,
    /// Create the pod.
    CreatePod,
    /// Take the proc, which has not started, from the claim.
    Withdraw,
    /// Delete the pod.
    DeletePod(Grace),
    /// Delete the pod, which cannot start. The proc is then held.
    GiveUp,
    /// Kill the job: shorten the pod's grace period as far as possible.
    KillPod,
    /// Ask the agent to kill the pod now, because the kubelet will end it much later.
    KillByAgent,
    /// `KILLING_TIMEOUT` has passed: ask the agent to kill what is left, and warn people.
    AskAgentToKill,
    /// Book the end of a pod whose end nobody confirms, since it is certain that nothing of it runs.
    LosePod,
    /// Read the Lease of the machine's agent: whether the agent kept its promise depends on that.
    ReadAgentLease,
    /// Ask the agent to suspend the job (true), or to let it continue (false).
    Suspend(bool),
    /// Make the retirement irreversible, because the owner wants the machine.
    Condemn,
    /// The claim that waits stops waiting, because nobody wants it any more.
    StopWaiting,
    /// Take the tracking finalizer off the pod.
    UntrackPod,
    /// Ask the schedd for another proc for the claim.
    FindWork,
    /// Delete the claim's object, because the claim is over.
    DeleteClaim,
    /// Return the slot's resources.
    ReturnSlot,
}

/// The grace period of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The pod's own, because its user wants it to go.
    Own,
    /// The shortest, because its user wants it to go at once.
    AtOnce,
    /// The rest of the vacating time.
    Vacating,
    /// A moment: the proc has ended, and other containers still run.
    Others,
    /// 0: it is certain that the pod does not run, and nobody is left who could confirm its end.
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

    /// Whether the machine has been silent for the claim's lease.
    pub(super) fn lease_is_over(&self) -> bool {
        self.lease_ends.is_some_and(|at| at <= self.now)
    }

    /// Why a claim ends at once, without retirement and vacating: its machine is gone, or its lease has expired.
    pub(super) fn lost(&self, slot: &Slot) -> Option<Cause> {
        if slot.removal() == Some(Removal::MachineGone) {
            Some(Cause::MachineGone)
        } else {
            self.lease_is_over().then_some(Cause::LeaseExpired)
        }
    }

    /// Whether the policy is evaluated now. A policy does not leave an activity at the moment when it was entered.
    pub(super) fn may_ask(&self, slot: &Slot) -> bool {
        self.now > slot.phase().entered_activity()
    }

    /// How long the job may run in all, and how long it may vacate, as machine and job say now.
    pub(super) fn pledged(&self) -> (i64, i64) {
        let terms = Terms { machine: self.answers.retirement(), job: self.answers.job_retirement() };
        let (allowed, vacate) = (terms.allowed().max(0), self.answers.machine_vacate());
        (allowed, max_vacate_time(vacate, self.answers.job_vacate(), allowed))
    }

    /// The longest time that the machine gives the job to vacate, whatever the job asks for: `MachineMaxVacateTime`, or the job's retirement
    /// if that is longer.
    pub fn longest_vacating(&self) -> Duration {
        let (allowed, _) = self.pledged();
        span(self.answers.machine_vacate().max(allowed))
    }

    /// How much retirement the job has left, and how long it may take to vacate.
    ///
    /// The slots of a machine that is drained are to be free together: "the eviction of jobs with shorter retirement
    /// time is delayed until the job with the longest retirement time needs to be evicted". The delay holds for jobs
    /// that had retirement left when the drain began, and that the present `START` lets in.
    pub(super) fn terms(&self, slot: &Slot) -> (i64, i64) {
        let terms = Terms { machine: self.answers.retirement(), job: self.answers.job_retirement() };
        let ran = seconds(slot.running().map_or(Duration::ZERO, |running| running.run_time(self.now)));
        let remaining = terms.remaining(ran);
        // A quick drain waits for no retirement, which a job may have to vacate all the same.
        let own = match self.draining {
            Some(Pace::Quick | Pace::Fast) => 0,
            _ => remaining,
        };
        let vacate = max_vacate_time(
            slot.running().map_or(0, |running| running.pledged_vacate),
            self.answers.job_vacate(),
            remaining,
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

    /// Whether the job must leave now.
    pub(super) fn retirement_is_over(&self, slot: &Slot) -> bool {
        let (remaining, vacate) = self.terms(slot);
        is_over(remaining, vacate)
    }

    /// How a claim with a running job is ended: whether the job is killed at once, and the eviction that follows.
    ///
    /// The job is vacated, with three exceptions. The job is killed in a fast drain; if the policy preempts the job and
    /// `WANT_VACATE` is false; and if nobody is left who waits for the job (the machine is gone, or the lease has
    /// expired).
    pub(super) fn eviction(&self, slot: &Slot, cause: Cause) -> (bool, Eviction) {
        let by_policy = cause == Cause::Preempt;
        // A fast drain also kills a job that leaves for another cause.
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

/// A span of time in whole seconds.
pub(super) fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

/// Seconds as a span of time; a negative number counts as 0.
pub(super) fn span(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

impl Change {
    /// Makes the change. Whoever took the transition calls this, with the slot in its new state.
    pub fn make(self, slot: &mut Slot, now: Time) {
        // Every other change ends a suspension.
        if !matches!(self, Self::Suspend | Self::RemainSuspended) {
            slot.continue_job(now);
        }
        match self {
            Self::None => {}
            Self::Activate { pledged_vacate, own_retirement, pledged, rank } => {
                slot.activate(pledged_vacate, own_retirement, pledged, rank, now);
            }
            Self::Settle => slot.settle(),
            Self::Suspend => slot.suspend(now),
            Self::RemainSuspended => slot.remain_suspended(now),
            Self::Retire(cause) => slot.retire(cause),
            Self::Unretire => slot.unretire(),
            Self::Evict(cause, eviction) => slot.evict(cause, eviction),
            Self::Succeed => slot.succeed(now),
        }
    }
}
