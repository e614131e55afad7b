//! Decides what a claimed slot does next: a function of the slot and its view.
//!
//! Source: the manual's policy chapter, "State and Activity Transitions". In each state and activity, the rules are
//! tried in the startd's order, and the first that applies counts. Two rules are due to pods: a removed job ends in its
//! slot, as HTCondor's schedd would end it; and nothing that a pod holds is returned before its end is confirmed.

use std::time::Duration;

use super::leave::{LEASE_EXPIRED, ended, is_over_unsaid, killing, owner, vacating};
use super::policy::Question;
use super::transitions::{
    BUSY_TO_CLEANING, BUSY_TO_RETIRING, BUSY_TO_SUSPENDED, CLAIMED_IDLE_TO_BUSY, CLAIMED_IDLE_TO_PREEMPTING,
    CLEANING_TO_IDLE, MATCHED_TO_CLAIMED, MATCHED_TO_OWNER, RETIRING_TO_BUSY, RETIRING_TO_KILLING,
    RETIRING_TO_SUSPENDED, RETIRING_TO_VACATING, SUSPENDED_TO_BUSY, SUSPENDED_TO_KILLING,
    SUSPENDED_TO_RETIRING, SUSPENDED_TO_VACATING, Transition,
};
use super::view::{Change, Chore, Grace, Step, View};
use super::without_claim::{Surroundings, Wanted, without_claim};
use crate::pool::{
    Activation, BackfillStage, CLAIM_RETRY, Cause, Claimed, Preempting, Record, Removal, Slot, State, Time,
};

/// The next step of a slot.
pub fn next(slot: &Slot, view: &View) -> Step {
    if slot.preemptor().is_some() && !view.next_wanted {
        return Step::Do(Chore::StopWaiting);
    }
    match slot.state() {
        State::Matched => matched(slot, view),
        State::Claimed(Claimed::Idle) => claimed_idle(slot, view),
        State::Claimed(Claimed::Busy) => busy(slot, view),
        State::Claimed(Claimed::Suspended) => suspended(slot, view),
        State::Claimed(Claimed::Retiring) => retiring(slot, view),
        State::Claimed(Claimed::Cleaning) => cleaning(slot, view),
        State::Preempting(Preempting::Vacating) => vacating(slot, view),
        State::Preempting(Preempting::Killing) => killing(slot, view),
        State::Owner => owner(slot),
        State::Backfill(_) => backfill(slot, view),
        // A slot in one of these states has no claim: `without_claim` says what it does.
        State::Unclaimed(_) | State::Drained(_) => Step::Rest,
    }
}

/// The reason why a match fails; `None` if the match still holds.
fn why_match_fails(slot: &Slot, view: &View) -> Option<&'static str> {
    if slot.is_vacant() || slot.removal().is_some() || !view.wanted {
        Some("the job is no longer there to claim it")
    } else if !view.offered {
        Some("the machine offers nothing new")
    } else if view.draining.is_some() {
        Some("the machine is being drained")
    } else {
        None
    }
}

/// A slot that was matched while it did backfill work. The work ends first. The match waits no longer than any other,
/// and nobody gets the slot before what the work holds is free.
fn backfill(slot: &Slot, view: &View) -> Step {
    let late = view.now.since(slot.claim().since) >= view.policy.match_timeout;
    let over = late || why_match_fails(slot, view).is_some();
    if over && slot.is_assigned() {
        return Step::Do(Chore::Withdraw);
    }
    let around = Surroundings {
        owner: over,
        backfill: view.backfill,
        wanted: Wanted::Matched,
        ..Surroundings::default()
    };
    without_claim(slot.state(), &around).map_or(Step::Rest, |(transition, why)| {
        let why = if transition.to == State::Owner { "the match came to nothing" } else { why };
        Step::Take(transition, why, Change::None)
    })
}

fn matched(slot: &Slot, view: &View) -> Step {
    let fail = |why| Step::Take(&MATCHED_TO_OWNER, why, Change::None);
    if let Some(why) = why_match_fails(slot, view) {
        return fail(why);
    }
    match slot.record() {
        Record::Written => Step::Take(&MATCHED_TO_CLAIMED, "the claim is written", Change::None),
        Record::Unwritten => {
            Step::Take(&MATCHED_TO_CLAIMED, "the claim's pod will say whose the claim is", Change::None)
        }
        _ if view.now.since(slot.phase().entered_state()) >= view.policy.match_timeout => {
            fail("MATCH_TIMEOUT passed before the claim was written")
        }
        Record::Due | Record::Refused { .. } => Step::Do(Chore::WriteClaim),
        Record::Writing | Record::Deleting => Step::Rest,
    }
}

