//! Slots in the order in which jobs of one kind like them.
//!
//! Most jobs rank slots alike, whatever else they require: they share an order, which is found once and sorted only as far as
//! anybody looks. Slots that are taken are skipped at no cost the second time; slots that change come back in another place.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::cycle::PreemptState;

/// A rank, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Descending(u64);

impl Descending {
    /// A rank; what is no number counts as `otherwise`. The two zeros are one.
    pub(super) fn of(rank: f64, otherwise: f64) -> Self {
        let rank = if rank.is_nan() { otherwise } else { rank } + 0.0;
        let bits = rank.to_bits();
        // The bits of positive numbers are in their order already, those of negative ones in the opposite one.
        let ascending = if rank.is_sign_negative() { !bits } else { bits | 1 << 63 };
        Self(!ascending)
    }
}

/// How much a slot is liked for a request. The lesser comes first.
///
/// Source: the manual, "Negotiation": the three ranks, then slots that nobody uses before those whose startd ranks the job
/// higher before those of users of worse priority, then `PREEMPTION_RANK`. What is equal in all goes by the place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Liking {
    pub(super) pre_job: Descending,
    pub(super) job: Descending,
    pub(super) post_job: Descending,
    pub(super) preempt: Reverse<PreemptState>,
    pub(super) preemption: Descending,
    pub(super) place: u32,
    /// Which state of the slot this is about.
    pub(super) generation: u32,
}

impl Liking {
    /// The place of the slot in the list.
    pub(super) fn slot(&self) -> usize {
        self.place as usize
    }

    /// Whom a match throws out.
    pub(super) fn preempt(&self) -> PreemptState {
        self.preempt.0
    }
}

/// Slots in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    likings: Vec<Liking>,
    /// For as many of them as are sorted: the next that may be alive, itself if it may.
    next: Vec<usize>,
    /// Slots that changed since.
    changed: BTreeSet<Liking>,
    /// How many of the changes there have been are in here.
    pub(super) known: usize,
}

/// How far somebody has looked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    at: usize,
    changed: Option<Liking>,
}

/// How many are sorted at first.
const FIRST: usize = 64;

impl Order {
    pub(super) fn new(likings: Vec<Liking>, known: usize) -> Self {
        Self { likings, known, ..Self::default() }
    }

    /// Takes in a slot that changed.
    pub(super) fn insert(&mut self, liking: Liking) {
        self.changed.insert(liking);
    }

    /// The next slot after the cursor that is alive and wanted, and moves the cursor past it.
    pub(super) fn next(
        &mut self,
        cursor: &mut Cursor,
        alive: impl Fn(&Liking) -> bool,
        wanted: impl Fn(&Liking) -> bool,
    ) -> Option<Liking> {
        let first = self.sorted(&mut cursor.at, &alive, &wanted);
        let bound = cursor.changed.map_or(Bound::Unbounded, Bound::Excluded);
        let mut dead = Vec::new();
        let changed = self.changed.range((bound, Bound::Unbounded)).find(|liking| {
            if !alive(liking) {
                dead.push(**liking);
            }
            alive(liking) && wanted(liking)
        });
        let changed = changed.copied();
        for liking in dead {
            self.changed.remove(&liking);
        }
        if let Some(liking) = changed.filter(|changed| first.is_none_or(|first| *changed < first)) {
            cursor.changed = Some(liking);
            return Some(liking);
        }
        if first.is_some() {
            cursor.at += 1;
        }
        first
    }

    /// The first at the cursor or after it among those that did not change. The cursor moves there.
    fn sorted(
        &mut self,
        at: &mut usize,
        alive: impl Fn(&Liking) -> bool,
        wanted: impl Fn(&Liking) -> bool,
    ) -> Option<Liking> {
        loop {
            *at = self.find(*at);
            let liking = *self.get(*at)?;
            if !alive(&liking) {
                if let Some(next) = self.next.get_mut(*at) {
                    *next = *at + 1;
                }
            } else if wanted(&liking) {
                return Some(liking);
            }
            *at += 1;
        }
    }

    /// Skips what is known to be dead.
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

    /// The one in a place; sorts as far as that.
    fn get(&mut self, at: usize) -> Option<&Liking> {
        while at >= self.next.len() && self.next.len() < self.likings.len() {
            let done = self.next.len();
            let count = done.max(FIRST).min(self.likings.len() - done);
            let rest = self.likings.get_mut(done..)?;
            if count < rest.len() {
                rest.select_nth_unstable(count - 1);
            }
            rest.get_mut(..count)?.sort_unstable();
            self.next.extend(done..done + count);
        }
        self.likings.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn liking(rank: f64, place: u32) -> Liking {
        let none = Descending::of(0.0, 0.0);
        let preempt = Reverse(PreemptState::None);
        let pre_job = Descending::of(rank, f64::MIN);
        Liking { pre_job, job: none, post_job: none, preempt, preemption: none, place, generation: 0 }
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

    /// Whatever dies, changes or is not wanted between two looks: what comes is what a sorted list would give.
    #[test]
    fn the_best_that_is_left() {
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let all: Vec<Liking> = (0..1000).map(|place| liking(f64::from(random(50)), place)).collect();
        let mut order = Order::new(all.clone(), 0);
        let mut model: BTreeSet<Liking> = all.into_iter().collect();
        for _ in 0..300 {
            let mut cursor = Cursor::default();
            let odd = random(3) == 0;
            let wanted = |liking: &Liking| !odd || liking.place % 2 == 1;
            let expected: Vec<Liking> = model.iter().copied().filter(wanted).take(5).collect();
            let alive = |liking: &Liking| model.contains(liking);
            let found = std::iter::from_fn(|| order.next(&mut cursor, alive, wanted));
            assert_eq!(found.take(5).collect::<Vec<_>>(), expected);
            for liking in expected.iter().take(2) {
                model.remove(liking);
                if random(2) == 0 {
                    let changed = Liking {
                        generation: liking.generation + 1,
                        ..super::tests::liking(f64::from(random(50)), liking.place)
                    };
                    model.insert(changed);
                    order.insert(changed);
                }
            }
        }
        let mut cursor = Cursor::default();
        let rest = std::iter::from_fn(|| order.next(&mut cursor, |liking| model.contains(liking), |_| true));
        assert!(rest.eq(model.iter().copied()));
    }
}
