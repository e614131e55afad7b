//! A claim on a slot that is claimed: whether it may wait for the present one to end.
//!
//! Source: the manual's policy chapter, "Claimed State" and the `RANK` expression.

use crate::pool::{Pool, Preemptor, Slot, SlotName, State};

/// Whether a claim for a job that the slot ranks so may wait: the slot must like it no less than the job that runs, and no
/// less than the claim that waits already. Of equal rank it is one of a better user priority. A slot that is preempting has
/// been promised already.
fn admits(slot: &Slot, rank: f64) -> bool {
    matches!(slot.state(), State::Claimed(_))
        && rank >= slot.rank()
        && slot.preemptor().is_none_or(|waiting| rank >= waiting.rank)
}

/// Has a claim wait for a slot until the present claim has gone. A claim that waited before goes. False, with nothing done, if
/// the slot refuses the claim.
pub fn offer_claim(pool: &mut Pool, name: &SlotName, next: Preemptor) -> bool {
    let admitted = pool.slots().get(name).is_some_and(|slot| admits(slot, next.rank));
    if admitted {
        pool.wait_for(name, next);
    }
    admitted
}
