//! Standing slots that nobody has claimed: Owner, Unclaimed, Backfill and Drained.

use std::sync::Arc;

use super::transitions::Transition;
use crate::pool::{Standing, Taken, Time};

/// Takes a transition. False, and nothing done, when the slot is not where it starts, or is claimed.
pub(super) fn take(
    slot: &mut Standing,
    transition: &Transition,
    why: impl Into<Arc<str>>,
    now: Time,
) -> bool {
    if slot.state != transition.from || slot.claimed {
        return false;
    }
    if slot.state.state() != transition.to.state() {
        slot.entered_state = now;
    }
    slot.entered_activity = now;
    slot.state = transition.to;
    slot.last = Some(Taken { number: transition.number, why: why.into(), at: now });
    true
}
