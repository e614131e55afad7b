//! The manual's numbered transitions between states and activities: all of them, and no others.
//!
//! Source: the manual's policy chapter, "State and Activity Transitions", with its figure "Machine States and Activities"; 12 and
//! 12a as in HTCondor 25.11, which added Claimed/Cleaning. Where `WANT_VACATE` chooses the activity in Preempting, one number has
//! two arrows. For some events the manual has no direct arrow, for example when a suspended job ends; the slot then takes
//! several of the manual's arrows at the same time.

use std::sync::Arc;

use crate::pool::{
    Backfill, Claimed, Drained, LastTransition, MachineSlot, Number, Preempting, Slot, State, Time, Unclaimed,
};

/// One arrow of the manual's figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Transition {
    /// The number of the transition in the manual.
    pub number: Number,
    /// The state and activity before the transition.
    pub from: State,
    /// The state and activity after the transition.
    pub to: State,
    /// When the transition is taken, in the manual's words.
    pub words: &'static str,
}

const OWNER: State = State::Owner;
const UNCLAIMED_IDLE: State = State::Unclaimed(Unclaimed::Idle);
const UNCLAIMED_BENCHMARKING: State = State::Unclaimed(Unclaimed::Benchmarking);
const MATCHED: State = State::Matched;
const CLAIMED_IDLE: State = State::Claimed(Claimed::Idle);
const CLAIMED_BUSY: State = State::Claimed(Claimed::Busy);
const CLAIMED_SUSPENDED: State = State::Claimed(Claimed::Suspended);
const CLAIMED_RETIRING: State = State::Claimed(Claimed::Retiring);
const CLAIMED_CLEANING: State = State::Claimed(Claimed::Cleaning);
const PREEMPTING_VACATING: State = State::Preempting(Preempting::Vacating);
const PREEMPTING_KILLING: State = State::Preempting(Preempting::Killing);
const BACKFILL_IDLE: State = State::Backfill(Backfill::Idle);
const BACKFILL_BUSY: State = State::Backfill(Backfill::Busy);
const BACKFILL_KILLING: State = State::Backfill(Backfill::Killing);
const DRAINED_RETIRING: State = State::Drained(Drained::Retiring);
const DRAINED_IDLE: State = State::Drained(Drained::Idle);

macro_rules! transitions {
    (@letter) => { None };
    (@letter $letter:literal) => { Some($letter) };
    ($($name:ident = $number:literal $($letter:literal)?: $from:ident => $to:ident, $words:literal;)*) => {
        $(
            #[doc = concat!("**", $number, $($letter,)? "**: ", $words)]
            pub const $name: Transition = Transition {
                number: Number::new($number, transitions!(@letter $($letter)?)),
                from: $from,
                to: $to,
                words: $words,
            };
        )*

        /// All transitions, in the order of their numbers.
        pub const TRANSITIONS: &[Transition] = &[$($name),*];
    };
}

