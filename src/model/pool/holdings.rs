//! Sums up what claims hold of concurrency limits, quotas and ceilings, and keeps the limits that admins set.
//!
//! A slot counts for what its claim took, for what its object may still say while the object is being written anew, and
//! for what a claim that waits for the slot will take. So if this leader dies, the next leader finds no more in the API
//! server than was counted here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Pool;
use super::ids::SlotName;
use super::job::Problem;
use super::limits::{Capacities, Capacity, LimitBook, Wants};
use super::marks::Change;
use super::slot::{Claim, Slot};

/// A `ConcurrencyLimit`.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitObject {
    /// The object's name.
    pub object: Arc<str>,
    /// The `metadata.generation` last seen.
    pub generation: i64,
    /// The name of the limit, or of the set of limits, in lower case.
    pub name: Arc<str>,
    /// `<name>_LIMIT`.
    pub limit: Option<f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT_<name>`.
    pub limit_of_each: Option<f64>,
    /// The problems with the object. While there are any, the object limits nothing.
    pub problems: Vec<Problem>,
}

impl LimitObject {
    /// Whether the object sets the limit of this name (in lower case), or of the set that the limit is in.
    pub fn concerns(&self, name: &str) -> bool {
        self.is_of(name) || self.is_of_set_of(name)
    }

    fn is_of(&self, name: &str) -> bool {
        self.limit.is_some() && *self.name == *name
    }

    /// Whether the object sets the limits of a set, and the limit of this name is in the set.
    pub fn is_of_set_of(&self, name: &str) -> bool {
        self.limit_of_each.is_some() && name.split_once('.').is_some_and(|(set, _)| *self.name == *set)
    }

    fn capacities(&self) -> impl Iterator<Item = (String, Capacity)> {
        let said = [self.limit.map(Capacity::Named), self.limit_of_each.map(Capacity::EachOf)];
        said.into_iter().flatten().map(|capacity| (self.name.to_string(), capacity))
    }
}

/// The units of concurrency limits that each slot holds, with the sums.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    book: LimitBook,
    by_slot: BTreeMap<SlotName, Wants>,
    /// For each slot: claims that were replaced, as long as the slot's object may still name them.
    carried: BTreeMap<SlotName, Vec<Claim>>,
}

impl Holdings {
    /// The units of each limit that are in use, for a negotiation and for new claims.
    pub fn book(&self) -> &LimitBook {
        &self.book
    }

    /// The first limit that has too little left if the slot is to hold `wants` instead of what it holds now; `None` if
    /// all have enough.
    pub fn blocked_in<'w>(&self, slot: &SlotName, wants: &'w Wants) -> Option<&'w str> {
        match self.by_slot.get(slot) {
            Some(held) => self.book.blocked_in_place_of(held, wants),
            None => self.book.blocked(wants),
        }
    }

    /// The replaced claims that objects may still name. Their weight counts against quotas and ceilings.
    pub fn carried(&self) -> impl Iterator<Item = &Claim> {
        self.carried.values().flatten()
    }

    /// The replaced claims that this slot's object may still name.
    pub fn carried_by(&self, slot: &SlotName) -> impl Iterator<Item = &Claim> {
        self.carried.get(slot).into_iter().flatten()
    }

    /// Notes that the slot holds `wants` from now on. Returns what the slot held before; `None` if that was the same.
    fn hold(&mut self, slot: &SlotName, wants: Wants) -> Option<Wants> {
        let before = self.by_slot.get(slot);
        if before.map_or(wants.is_empty(), |before| *before == wants) {
            return None;
        }
        self.book.take(&wants);
        let before = if wants.is_empty() {
            self.by_slot.remove(slot)
        } else {
            self.by_slot.insert(slot.clone(), wants)
        };
        let before = before.unwrap_or_default();
        self.book.return_slot(&before);
        Some(before)
    }
}

/// The units that a slot counts for: the most that its claim and its object name, and those that a claim that waits for
/// the slot will take.
fn counted(slot: &Slot) -> Wants {
    let now = slot.claim().limits.or_more(slot.carried_limits());
    slot.preemptor().map_or(now.clone(), |next| now.and(&next.claim.limits))
}

impl Pool {
    /// Updates the sums after a slot's claim or its object changed, or the slot is gone.
    pub(super) fn count_limits(&mut self, name: &SlotName) {
        let slot = self.slots.get(name);
        let held = slot.map_or_else(|| self.wanted_at(name), counted);
        if slot.is_none() {
            self.holdings.carried.remove(name);
        }
        let Some(before) = self.holdings.hold(name, held.clone()) else { return };
        let less = before.iter().any(|(limit, amount)| held.amount(limit) < amount);
        let changed: Vec<&str> = before.iter().chain(held.iter()).map(|(limit, _)| limit).collect();
        let objects = self.limits.values().filter(|object| changed.iter().any(|name| object.concerns(name)));
        let objects: BTreeSet<Arc<str>> = objects.map(|object| object.object.clone()).collect();
        self.changed(Change::Limit { objects: &objects, less });
    }

    /// The slot's claim serves another proc, or is another claim, and takes `limits` of the concurrency limits. The
    /// units that the claim took before count until the slot's object is written.
    pub fn take_limits(&mut self, name: &SlotName, limits: Wants) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.take_limits(limits);
        self.count_limits(name);
    }

    /// Another claim took the place of `before`. The units that `before` held count until the slot's object is written.
    pub(super) fn carry(&mut self, name: &SlotName, before: &Claim) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.carry_limits(&before.limits);
        self.holdings.carried.entry(name.clone()).or_default().push(before.clone());
        self.count_limits(name);
    }

    /// The slot's object was written with the slot's present claim. The units that earlier claims held count no longer.
    pub(super) fn claim_written(&mut self, name: &SlotName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.limits_are_written();
        if self.holdings.carried.remove(name).is_some() {
            self.changed(Change::LimitFreed);
        }
        self.count_limits(name);
    }

    pub(super) fn limit_seen(&mut self, limit: LimitObject) {
        if self.limits.get(&limit.object) != Some(&limit) {
            self.limits.insert(limit.object.clone(), limit);
            self.limits_changed();
        }
    }

    pub(super) fn limit_gone(&mut self, object: &str) {
        if self.limits.remove(object).is_some() {
            self.limits_changed();
        }
    }

    /// Admins changed limits. Jobs keep the units that they have, but other amounts are left for new claims.
    pub(super) fn limits_changed(&mut self) {
        let objects = self.limits.values().filter(|limit| limit.problems.is_empty());
        // A limit holds for all negotiators together. If several of them set it, the smallest value counts.
        let knobs: Vec<_> = self.at_work().into_iter().map(|one| Arc::clone(&one.config.cycle)).collect();
        let named = knobs.iter().flat_map(|knobs| &knobs.concurrency_limits);
        let named = named.map(|(name, limit)| (name.clone(), Capacity::Named(*limit)));
        let sets = knobs.iter().flat_map(|knobs| &knobs.concurrency_limit_sets);
        let sets = sets.map(|(set, limit)| (set.clone(), Capacity::EachOf(*limit)));
        let said = named.chain(sets).chain(objects.flat_map(LimitObject::capacities));
        let default = knobs.iter().map(|knobs| knobs.concurrency_limit_default).fold(f64::INFINITY, f64::min);
        let capacities = Capacities::new(said, default);
        let other = *self.holdings.book.capacities() != capacities;
        if other {
            self.holdings.book.set_capacities(capacities);
        }
        self.changed(Change::Limits { other });
    }
}
