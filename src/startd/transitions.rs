//! The manual's numbered transitions between states and activities, as far as they are in use.

use std::sync::Arc;

use crate::pool::{Claimed, Drained, Preempting, Slot, State, Taken, Time, Unclaimed};

/// One arrow of the manual's diagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its number.
    pub number: u8,
    /// Where it starts.
    pub from: State,
    /// Where it ends.
    pub to: State,
}

macro_rules! transitions {
    ($($(#[$doc:meta])* $name:ident = $number:literal: $from:expr => $to:expr;)*) => {
        $($(#[$doc])* pub const $name: Transition = Transition { number: $number, from: $from, to: $to };)*

        /// All of them.
        #[cfg(test)]
        const ALL: &[Transition] = &[$($name),*];
    };
}

transitions! {
    /// 1: `IS_OWNER` is false; here, the node offers its resources.
    OWNER_TO_UNCLAIMED = 1: State::Owner => State::Unclaimed(Unclaimed::Idle);
    /// 2: `IS_OWNER` is true; here, the node offers nothing new (cordoned, not ready, tainted).
    UNCLAIMED_TO_OWNER = 2: State::Unclaimed(Unclaimed::Idle) => State::Owner;
    /// 6: the negotiator matched the slot with a job.
    UNCLAIMED_TO_MATCHED = 6: State::Unclaimed(Unclaimed::Idle) => State::Matched;
    /// 8: `MATCH_TIMEOUT` passed before the claim was made, or claiming failed.
    MATCHED_TO_OWNER = 8: State::Matched => State::Owner;
    /// 9: the claim was made; here, it is written.
    MATCHED_TO_CLAIMED = 9: State::Matched => State::Claimed(Claimed::Idle);
    /// 10: the claim is given up with no job running.
    CLAIMED_IDLE_TO_PREEMPTING = 10: State::Claimed(Claimed::Idle) => State::Preempting(Preempting::Vacating);
    /// 11: the claim is activated; here, the pod exists.
    CLAIMED_IDLE_TO_BUSY = 11: State::Claimed(Claimed::Idle) => State::Claimed(Claimed::Busy);
    /// 12: the starter exited; here, the pod's end is recorded.
    BUSY_TO_IDLE = 12: State::Claimed(Claimed::Busy) => State::Claimed(Claimed::Idle);
    /// 13: the job has to leave the machine.
    BUSY_TO_RETIRING = 13: State::Claimed(Claimed::Busy) => State::Claimed(Claimed::Retiring);
    /// 18: retirement is over.
    RETIRING_TO_PREEMPTING = 18: State::Claimed(Claimed::Retiring) => State::Preempting(Preempting::Vacating);
    /// 22: the job is gone and the claim is broken.
    VACATING_TO_OWNER = 22: State::Preempting(Preempting::Vacating) => State::Owner;
    /// 33: all slots have been drained.
    DRAINED_TO_IDLE = 33: State::Drained(Drained::Retiring) => State::Drained(Drained::Idle);
    /// 34: draining is finalized or canceled.
    DRAINED_RETIRING_TO_OWNER = 34: State::Drained(Drained::Retiring) => State::Owner;
    /// 35: draining is finalized or canceled.
    DRAINED_IDLE_TO_OWNER = 35: State::Drained(Drained::Idle) => State::Owner;
    /// 36: draining of the machine is initiated.
    OWNER_TO_DRAINED = 36: State::Owner => State::Drained(Drained::Retiring);
    /// 37: draining of the machine is initiated.
    UNCLAIMED_TO_DRAINED = 37: State::Unclaimed(Unclaimed::Idle) => State::Drained(Drained::Retiring);
}

/// Takes a transition. False, and nothing done, when the slot is not where it starts.
pub fn take(slot: &mut Slot, transition: &Transition, why: impl Into<Arc<str>>, now: Time) -> bool {
    if slot.state != transition.from {
        return false;
    }
    // A change of state is a change of activity too; within a state only the activity's time starts anew.
    if slot.state.state() != transition.to.state() {
        slot.entered_state = now;
    }
    slot.entered_activity = now;
    slot.state = transition.to;
    slot.last = Some(Taken { number: transition.number, why: why.into(), at: now });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows as the manual gives them: number, from state/activity, to state/activity.
    #[test]
    fn the_table_reads_as_the_manual() {
        let rows: Vec<String> = ALL
            .iter()
            .map(|t| {
                let (from, to) = (t.from, t.to);
                format!("{} {}/{} {}/{}", t.number, from.state(), from.activity(), to.state(), to.activity())
            })
            .collect();
        assert_eq!(
            rows,
            [
                "1 Owner/Idle Unclaimed/Idle",
                "2 Unclaimed/Idle Owner/Idle",
                "6 Unclaimed/Idle Matched/Idle",
                "8 Matched/Idle Owner/Idle",
                "9 Matched/Idle Claimed/Idle",
                "10 Claimed/Idle Preempting/Vacating",
                "11 Claimed/Idle Claimed/Busy",
                "12 Claimed/Busy Claimed/Idle",
                "13 Claimed/Busy Claimed/Retiring",
                "18 Claimed/Retiring Preempting/Vacating",
                "22 Preempting/Vacating Owner/Idle",
                "33 Drained/Retiring Drained/Idle",
                "34 Drained/Retiring Owner/Idle",
                "35 Drained/Idle Owner/Idle",
                "36 Owner/Idle Drained/Retiring",
                "37 Unclaimed/Idle Drained/Retiring",
            ]
        );
    }
}
