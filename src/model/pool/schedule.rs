//! When negotiation cycles run: those that were, the one under way, and the pause before the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ids::{JobUid, SlotName};
use super::marks::Change;
use super::negotiators::{AtWork, NegotiatorId};
use super::time::Time;
use super::{Given, Pool, Rejections};

/// When cycles ran, and when the next is due.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Whether a cycle is under way. There is one at a time, of whichever negotiator, so that no proc is matched twice.
    pub under_way: bool,
    /// Cycles of all negotiators since the start.
    pub cycles: u64,
    /// The cycles of each negotiator.
    pub turns: BTreeMap<NegotiatorId, Turn>,
    /// When the next cycle is due, if there are several negotiators.
    pub next: Option<Time>,
    /// The pause after a cycle whose negotiator sets neither `NEGOTIATOR_CYCLE_DELAY` nor `NEGOTIATOR_MIN_INTERVAL`.
    pub pauses: Pauses,
}

/// How long the pause after a negotiation cycle is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pauses {
    /// The pause follows from what the cycle has cost.
    #[default]
    ByCost,
    /// HTCondor's defaults hold, as in virtual time, where a cycle costs nothing.
    Htcondors,
}

impl Schedule {
    /// The present state of a negotiator's cycles.
    pub fn turn(&self, id: &NegotiatorId) -> Turn {
        self.turns.get(id).cloned().unwrap_or_default()
    }
}

/// The figures of one cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleFigures {
    /// When the cycle started.
    pub started: Time,
    /// When the cycle ended.
    pub ended: Time,
    /// Matches made.
    pub matches: u64,
    /// Requests that found no match.
    pub rejects: u64,
    /// Submitters with idle procs.
    pub submitters: u64,
    /// Slots considered.
    pub slots: u64,
    /// Procs that waited.
    pub idle: u64,
    /// Pie spins.
    pub pies: u64,
    /// Why procs were left without a slot.
    pub rejections: Arc<Rejections>,
}

/// The state of a negotiator's cycles, and the result of the last one.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// When the last cycle started.
    pub started: Option<Time>,
    /// When the last cycle ended.
    pub ended: Option<Time>,
    /// Whether something changed that a cycle could act on: `condor_reschedule`.
    pub wanted: bool,
    /// The number of cycles since the operator's start.
    pub cycles: u64,
    /// The figures of the last cycle.
    pub last: Option<CycleFigures>,
    /// The allocations of the last cycle to groups.
    pub given: Given,
    /// The matches of the last cycle that became no claim although the job still waits.
    pub refused: BTreeSet<(JobUid, SlotName)>,
}

impl Pool {
    /// Notes that a negotiator's cycle begins. There is one cycle at a time, of whichever negotiator.
    pub fn begin_cycle(&mut self, id: &NegotiatorId, now: Time) {
        self.schedule.under_way = true;
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        (turn.wanted, turn.started) = (false, Some(now));
    }

    /// Sets how long the pause after a cycle is by default.
    pub fn set_pauses(&mut self, pauses: Pauses) {
        self.schedule.pauses = pauses;
    }

    /// Notes that the cycle that was under way has an outcome.
    pub fn cycle_answered(&mut self) {
        self.schedule.under_way = false;
        self.schedule.cycles += 1;
    }

    /// Sets when the next cycle is due, if there are several negotiators.
    pub fn set_next_cycle(&mut self, at: Option<Time>) {
        self.schedule.next = at;
    }

    /// Stores the matches of a negotiator's cycle that became no claim, and returns those that were refused in its
    /// previous cycle, too.
    pub fn set_refused(
        &mut self,
        id: &NegotiatorId,
        refused: BTreeSet<(JobUid, SlotName)>,
    ) -> Vec<(JobUid, SlotName)> {
        let turn = self.schedule.turns.entry(id.clone()).or_default();
        let again = turn.refused.intersection(&refused).cloned().collect();
        turn.refused = refused;
        again
    }

    /// Notes that a negotiator's cycle is over.
    pub fn end_cycle(&mut self, id: NegotiatorId, figures: CycleFigures, matched: bool, now: Time) {
        self.changed(Change::Cycle(id.name()));
        let turn = self.schedule.turns.entry(id).or_default();
        turn.cycles += 1;
        turn.ended = Some(now);
        turn.last = Some(figures);
        // As long as a cycle makes matches, the next may make more.
        turn.wanted |= matched;
    }

    /// If a cycle was wanted since the last call, each of these negotiators gets one.
    pub fn spread_wish(&mut self, all: &[AtWork]) {
        if self.take_cycle_wanted() {
            for one in all {
                self.schedule.turns.entry(one.id.clone()).or_default().wanted = true;
            }
        }
    }
}
