//! Decides whether a claim may wait for a slot that is claimed already.
//!
//! Source: the manual's policy chapter, "Claimed State" and the `RANK` expression.

use crate::pool::{Pool, Preemptor, Slot, SlotName, State};

/// Whether a claim may wait whose job has this rank on the slot. The slot must rank the job no lower than the job that
/// runs, and no lower than that of a claim that waits already. (If the ranks are equal, the claim comes from a
/// submitter with a better priority.) A slot in Preempting has been promised already.
fn admits(slot: &Slot, rank: f64) -> bool {
    matches!(slot.state(), State::Claimed(_))
        && rank >= slot.rank()
        && slot.preemptor().is_none_or(|waiting| rank >= waiting.rank)
}

/// Lets a claim wait for a slot until the present claim has ended. If another claim waited, that claim waits no longer.
/// Returns false and changes nothing if the slot does not admit the claim.
pub fn offer_claim(pool: &mut Pool, name: &SlotName, next: Preemptor) -> bool {
    let admitted = pool.slots().get(name).is_some_and(|slot| admits(slot, next.rank));
    if admitted {
        pool.wait_for(name, next);
    }
    admitted
}
