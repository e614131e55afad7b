//! What claims hold of things that are limited, and the limits that admins set.
//!
//! A slot counts for what its claim took, for what its object may still say while that is being written anew, and for what
//! a claim that waits for it will take. So whatever a leader finds in the API server when this one dies, it is no more than
//! was counted here.

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
    /// The limit, or the set, in lower case.
    pub name: Arc<str>,
    /// `<name>_LIMIT`.
    pub limit: Option<f64>,
    /// `CONCURRENCY_LIMIT_DEFAULT_<name>`.
    pub limit_of_each: Option<f64>,
    /// What is wrong with it. While there is anything it limits nothing.
    pub problems: Vec<Problem>,
}

impl LimitObject {
    /// Whether what is in use under this name, in lower case, concerns it.
    pub fn concerns(&self, name: &str) -> bool {
        self.is_of(name) || self.is_of_set_of(name)
    }

    fn is_of(&self, name: &str) -> bool {
        self.limit.is_some() && *self.name == *name
    }

    /// Whether it speaks of each of a set, and this is one of them.
    pub fn is_of_set_of(&self, name: &str) -> bool {
        self.limit_of_each.is_some() && name.split_once('.').is_some_and(|(set, _)| *self.name == *set)
    }

    fn capacities(&self) -> impl Iterator<Item = (String, Capacity)> {
        let said = [self.limit.map(Capacity::Named), self.limit_of_each.map(Capacity::EachOf)];
        said.into_iter().flatten().map(|capacity| (self.name.to_string(), capacity))
    }
}

/// What slots hold, with the sums.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    book: LimitBook,
    by_slot: BTreeMap<SlotName, Wants>,
    /// Claims that others have taken the places of, as long as the objects of their slots may still name them.
    carried: BTreeMap<SlotName, Vec<Claim>>,
}

impl Holdings {
    /// The sums, for a negotiation and for new claims.
    pub fn book(&self) -> &LimitBook {
        &self.book
    }

    /// The first limit that bars a slot from this in place of what it holds; none if all of it can be had.
    pub fn blocked_in<'w>(&self, slot: &SlotName, wants: &'w Wants) -> Option<&'w str> {
        match self.by_slot.get(slot) {
            Some(held) => self.book.blocked_in_place_of(held, wants),
            None => self.book.blocked(wants),
        }
    }

    /// The claims that are over and that objects may still name: what they weigh counts against quotas and ceilings.
    pub fn carried(&self) -> impl Iterator<Item = &Claim> {
        self.carried.values().flatten()
    }

    /// Those of them that a slot's object may still name.
    pub fn carried_by(&self, slot: &SlotName) -> impl Iterator<Item = &Claim> {
        self.carried.get(slot).into_iter().flatten()
    }

    /// From now on the slot holds this and nothing else. Gives what it held, if that was something else.
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

/// What a slot counts for.
fn counted(slot: &Slot) -> Wants {
    let now = slot.claim().limits.or_more(slot.carried_limits());
    slot.preemptor().map_or(now.clone(), |next| now.and(&next.claim.limits))
}

impl Pool {
    /// A slot's claim, or what is written of it, has changed, or the slot is gone: what it holds of limited things follows.
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

    /// A slot's claim is for another proc, or another claim's: it takes this of limited things. What it took before counts
    /// until the object says so too.
    pub fn take_limits(&mut self, name: &SlotName, limits: Wants) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.take_limits(limits);
        self.count_limits(name);
    }

    /// A claim took the place of this one: what that held counts until the slot's object says so.
    pub(super) fn carry(&mut self, name: &SlotName, before: &Claim) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.carry_limits(&before.limits);
        self.holdings.carried.entry(name.clone()).or_default().push(before.clone());
        self.count_limits(name);
    }

    /// A slot's object says what its claim is.
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

    /// Somebody set limits: nobody loses what he has, but what can be had is another.
    pub(super) fn limits_changed(&mut self) {
        let objects = self.limits.values().filter(|limit| limit.problems.is_empty());
        // What is limited is one for all negotiators: of what several say the least counts.
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
        self.changed(Change::Limits(other));
    }
}
