//! Slots in the order in which jobs of one kind prefer them.
//!
//! Most jobs rank slots alike, whatever else they require. These jobs share one [`Order`], which is sorted only as far as some
//! search has read it. A slot that was matched is skipped, and later searches skip it at no cost; a slot that changed is added
//! again in its new place.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::cycle::PreemptState;

/// A rank that sorts the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Descending(u64);

impl Descending {
    /// Makes a sort key of a rank. NaN counts as `otherwise`; 0 and -0 are equal.
    pub(super) fn of(rank: f64, otherwise: f64) -> Self {
        let rank = if rank.is_nan() { otherwise } else { rank } + 0.0;
        let bits = rank.to_bits();
        // As integers, the bits of positive numbers sort as the numbers do, those of negative numbers the other way round.
        let ascending = if rank.is_sign_negative() { !bits } else { bits | 1 << 63 };
        Self(!ascending)
    }
}

/// How much a slot is preferred for a request, as a sort key: the most preferred slot comes first.
///
/// Source: the manual, "Negotiation": slots are compared by the three ranks; then slots that are not in use come before slots
/// that rank the job higher than their own, and those before slots whose user has a worse priority; then `PREEMPTION_RANK`
/// decides, and at last the slots' places in the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Preference {
    pub(super) pre_job: Descending,
    pub(super) job: Descending,
    pub(super) post_job: Descending,
    pub(super) preempt: Reverse<PreemptState>,
    pub(super) preemption_rank: Descending,
    pub(super) place: u32,
    /// How often the slot had changed when it was compared. An entry with an old generation is dead.
    pub(super) generation: u32,
}

impl Preference {
    /// The place of the slot in the cycle.
    pub(super) fn slot(&self) -> usize {
        self.place as usize
    }

    /// Why the job may have the slot.
    pub(super) fn preempt(&self) -> PreemptState {
        self.preempt.0
    }
}

/// Slots in the order of preference.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    preferences: Vec<Preference>,
    /// For each entry of the sorted part of `preferences`, the next entry that may be alive: the entry itself if it may be.
    next: Vec<usize>,
    /// Slots that changed after `preferences` was made.
    changed: BTreeSet<Preference>,
    /// How many changes of slots in this negotiation the order has taken in.
    pub(super) known: usize,
}

/// How far a search has read an order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    at: usize,
    changed: Option<Preference>,
}

/// How many entries are sorted when the first is read.
const FIRST: usize = 64;

impl Order {
    pub(super) fn new(preferences: Vec<Preference>, known: usize) -> Self {
        Self { preferences, known, ..Self::default() }
    }

    /// Adds a slot that changed.
    pub(super) fn insert(&mut self, preference: Preference) {
        self.changed.insert(preference);
    }

    /// Returns the next slot after the cursor that is alive and wanted, and moves the cursor past it. An entry is dead if its
    /// slot is matched or has changed since.
    pub(super) fn next(
        &mut self,
        cursor: &mut Cursor,
        alive: impl Fn(&Preference) -> bool,
        wanted: impl Fn(&Preference) -> bool,
    ) -> Option<Preference> {
        let first = self.sorted(&mut cursor.at, &alive, &wanted);
        let bound = cursor.changed.map_or(Bound::Unbounded, Bound::Excluded);
        let mut dead = Vec::new();
        let changed = self.changed.range((bound, Bound::Unbounded)).find(|preference| {
            if !alive(preference) {
                dead.push(**preference);
            }
            alive(preference) && wanted(preference)
        });
        let changed = changed.copied();
        for preference in dead {
            self.changed.remove(&preference);
        }
        if let Some(preference) = changed.filter(|changed| first.is_none_or(|first| *changed < first)) {
            cursor.changed = Some(preference);
            return Some(preference);
        }
        if first.is_some() {
            cursor.at += 1;
        }
        first
    }

