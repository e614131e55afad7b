//! Standing slots that nobody has claimed: Owner, Unclaimed, Backfill and Drained.

use std::sync::Arc;

use super::transitions::Transition;
use crate::pool::{MachineName, Noted, Standing, Taken, Time};

/// Takes a transition of a slot of this machine, and notes it down where somebody wants that. False, and nothing done, when
/// the slot is not where it starts, or is claimed.
pub(super) fn take(
    slot: &mut Standing,
    machine: &MachineName,
    transition: &Transition,
    why: impl Into<Arc<str>>,
    now: Time,
    trace: &mut Option<Vec<Noted>>,
) -> bool {
    if slot.state != transition.from || slot.claimed {
        return false;
    }
    if slot.state.state() != transition.to.state() {
        slot.entered_state = now;
    }
    slot.entered_activity = now;
    slot.state = transition.to;
    let taken = Taken { number: transition.number, why: why.into(), at: now };
    if let Some(trace) = trace {
        let (from, to) = (transition.from, transition.to);
        trace.push(Noted { slot: slot.name(machine), from, to, taken: taken.clone(), proc: None });
    }
    slot.last = Some(taken);
    true
}