fn claimed_idle(slot: &Slot, view: &View) -> Step {
    let ends = why_idle_ends(slot, view);
    match slot.activation() {
        Activation::Assigned if ends.is_some() || slot.removal().is_some() || !view.wanted => {
            Step::Do(Chore::Withdraw)
        }
        Activation::Assigned => match slot.record() {
            Record::Due | Record::Refused { .. } => Step::Do(Chore::WriteClaim),
            Record::Writing | Record::Deleting => Step::Rest,
            // The claim waits for the proc's time, which may be long.
            Record::Unwritten if waits_for_time(view) => Step::Do(Chore::WriteClaim),
            Record::Written | Record::Unwritten => start(slot, view),
        },
        // The claim has waited for its pod for long, or somebody edited the Slot.
        Activation::Requested { .. } if slot.record() == Record::Due => Step::Do(Chore::WriteClaim),
        Activation::Requested { .. } => Step::Rest,
        Activation::Active(_) | Activation::Ended(..) => Step::Take(
            &CLAIMED_IDLE_TO_BUSY,
            "the claim is activated: the pod exists",
            Change::Activate {
                pledged_vacate: view.answers.machine_vacate(),
                own_retirement: view.answers.job_retirement(),
                pledged: view.pledged(),
                rank: view.answers.rank(),
            },
        ),
        Activation::Vacant => match ends {
            Some(why) => Step::Take(&CLAIMED_IDLE_TO_PREEMPTING, why, Change::None),
            None => Step::Do(Chore::FindWork),
        },
    }
}

/// Creates the pod of the claim's proc, unless something has to come first.
fn start(slot: &Slot, view: &View) -> Step {
    // Backfill work that an earlier leader began, before the claim was known, ends first.
    let backfill = view.backfill != BackfillStage::None;
    let earlier_pod = view.earlier_pod && view.now < earlier_pod_goes_by(slot);
    // Acts must be recorded before anything new starts.
    let waits = backfill || earlier_pod || !view.acts_recorded || waits_for_time(view);
    if waits { Step::Rest } else { Step::Do(Chore::CreatePod) }
}

/// Whether the proc's time to start has not come.
fn waits_for_time(view: &View) -> bool {
    view.not_before.is_some_and(|at| view.now < at)
}

/// Until when a claim waits for an earlier pod of its proc. Somebody else's finalizer may keep that pod for ever. Then
/// the API server refuses the next pod, and the proc is tried again after a pause.
pub(super) fn earlier_pod_goes_by(slot: &Slot) -> Time {
    slot.phase().entered_activity() + Duration::from_secs(30)
}

/// Why a claim without a job ends; `None` if it does not. The schedd checks `CLAIM_WORKLIFE` when it looks for another
/// job.
fn why_idle_ends(slot: &Slot, view: &View) -> Option<&'static str> {
    if slot.removal() == Some(Removal::MachineGone) || !view.offered {
        Some("the machine offers nothing new")
    } else if slot.preemptor().is_some() {
        Some("a better claim waits")
    } else if view.draining.is_some() {
        Some("the machine is being drained")
    } else if view.holds(Question::IsOwner) {
        Some("IS_OWNER is true")
    } else {
        None
    }
}

/// A call that is needed while a pod runs, in whatever activity: the claim must be written because somebody edited or
/// deleted it, or the agent must be told whether the job is to be suspended.
fn upkeep(slot: &Slot, view: &View, still: bool) -> Option<Chore> {
    match slot.record() {
        Record::Due => return Some(Chore::WriteClaim),
        Record::Refused { at } if view.now.since(at) >= CLAIM_RETRY => return Some(Chore::WriteClaim),
        Record::Refused { .. } | Record::Unwritten | Record::Writing | Record::Written | Record::Deleting => {
        }
    }
    let running = slot.active().filter(|_| slot.removal() != Some(Removal::MachineGone))?;
    let differs = match running.frozen {
        Some(asked) => asked != still,
        // An earlier leader may have asked the agent to suspend the job.
        None => still || view.stands_still || running.found_suspended,
    };
    differs.then_some(Chore::Suspend(still))
}

/// Whether the pod cannot start, and its time is over.
fn gives_up(view: &View) -> bool {
    view.starts_by.is_some_and(|at| at <= view.now)
}