transitions! {
    OWNER_TO_UNCLAIMED = 1: OWNER => UNCLAIMED_IDLE, "the IS_OWNER expression no longer evaluates to TRUE";
    UNCLAIMED_TO_OWNER = 2: UNCLAIMED_IDLE => OWNER, "the IS_OWNER expression becomes TRUE";
    IDLE_TO_BENCHMARKING = 3: UNCLAIMED_IDLE => UNCLAIMED_BENCHMARKING, "RUNBENCHMARKS evaluates to TRUE";
    BENCHMARKING_TO_IDLE = 4: UNCLAIMED_BENCHMARKING => UNCLAIMED_IDLE, "the benchmarks complete";
    UNCLAIMED_TO_CLAIMED = 5: UNCLAIMED_IDLE => CLAIMED_IDLE, "the schedd initiates the claiming procedure before the negotiator's message arrives";
    UNCLAIMED_TO_MATCHED = 6: UNCLAIMED_IDLE => MATCHED, "the negotiator matches the machine with a requester";
    UNCLAIMED_TO_BACKFILL = 7: UNCLAIMED_IDLE => BACKFILL_IDLE, "START_BACKFILL evaluates to TRUE";
    MATCHED_TO_OWNER = 8: MATCHED => OWNER, "it is not claimed within MATCH_TIMEOUT, or START locally evaluates to FALSE";
    MATCHED_TO_CLAIMED = 9: MATCHED => CLAIMED_IDLE, "the schedd that was matched claims it";
    CLAIMED_IDLE_TO_PREEMPTING = 10: CLAIMED_IDLE => PREEMPTING_VACATING, "condor_vacate arrives, START locally evaluates to FALSE, or the claim is given up";
    CLAIMED_IDLE_TO_BUSY = 11: CLAIMED_IDLE => CLAIMED_BUSY, "the schedd activates the claim and starts a job";
    BUSY_TO_CLEANING = 12: CLAIMED_BUSY => CLAIMED_CLEANING, "the job exits, and its starter has sent the final update";
    CLEANING_TO_IDLE = 12 'a': CLAIMED_CLEANING => CLAIMED_IDLE, "the starter is reaped";
    BUSY_TO_RETIRING = 13: CLAIMED_BUSY => CLAIMED_RETIRING, "WANT_SUSPEND is FALSE and PREEMPT is TRUE, there is a better match, or the startd is shut down";
    BUSY_TO_SUSPENDED = 14: CLAIMED_BUSY => CLAIMED_SUSPENDED, "both WANT_SUSPEND and SUSPEND evaluate to TRUE";
    SUSPENDED_TO_BUSY = 15: CLAIMED_SUSPENDED => CLAIMED_BUSY, "CONTINUE evaluates to TRUE, and the claim has not been preempted";
    SUSPENDED_TO_RETIRING = 16: CLAIMED_SUSPENDED => CLAIMED_RETIRING, "PREEMPT is TRUE, or CONTINUE is and the claim has been preempted";
    SUSPENDED_TO_VACATING = 17: CLAIMED_SUSPENDED => PREEMPTING_VACATING, "the claim is in suspended retirement and the retirement time expires";
    SUSPENDED_TO_KILLING = 17: CLAIMED_SUSPENDED => PREEMPTING_KILLING, "the claim is in suspended retirement and the retirement time expires";
    RETIRING_TO_VACATING = 18: CLAIMED_RETIRING => PREEMPTING_VACATING, "the job finishes or its run time exceeds MaxJobRetirementTime";
    RETIRING_TO_KILLING = 18: CLAIMED_RETIRING => PREEMPTING_KILLING, "the job finishes or its run time exceeds MaxJobRetirementTime";
    RETIRING_TO_BUSY = 19: CLAIMED_RETIRING => CLAIMED_BUSY, "the machine was retiring because of a preempting claim only and the preempting claim goes away";
    RETIRING_TO_SUSPENDED = 20: CLAIMED_RETIRING => CLAIMED_SUSPENDED, "both WANT_SUSPEND and SUSPEND evaluate to TRUE";
    VACATING_TO_KILLING = 21: PREEMPTING_VACATING => PREEMPTING_KILLING, "KILL evaluates to TRUE, or the maximum vacating time is over";
    VACATING_TO_OWNER = 22: PREEMPTING_VACATING => OWNER, "the starter exits; the job was preempted because the machine owner came back";
    VACATING_TO_CLAIMED = 23: PREEMPTING_VACATING => CLAIMED_IDLE, "the starter exits; the job was preempted because a better match was found";
    KILLING_TO_CLAIMED = 24: PREEMPTING_KILLING => CLAIMED_IDLE, "the starter exits; the job was preempted because a better match was found";
    KILLING_TO_OWNER = 25: PREEMPTING_KILLING => OWNER, "the starter exits; the preemption was caused by the machine owner";
    BACKFILL_TO_BUSY = 26: BACKFILL_IDLE => BACKFILL_BUSY, "the backfill client is running";
    BACKFILL_TO_IDLE = 27: BACKFILL_BUSY => BACKFILL_IDLE, "the backfill client exits on its own";
    BACKFILL_TO_KILLING = 28: BACKFILL_BUSY => BACKFILL_KILLING, "the machine is matched or claimed, users return, or the startd is shut down";
    BACKFILL_KILLED = 29: BACKFILL_KILLING => BACKFILL_IDLE, "the backfill client and all its children have exited";
    BACKFILL_TO_OWNER = 30: BACKFILL_IDLE => OWNER, "EVICT_BACKFILL evaluates to TRUE, condor_vacate was used, or the startd is being shut down";
    BACKFILL_TO_CLAIMED = 31: BACKFILL_IDLE => CLAIMED_IDLE, "the schedd requests the claim before the negotiator's message arrives";
    BACKFILL_TO_MATCHED = 32: BACKFILL_IDLE => MATCHED, "the negotiator matches the machine with a requester";
    DRAINED_TO_IDLE = 33: DRAINED_RETIRING => DRAINED_IDLE, "all slots have been drained";
    DRAINED_RETIRING_TO_OWNER = 34: DRAINED_RETIRING => OWNER, "draining is finalized or canceled";
    DRAINED_IDLE_TO_OWNER = 35: DRAINED_IDLE => OWNER, "draining is finalized or canceled";
    OWNER_TO_DRAINED = 36: OWNER => DRAINED_RETIRING, "draining of the machine is initiated";
    UNCLAIMED_TO_DRAINED = 37: UNCLAIMED_IDLE => DRAINED_RETIRING, "draining of the machine is initiated";
}

