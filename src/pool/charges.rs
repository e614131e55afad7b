//! What claims cost their submitters: `NEGOTIATOR_USE_SLOT_WEIGHTS` and `NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES`.
//!
//! As in HTCondor what is not charged counts nowhere: not in the submitter's usage and priority, and not against a ceiling or a
//! quota, which may be exceeded when the job goes on.

use super::ids::SlotName;
use super::negotiation::Config;
use super::slot::{Claimed, Slot, State};
use super::time::Time;
use super::{Document, Pool};

impl Pool {
    /// Whether slots cost their weight, and not 1.
    pub fn uses_slot_weights(&self) -> bool {
        self.knobs().is_none_or(|knobs| knobs.use_slot_weights)
    }

    /// Whether claims cost nothing while their jobs are suspended.
    fn discounts_suspended(&self) -> bool {
        self.knobs().is_some_and(|knobs| knobs.discount_suspended_resources)
    }

    /// The knobs of cycles, where any are set.
    fn knobs(&self) -> Option<&Config> {
        let first = self.negotiators.values().next()?;
        first.config.as_deref().map(|config| &*config.cycle)
    }

    /// Charges the submitter of a claim or no longer does, as the claim stands now.
    pub fn review_charge(&mut self, name: &SlotName, now: Time) {
        let Some(slot) = self.slots.get(name).filter(|_| self.synced) else { return };
        let discounted = stands_still(slot) && self.discounts_suspended();
        self.set_discount(name, discounted, now);
    }

    /// The same for all claims: the knob may have been turned.
    pub fn review_charges(&mut self, now: Time) {
        let discounts = self.discounts_suspended();
        let differs = |slot: &&Slot| slot.discounted != (discounts && stands_still(slot));
        let names: Vec<SlotName> =
            self.slots.values().filter(differs).map(|slot| slot.name.clone()).collect();
        for name in names {
            self.review_charge(&name, now);
        }
    }

    /// The submitter of a claim is charged, whatever its job does: it is about to end.
    pub(super) fn charge_again(&mut self, name: &SlotName, now: Time) {
        self.set_discount(name, false, now);
    }

    fn set_discount(&mut self, name: &SlotName, discounted: bool, now: Time) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.discounted != discounted) else {
            return;
        };
        slot.discounted = discounted;
        let (submitter, weight) = (slot.claim.submitter.clone(), slot.claim.weight);
        let halflife = self.halflife();
        let account = &mut self.submitter_mut(&submitter, now).account;
        if discounted {
            account.release(weight, now.millis(), halflife);
        } else {
            account.charge(weight, now.millis(), halflife);
        }
        self.stale.insert(Document::Submitter(submitter));
        // There may be more to be had now, or less.
        self.schedule.wanted = true;
    }
}

fn stands_still(slot: &Slot) -> bool {
    slot.state == State::Claimed(Claimed::Suspended)
}