/// The step for a pod that has ended, whose job was removed, or that cannot start. The startd takes the same step in each
/// activity with a job.
fn of_pod(slot: &Slot, view: &View) -> Option<Step> {
    match slot.activation() {
        Activation::Ended(pod, remains) => Some(ended(pod, view, *remains)),
        Activation::Requested { .. } => Some(Step::Rest),
        Activation::Active(pod) if is_over_unsaid(pod, view) => Some(Step::Do(Chore::LosePod)),
        // Once the pod is being deleted, the machine's owner, a drain or a better claim may still send the claim away sooner than its user
        // wants.
        Activation::Active(pod) if !pod.deleting && slot.removal().is_some_and(Removal::is_asked) => {
            Some(match slot.removal() {
                Some(Removal::AtOnce) => Step::Do(Chore::DeletePod(Grace::AtOnce)),
                _ => Step::Do(Chore::DeletePod(Grace::Own)),
            })
        }
        Activation::Active(pod) if !pod.deleting && gives_up(view) => Some(Step::Do(Chore::GiveUp)),
        Activation::Vacant | Activation::Assigned | Activation::Active(_) => None,
    }
}

fn retire(transition: &'static Transition, cause: Cause) -> Step {
    Step::Take(transition, retires_for(cause), Change::Retire(cause))
}

fn retires_for(cause: Cause) -> &'static str {
    match cause {
        Cause::Preempt => "PREEMPT is true",
        Cause::BetterClaim => "a better claim waits",
        Cause::Draining => "the machine is being drained",
        Cause::MachineGone => "the machine is gone",
        Cause::LeaseExpired => LEASE_EXPIRED,
    }
}

/// The cause for which a claim must leave, apart from the slot's policy.
fn asked_to_leave(slot: &Slot, view: &View) -> Option<Cause> {
    if view.draining.is_some() {
        Some(Cause::Draining)
    } else if slot.preemptor().is_some() {
        Some(Cause::BetterClaim)
    } else {
        None
    }
}

/// Whether the pod may be suspended. A pod that is being deleted must be able to shut down.
fn may_stand_still(slot: &Slot) -> bool {
    slot.active().is_some_and(|pod| !pod.deleting)
}

/// Whether an earlier leader suspended the job, and nobody has asked for anything else since. The job remains suspended, and
/// CONTINUE decides when the job goes on.
fn was_suspended(slot: &Slot, view: &View) -> bool {
    slot.active().is_some_and(|running| running.found_suspended) && why_it_must_run(slot, view).is_none()
}

/// Why a job cannot stand still; `None` if it can.
fn why_it_must_run(slot: &Slot, view: &View) -> Option<&'static str> {
    if slot.removal().is_some_and(Removal::is_asked) {
        Some("the job was removed, held or vacated")
    } else if gives_up(view) {
        Some("the pod cannot start")
    } else if !may_stand_still(slot) {
        Some("the pod is being deleted: a suspended job cannot shut down")
    } else if !view.agent {
        Some("the agent is gone: nobody could let the job go on later")
    } else {
        None
    }
}

fn busy(slot: &Slot, view: &View) -> Step {
    if was_suspended(slot, view) {
        return Step::Take(
            &BUSY_TO_SUSPENDED,
            "an earlier leader suspended the job",
            Change::RemainSuspended,
        );
    }
    if let Some(chore) = upkeep(slot, view, false) {
        return Step::Do(chore);
    }
    if slot.is_vacant() || slot.has_ended() {
        return Step::Take(&BUSY_TO_CLEANING, "the job has ended", Change::None);
    }
    if let Some(cause) = view.lost(slot).filter(|_| slot.active().is_some()) {
        return retire(&BUSY_TO_RETIRING, cause);
    }
    if let Some(step) = of_pod(slot, view) {
        return step;
    }
    if view.may_ask(slot) {
        if view.holds(Question::WantSuspend) {
            // While WANT_SUSPEND is true PREEMPT is not evaluated: the job is suspended first.
            if may_stand_still(slot) && view.holds(Question::Suspend) {
                return Step::Take(&BUSY_TO_SUSPENDED, "WANT_SUSPEND and SUSPEND are true", Change::Suspend);
            }
        } else if view.holds(Question::Preempt) {
            return retire(&BUSY_TO_RETIRING, Cause::Preempt);
        }
    }
    match asked_to_leave(slot, view) {
        Some(cause) => retire(&BUSY_TO_RETIRING, cause),
        None => Step::Rest,
    }
}