/// A slot that takes transitions: a machine slot or a claimed slot.
pub trait Transits {
    /// The state and activity.
    fn state(&self) -> State;
    /// Enters a state and activity by a transition.
    fn enter(&mut self, to: State, taken: LastTransition);
}

impl Transits for Slot {
    fn state(&self) -> State {
        self.state()
    }

    fn enter(&mut self, to: State, taken: LastTransition) {
        self.enter(to, taken);
    }
}

impl Transits for MachineSlot {
    fn state(&self) -> State {
        self.state()
    }

    fn enter(&mut self, to: State, taken: LastTransition) {
        self.enter(to, taken);
    }
}

/// Takes a transition. Returns false and changes nothing if the slot is not in the state and activity where the transition starts.
pub fn take(slot: &mut impl Transits, transition: &Transition, why: impl Into<Arc<str>>, now: Time) -> bool {
    if slot.state() != transition.from {
        return false;
    }
    slot.enter(transition.to, LastTransition { number: transition.number, why: why.into(), at: now });
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pair(state: State) -> String {
        format!("{}/{}", state.state(), state.activity())
    }

    /// The rows as the manual gives them: number, from state/activity, to state/activity.
    #[test]
    fn the_table_reads_as_the_manual() {
        let rows: Vec<String> =
            TRANSITIONS.iter().map(|t| format!("{} {} {}", t.number, pair(t.from), pair(t.to))).collect();
        assert_eq!(
            rows,
            [
                "1 Owner/Idle Unclaimed/Idle",
                "2 Unclaimed/Idle Owner/Idle",
                "3 Unclaimed/Idle Unclaimed/Benchmarking",
                "4 Unclaimed/Benchmarking Unclaimed/Idle",
                "5 Unclaimed/Idle Claimed/Idle",
                "6 Unclaimed/Idle Matched/Idle",
                "7 Unclaimed/Idle Backfill/Idle",
                "8 Matched/Idle Owner/Idle",
                "9 Matched/Idle Claimed/Idle",
                "10 Claimed/Idle Preempting/Vacating",
                "11 Claimed/Idle Claimed/Busy",
                "12 Claimed/Busy Claimed/Cleaning",
                "12a Claimed/Cleaning Claimed/Idle",
                "13 Claimed/Busy Claimed/Retiring",
                "14 Claimed/Busy Claimed/Suspended",
                "15 Claimed/Suspended Claimed/Busy",
                "16 Claimed/Suspended Claimed/Retiring",
                "17 Claimed/Suspended Preempting/Vacating",
                "17 Claimed/Suspended Preempting/Killing",
                "18 Claimed/Retiring Preempting/Vacating",
                "18 Claimed/Retiring Preempting/Killing",
                "19 Claimed/Retiring Claimed/Busy",
                "20 Claimed/Retiring Claimed/Suspended",
                "21 Preempting/Vacating Preempting/Killing",
                "22 Preempting/Vacating Owner/Idle",
                "23 Preempting/Vacating Claimed/Idle",
                "24 Preempting/Killing Claimed/Idle",
                "25 Preempting/Killing Owner/Idle",
                "26 Backfill/Idle Backfill/Busy",
                "27 Backfill/Busy Backfill/Idle",
                "28 Backfill/Busy Backfill/Killing",
                "29 Backfill/Killing Backfill/Idle",
                "30 Backfill/Idle Owner/Idle",
                "31 Backfill/Idle Claimed/Idle",
                "32 Backfill/Idle Matched/Idle",
                "33 Drained/Retiring Drained/Idle",
                "34 Drained/Retiring Owner/Idle",
                "35 Drained/Idle Owner/Idle",
                "36 Owner/Idle Drained/Retiring",
                "37 Unclaimed/Idle Drained/Retiring",
            ]
        );
    }

    #[test]
    fn there_are_thirty_seven_and_12a_and_each_arrow_has_one_number() {
        let numbers: BTreeSet<Number> = TRANSITIONS.iter().map(|t| t.number).collect();
        let whole: Vec<u8> = numbers.iter().filter_map(|number| number.whole()).collect();
        assert_eq!(whole, (1..=37).collect::<Vec<u8>>());
        assert_eq!(numbers.len(), 38);
        let arrows: BTreeSet<(State, State)> = TRANSITIONS.iter().map(|t| (t.from, t.to)).collect();
        assert_eq!(arrows.len(), TRANSITIONS.len());
    }

    #[test]
    fn every_state_and_activity_can_be_entered_and_left() {
        let entered: BTreeSet<State> = TRANSITIONS.iter().map(|t| t.to).collect();
        let left: BTreeSet<State> = TRANSITIONS.iter().map(|t| t.from).collect();
        assert_eq!(entered, left);
        assert_eq!(entered.len(), 16, "the manual's pairs");
    }
}
