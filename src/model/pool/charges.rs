//! The cost of claims to their submitters: `NEGOTIATOR_USE_SLOT_WEIGHTS` and `NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES`.
//!
//! As in HTCondor, a claim that is discounted counts nowhere: not in the submitter's usage and priority, and not
//! against a ceiling or a quota. A ceiling or quota may therefore be exceeded when the suspended job continues.

use super::Pool;
use super::ids::{SlotName, SubmitterName};
use super::marks::Change;
use super::negotiators::NegotiatorId;
use super::slot::{Claimed, Slot, State};
use super::time::Time;

/// The amounts that a claim or an orphan adds to an account.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The submitter who is charged.
    pub submitter: &'a SubmitterName,
    /// The negotiator that made the claim; for an orphan, the unnamed one. The submitter's account with the negotiator that
    /// [answers](Pool::answering) for this one is charged.
    pub negotiator: &'a NegotiatorId,
    /// The slot weight.
    pub weight: f64,
}

impl Pool {
    /// Whether slots that this negotiator matches cost their weight. If not, each slot costs 1.
    pub fn uses_slot_weights(&self, id: &NegotiatorId) -> bool {
        self.config_of(id).cycle.use_slot_weights
    }

    /// Whether a claim costs nothing now: its job is suspended, and its negotiator has
    /// `NEGOTIATOR_DISCOUNT_SUSPENDED_RESOURCES`.
    fn is_discounted(&self, slot: &Slot) -> bool {
        slot.state() == State::Claimed(Claimed::Suspended)
            && self.config_of(&self.answering(&slot.claim().negotiator)).cycle.discount_suspended_resources
    }

    /// Starts or stops charging a claim's submitter, as the claim's state and the knob demand now.
    pub fn review_charge(&mut self, name: &SlotName, now: Time) {
        let Some(slot) = self.slots.get(name).filter(|_| self.synced) else { return };
        self.set_discount(name, self.is_discounted(slot), now);
    }

    /// Does the same for all claims, after the knob may have changed.
    pub fn review_charges(&mut self, now: Time) {
        let differs = |slot: &&Slot| slot.is_discounted() != self.is_discounted(slot);
        let names: Vec<SlotName> =
            self.slots.values().filter(differs).map(|slot| slot.name().clone()).collect();
        for name in names {
            self.review_charge(&name, now);
        }
    }

    /// Charges a claim that is about to end, even if it was discounted until now. So every claim can be discharged in
    /// the same way.
    pub(super) fn charge_again(&mut self, name: &SlotName, now: Time) {
        self.set_discount(name, false, now);
    }

    fn set_discount(&mut self, name: &SlotName, discounted: bool, now: Time) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.is_discounted() != discounted) else {
            return;
        };
        slot.set_discounted(discounted);
        let claim = slot.claim().clone();
        if discounted {
            self.discharge(claim.charge(), now);
        } else {
            self.charge(claim.charge(), now);
        }
        self.changed(Change::Charge(&claim.submitter));
    }
}
