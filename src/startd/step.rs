//! What a dynamic slot does next: a function of the slot and what surrounds it.

use std::time::Duration;

use super::transitions::{
    BUSY_TO_IDLE, BUSY_TO_RETIRING, CLAIMED_IDLE_TO_BUSY, CLAIMED_IDLE_TO_PREEMPTING, MATCHED_TO_CLAIMED,
    MATCHED_TO_OWNER, RETIRING_TO_PREEMPTING, Transition, VACATING_TO_OWNER,
};
use crate::pool::{Activation, CLAIM_RETRY, Claimed, Preempting, Record, Removal, Slot, State, Time};

/// `MATCH_TIMEOUT`: how long a slot waits for its claim to be made.
pub const MATCH_TIMEOUT: Duration = Duration::from_mins(2);

/// What surrounds a slot.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its machine offers resources for something new.
    pub offered: bool,
    /// The job of its proc still wants to start it.
    pub wanted: bool,
    /// The end of its proc is recorded, or there is nothing to record.
    pub settled: bool,
    /// The time.
    pub now: Time,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until something happens.
    Rest,
    /// A transition, and why.
    Take(&'static Transition, &'static str),
    /// Work that is no transition.
    Do(Chore),
}

/// Work that is no transition.
#[derive(Debug, PartialEq, Eq)]
pub enum Chore {
    /// Write the claim.
    WriteClaim,
    /// Make the pod.
    CreatePod,
    /// Give the proc back to the queue: it has not started.
    Withdraw,
    /// Delete the pod, with its own grace or with none at all.
    DeletePod {
        /// Its node is gone, and nobody is left who could confirm the end.
        force: bool,
    },
    /// Let the pod go.
    ReleasePod,
    /// Ask the schedd for another proc for the claim.
    FindWork,
    /// Delete the claim's object: the claim is over.
    DeleteClaim,
    /// Return the resources.
    GiveBack,
}

/// The next step of a slot.
pub fn next(slot: &Slot, view: View) -> Step {
    match slot.state {
        State::Matched => matched(slot, view),
        State::Claimed(Claimed::Idle) => claimed_idle(slot, view),
        State::Claimed(Claimed::Busy) => claimed_busy(slot, view),
        State::Claimed(Claimed::Retiring) => {
            Step::Take(&RETIRING_TO_PREEMPTING, "the machine is gone: retirement is over")
        }
        State::Preempting(Preempting::Vacating) => vacating(slot, view),
        State::Owner => owner(slot),
        State::Claimed(Claimed::Suspended)
        | State::Preempting(Preempting::Killing)
        | State::Unclaimed(_)
        | State::Backfill(_)
        | State::Drained(_) => Step::Rest,
    }
}

fn owner(slot: &Slot) -> Step {
    match slot.record {
        // A match that failed before its claim was written left nothing behind.
        Record::Due if slot.last.as_ref().is_some_and(|last| last.number == MATCHED_TO_OWNER.number) => {
            Step::Do(Chore::GiveBack)
        }
        Record::Deleting => Step::Rest,
        Record::Due | Record::Writing | Record::Refused { .. } | Record::Written => {
            Step::Do(Chore::DeleteClaim)
        }
    }
}

fn matched(slot: &Slot, view: View) -> Step {
    if slot.activation == Activation::Vacant || slot.removal.is_some() || !view.wanted {
        return Step::Take(&MATCHED_TO_OWNER, "the job is no longer there to claim it");
    }
    if !view.offered {
        return Step::Take(&MATCHED_TO_OWNER, "the machine offers nothing new");
    }
    match slot.record {
        Record::Written => Step::Take(&MATCHED_TO_CLAIMED, "the claim is written"),
        _ if view.now.since(slot.entered_state) >= MATCH_TIMEOUT => {
            Step::Take(&MATCHED_TO_OWNER, "MATCH_TIMEOUT passed before the claim was written")
        }
        Record::Due | Record::Refused { .. } => Step::Do(Chore::WriteClaim),
        Record::Writing | Record::Deleting => Step::Rest,
    }
}

fn claimed_idle(slot: &Slot, view: View) -> Step {
    let leaving = slot.removal.is_some() || !view.offered;
    match &slot.activation {
        Activation::Assigned if leaving || !view.wanted => Step::Do(Chore::Withdraw),
        Activation::Assigned => match slot.record {
            Record::Due | Record::Refused { .. } => Step::Do(Chore::WriteClaim),
            Record::Writing | Record::Deleting => Step::Rest,
            Record::Written => Step::Do(Chore::CreatePod),
        },
        Activation::Requested => Step::Rest,
        Activation::Active { .. } | Activation::Ended { .. } => {
            Step::Take(&CLAIMED_IDLE_TO_BUSY, "the claim is activated: the pod exists")
        }
        Activation::Vacant if slot.removal == Some(Removal::MachineGone) || !view.offered => {
            Step::Take(&CLAIMED_IDLE_TO_PREEMPTING, "the machine offers nothing new")
        }
        Activation::Vacant => Step::Do(Chore::FindWork),
    }
}

fn claimed_busy(slot: &Slot, view: View) -> Step {
    match slot.record {
        // Somebody deleted or edited the Slot under a running pod.
        Record::Due => return Step::Do(Chore::WriteClaim),
        Record::Refused { at } if view.now.since(at) >= CLAIM_RETRY => return Step::Do(Chore::WriteClaim),
        Record::Refused { .. } | Record::Writing | Record::Written | Record::Deleting => {}
    }
    match &slot.activation {
        Activation::Active { .. } if slot.removal == Some(Removal::MachineGone) => {
            Step::Take(&BUSY_TO_RETIRING, "the machine is gone")
        }
        Activation::Active { deleting: false, .. } if slot.removal.is_some() => {
            Step::Do(Chore::DeletePod { force: false })
        }
        Activation::Ended { .. } if view.settled => Step::Do(Chore::ReleasePod),
        Activation::Vacant => Step::Take(&BUSY_TO_IDLE, "the job has ended"),
        _ => Step::Rest,
    }
}

fn vacating(slot: &Slot, view: View) -> Step {
    let force = slot.removal == Some(Removal::MachineGone);
    match &slot.activation {
        Activation::Active { deleting: false, .. } => Step::Do(Chore::DeletePod { force }),
        Activation::Ended { .. } if view.settled => Step::Do(Chore::ReleasePod),
        Activation::Vacant => Step::Take(&VACATING_TO_OWNER, "the claim is over"),
        Activation::Assigned => Step::Do(Chore::Withdraw),
        Activation::Requested | Activation::Active { .. } | Activation::Ended { .. } => Step::Rest,
    }
}