/// The job has ended. Its end is recorded, and the remains of its pod go. No policy is asked: HTCondor's startd does not ask its
/// policy while it waits for the starter, either.
fn cleaning(slot: &Slot, view: &View) -> Step {
    if let Some(chore) = upkeep(slot, view, false) {
        return Step::Do(chore);
    }
    if slot.is_vacant() {
        return Step::Take(&CLEANING_TO_IDLE, "nothing of the job is left", Change::Settle);
    }
    of_pod(slot, view).unwrap_or(Step::Rest)
}

fn suspended(slot: &Slot, view: &View) -> Step {
    let resume = |why| match slot.retires_for() {
        Some(cause) => Step::Take(&SUSPENDED_TO_RETIRING, why, Change::Retire(cause)),
        None => Step::Take(&SUSPENDED_TO_BUSY, why, Change::None),
    };
    // The manual has no arrow for a job that ends while it is suspended, so the slot passes through Busy.
    if slot.active().is_none() {
        return resume("the suspended job has ended");
    }
    if let Some(cause) = view.lost(slot) {
        return retire(&SUSPENDED_TO_RETIRING, cause);
    }
    if let Some(why) = why_it_must_run(slot, view) {
        return resume(why);
    }
    if let Some(chore) = upkeep(slot, view, true) {
        return Step::Do(chore);
    }
    if let Some(cause) = slot.retires_for().filter(|_| view.retirement_is_over(slot)) {
        if cause != Cause::Preempt && view.holds(Question::Preempt) {
            return Step::Do(Chore::Condemn);
        }
        let (kill, eviction) = view.eviction(slot, cause);
        let transition = if kill { &SUSPENDED_TO_KILLING } else { &SUSPENDED_TO_VACATING };
        return Step::Take(transition, "retirement is over", Change::Evict(cause, eviction));
    }
    let asks = view.may_ask(slot);
    if asks && slot.retires_for() != Some(Cause::Preempt) && view.holds(Question::Preempt) {
        return retire(&SUSPENDED_TO_RETIRING, Cause::Preempt);
    }
    if let Some(cause) = asked_to_leave(slot, view).filter(|_| slot.retires_for().is_none()) {
        return retire(&SUSPENDED_TO_RETIRING, cause);
    }
    if asks && view.holds(Question::Continue) {
        return resume("CONTINUE is true");
    }
    Step::Rest
}

fn retiring(slot: &Slot, view: &View) -> Step {
    let lost = view.lost(slot);
    let cause = lost.or(slot.retires_for()).unwrap_or(Cause::Preempt);
    // A job that would be suspended again at once is not continued for a moment.
    let stays_still =
        || may_stand_still(slot) && view.holds(Question::WantSuspend) && view.holds(Question::Suspend);
    if let Some(chore) = upkeep(slot, view, false).filter(|_| lost.is_none())
        && !(chore == Chore::Suspend(false) && stays_still())
    {
        return Step::Do(chore);
    }
    let evict = |why| {
        let (kill, eviction) = view.eviction(slot, cause);
        let transition = if kill { &RETIRING_TO_KILLING } else { &RETIRING_TO_VACATING };
        Step::Take(transition, why, Change::Evict(cause, eviction))
    };
    if slot.is_vacant() {
        return Step::Take(&RETIRING_TO_VACATING, "the job has ended in retirement", Change::None);
    }
    if let Some(cause) = lost.filter(|_| slot.active().is_some()) {
        return evict(match cause {
            Cause::LeaseExpired => LEASE_EXPIRED,
            _ => "the machine is gone: retirement is over",
        });
    }
    if let Some(step) = of_pod(slot, view) {
        return step;
    }
    let over = view.retirement_is_over(slot);
    let suspends = view.holds(Question::WantSuspend);
    // At the end of the retirement PREEMPT is asked in any case: a policy may put jobs on hold while the machine drains.
    if cause != Cause::Preempt && (over || !suspends) && view.holds(Question::Preempt) {
        return Step::Do(Chore::Condemn);
    }
    if over {
        return evict("retirement is over");
    }
    if cause.is_reversible() && asked_to_leave(slot, view).is_none() {
        return Step::Take(&RETIRING_TO_BUSY, "nothing asks for the slot any more", Change::Unretire);
    }
    if suspends && may_stand_still(slot) && view.holds(Question::Suspend) {
        return Step::Take(&RETIRING_TO_SUSPENDED, "WANT_SUSPEND and SUSPEND are true", Change::Suspend);
    }
    Step::Rest
}
