//! Transitions of slots that nobody has claimed: between Owner, Unclaimed, Backfill and Drained, and out of them.
//!
//! Source: the manual's policy chapter, "State and Activity Transitions". The rules are tried in the startd's order,
//! and the first that applies counts.

use super::transitions::{
    BACKFILL_KILLED, BACKFILL_TO_BUSY, BACKFILL_TO_CLAIMED, BACKFILL_TO_IDLE, BACKFILL_TO_KILLING,
    BACKFILL_TO_MATCHED, BACKFILL_TO_OWNER, BENCHMARKING_TO_IDLE, DRAINED_IDLE_TO_OWNER,
    DRAINED_RETIRING_TO_OWNER, DRAINED_TO_IDLE, IDLE_TO_BENCHMARKING, OWNER_TO_DRAINED, OWNER_TO_UNCLAIMED,
    Transition, UNCLAIMED_TO_BACKFILL, UNCLAIMED_TO_CLAIMED, UNCLAIMED_TO_DRAINED, UNCLAIMED_TO_MATCHED,
    UNCLAIMED_TO_OWNER,
};
use super::view::Pace;
use crate::pool::{Backfill, BackfillStage, Drained, State, Unclaimed};

/// Who wants an unclaimed slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Nobody.
    #[default]
    No,
    /// The negotiator has matched the slot.
    Matched,
    /// A schedd claims the slot, without a match that the startd heard of.
    Claimed,
}

/// The facts that decide the transition of an unclaimed slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Surroundings {
    /// Whether `IS_OWNER` is true, or the machine offers nothing.
    pub owner: bool,
    /// How the machine is being drained, if it is.
    pub draining: Option<Pace>,
    /// Whether every slot of the machine is drained.
    pub all_drained: bool,
    /// Whether benchmarks are to run: `RUNBENCHMARKS` is true, an agent can run them, and they did not just run.
    pub benchmark: bool,
    /// Whether benchmarks are running.
    pub benchmarking: bool,
    /// Whether backfill is enabled and `START_BACKFILL` is true.
    pub start_backfill: bool,
    /// Whether `EVICT_BACKFILL` is true.
    pub evict_backfill: bool,
    /// How far the slot's backfill work has come.
    pub backfill: BackfillStage,
    /// Whether backfill work must end while the slot stays in Backfill: claims wait for what the work holds, or the
    /// work is to begin anew in another way.
    pub clear: bool,
    /// Who wants the slot.
    pub wanted: Wanted,
}

type NextTransition = Option<(&'static Transition, &'static str)>;

/// The transition that the slot takes now, with the reason; `None` if the slot stays as it is.
pub fn without_claim(state: State, view: &Surroundings) -> NextTransition {
    match state {
        State::Owner => from_owner(view),
        State::Unclaimed(Unclaimed::Idle) => from_unclaimed(view),
        State::Unclaimed(Unclaimed::Benchmarking) => from_benchmarking(view),
        State::Backfill(Backfill::Idle) => from_backfill(view),
        State::Backfill(Backfill::Busy) => from_backfill_busy(view),
        State::Backfill(Backfill::Killing) => (view.backfill == BackfillStage::None)
            .then_some((&BACKFILL_KILLED, "the backfill work has ended")),
        State::Drained(Drained::Retiring) => match view.draining {
            None => Some((&DRAINED_RETIRING_TO_OWNER, "draining is over")),
            Some(_) => view.all_drained.then_some((&DRAINED_TO_IDLE, "every slot of the machine is drained")),
        },
        State::Drained(Drained::Idle) => {
            view.draining.is_none().then_some((&DRAINED_IDLE_TO_OWNER, "draining is over"))
        }
        State::Matched | State::Claimed(_) | State::Preempting(_) => None,
    }
}

fn from_owner(view: &Surroundings) -> NextTransition {
    if view.draining.is_some() {
        Some((&OWNER_TO_DRAINED, "the machine is being drained"))
    } else {
        (!view.owner).then_some((&OWNER_TO_UNCLAIMED, "IS_OWNER is not true"))
    }
}

fn from_unclaimed(view: &Surroundings) -> NextTransition {
    if view.draining.is_some() {
        Some((&UNCLAIMED_TO_DRAINED, "the machine is being drained"))
    } else if view.owner {
        Some((&UNCLAIMED_TO_OWNER, "IS_OWNER is true"))
    } else {
        match view.wanted {
            Wanted::Claimed => Some((&UNCLAIMED_TO_CLAIMED, "claimed by a schedd")),
            Wanted::Matched => Some((&UNCLAIMED_TO_MATCHED, "matched by the negotiator")),
            Wanted::No if view.start_backfill => Some((&UNCLAIMED_TO_BACKFILL, "START_BACKFILL is true")),
            Wanted::No => view.benchmark.then_some((&IDLE_TO_BENCHMARKING, "RUNBENCHMARKS is true")),
        }
    }
}

/// In the manual, all arrows out of Unclaimed start from its Idle activity. So benchmarks that are in the way end
/// first.
fn from_benchmarking(view: &Surroundings) -> NextTransition {
    let in_the_way = view.draining.is_some() || view.owner || view.wanted != Wanted::No;
    if in_the_way {
        return Some((&BENCHMARKING_TO_IDLE, "the slot is wanted for something else"));
    }
    (!view.benchmarking).then_some((&BENCHMARKING_TO_IDLE, "the benchmarks are complete"))
}

/// Whether backfill work has to end.
pub(super) fn backfill_ends(view: &Surroundings) -> bool {
    backfill_leaves(view) || view.clear || view.wanted != Wanted::No
}

fn backfill_leaves(view: &Surroundings) -> bool {
    view.owner || view.evict_backfill || view.draining.is_some()
}

/// The manual has no arrow from Backfill/Idle to Killing. So a pod that does not run yet ends before the slot leaves.
fn from_backfill(view: &Surroundings) -> NextTransition {
    if view.backfill == BackfillStage::Runs {
        return Some((&BACKFILL_TO_BUSY, "the backfill work runs"));
    }
    if view.backfill == BackfillStage::Coming {
        return None;
    }
    if backfill_leaves(view) {
        return Some((&BACKFILL_TO_OWNER, "EVICT_BACKFILL is true, or the machine offers nothing"));
    }
    match view.wanted {
        Wanted::Claimed => Some((&BACKFILL_TO_CLAIMED, "claimed by a schedd")),
        Wanted::Matched => Some((&BACKFILL_TO_MATCHED, "matched by the negotiator")),
        Wanted::No => None,
    }
}

fn from_backfill_busy(view: &Surroundings) -> NextTransition {
    if view.backfill == BackfillStage::None {
        Some((&BACKFILL_TO_IDLE, "the backfill work has ended by itself"))
    } else if backfill_ends(view) {
        Some((&BACKFILL_TO_KILLING, "the slot is wanted for something else"))
    } else {
        None
    }
}