    /// Finds the first entry at `at` or after it that is alive and wanted, among the slots that did not change, and moves `at` to
    /// that entry.
    fn sorted(
        &mut self,
        at: &mut usize,
        alive: impl Fn(&Preference) -> bool,
        wanted: impl Fn(&Preference) -> bool,
    ) -> Option<Preference> {
        loop {
            *at = self.find(*at);
            let preference = *self.get(*at)?;
            if !alive(&preference) {
                if let Some(next) = self.next.get_mut(*at) {
                    *next = *at + 1;
                }
            } else if wanted(&preference) {
                return Some(preference);
            }
            *at += 1;
        }
    }

    /// Returns the first entry at `from` or after it that is not known to be dead, and shortens the path there for the next call.
    fn find(&mut self, from: usize) -> usize {
        let mut end = from;
        while let Some(next) = self.next.get(end).filter(|next| **next != end) {
            end = *next;
        }
        let mut at = from;
        while let Some(next) = self.next.get_mut(at).filter(|next| **next != end && at != end) {
            at = std::mem::replace(next, end);
        }
        end
    }

    /// Returns the entry at a place of the sorted list. Sorts no more of the list than that takes.
    fn get(&mut self, at: usize) -> Option<&Preference> {
        while at >= self.next.len() && self.next.len() < self.preferences.len() {
            let done = self.next.len();
            let count = done.max(FIRST).min(self.preferences.len() - done);
            let rest = self.preferences.get_mut(done..)?;
            if count < rest.len() {
                rest.select_nth_unstable(count - 1);
            }
            rest.get_mut(..count)?.sort_unstable();
            self.next.extend(done..done + count);
        }
        self.preferences.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preference(rank: f64, place: u32) -> Preference {
        let none = Descending::of(0.0, 0.0);
        let preempt = Reverse(PreemptState::None);
        let pre_job = Descending::of(rank, f64::MIN);
        Preference {
            pre_job,
            job: none,
            post_job: none,
            preempt,
            preemption_rank: none,
            place,
            generation: 0,
        }
    }

    #[test]
    fn ranks_descend() {
        let ranks =
            [f64::INFINITY, 1e300, 2.0, 1.0, 1e-300, 0.0, -1e-300, -1.0, -2.0, f64::MIN, f64::NEG_INFINITY];
        for (higher, lower) in ranks.iter().zip(&ranks[1..]) {
            assert!(Descending::of(*higher, 0.0) < Descending::of(*lower, 0.0), "{higher} {lower}");
        }
        assert_eq!(Descending::of(-0.0, 1.0), Descending::of(0.0, 1.0));
        assert_eq!(Descending::of(f64::NAN, -7.0), Descending::of(-7.0, 0.0));
    }

    /// Whichever entries die, change or are not wanted between two searches, the order returns what a sorted list would.
    #[test]
    fn the_best_that_is_left() {
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let all: Vec<Preference> = (0..1000).map(|place| preference(f64::from(random(50)), place)).collect();
        let mut order = Order::new(all.clone(), 0);
        let mut model: BTreeSet<Preference> = all.into_iter().collect();
        for _ in 0..300 {
            let mut cursor = Cursor::default();
            let odd = random(3) == 0;
            let wanted = |preference: &Preference| !odd || preference.place % 2 == 1;
            let expected: Vec<Preference> = model.iter().copied().filter(wanted).take(5).collect();
            let alive = |preference: &Preference| model.contains(preference);
            let found = std::iter::from_fn(|| order.next(&mut cursor, alive, wanted));
            assert_eq!(found.take(5).collect::<Vec<_>>(), expected);
            for preference in expected.iter().take(2) {
                model.remove(preference);
                if random(2) == 0 {
                    let changed = Preference {
                        generation: preference.generation + 1,
                        ..super::tests::preference(f64::from(random(50)), preference.place)
                    };
                    model.insert(changed);
                    order.insert(changed);
                }
            }
        }
        let mut cursor = Cursor::default();
        let rest =
            std::iter::from_fn(|| order.next(&mut cursor, |preference| model.contains(preference), |_| true));
        assert!(rest.eq(model.iter().copied()));
    }
}
