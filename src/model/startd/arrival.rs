//! A claim on a slot that is claimed: whether it may wait for the present one to end.
//!
//! Source: the manual's policy chapter, "Claimed State" and the `RANK` expression.

use crate::pool::{Pool, Preemptor, Slot, SlotName, State};

/// Whether a claim for a job that the slot ranks so may wait: the slot must like it no less than the job that runs, and no
/// less than the claim that waits already. Of equal rank it is one of a better user priority. A slot that is preempting has
/// been promised already.
fn admits(slot: &Slot, rank: f64) -> bool {
    matches!(slot.state, State::Claimed(_))
        && rank >= slot.rank
        && slot.preempting.as_ref().is_none_or(|waiting| rank >= waiting.rank)
}

/// Has a claim wait for a slot until the present one has gone. False, and nothing done, where the slot refuses it, or a
/// concurrency limit is reached: what it wants of limited things is kept for it beside what the present claim holds. One
/// that waited before goes.
pub fn offer_claim(pool: &mut Pool, name: &SlotName, next: Preemptor) -> bool {
    let limits = &next.claim.limits;
    let admitted = pool.slots().get(name).is_some_and(|slot| admits(slot, next.rank))
        && pool.holdings().book().blocked(limits).is_none();
    if admitted {
        pool.wait_for(name, next);
    }
    admitted
}
