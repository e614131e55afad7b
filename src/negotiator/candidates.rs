//! Which slots match a request, the best first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::config::Config;
use super::cycle::{Candidate, PreemptState};
use crate::classad::{Ad, Env, Expr, rank, symmetric_match};

/// The slots that are still to be had, in list order.
#[derive(Clone, Debug)]
pub(super) struct Pool<'a> {
    slots: &'a [Candidate],
    left: Vec<usize>,
    taken: Vec<bool>,
    gone: usize,
}

impl<'a> Pool<'a> {
    pub(super) fn new(slots: &'a [Candidate]) -> Self {
        Self { slots, left: (0..slots.len()).collect(), taken: vec![false; slots.len()], gone: 0 }
    }

    /// Takes a slot off the list.
    pub(super) fn take(&mut self, slot: usize) {
        if let Some(taken @ false) = self.taken.get_mut(slot) {
            *taken = true;
            self.gone += 1;
        }
        // Tidied up now and then: cheap on the average, and scans stay as short as the list.
        if self.gone * 2 > self.left.len() {
            let Self { left, taken, .. } = self;
            left.retain(|slot| !taken.get(*slot).copied().unwrap_or(true));
            self.gone = 0;
        }
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.left.len() == self.gone
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        self.left.len() - self.gone
    }

    /// Those left.
    fn iter(&self) -> impl Iterator<Item = (usize, &'a Candidate)> {
        let left = self.left.iter().copied().filter(|slot| !self.taken.get(*slot).copied().unwrap_or(true));
        left.filter_map(|slot| Some((slot, self.slots.get(slot)?)))
    }
}

/// How much a slot is liked for a request. The greater is the better.
///
/// Preemption and how it ranks go between the ranks and the place in the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Liking {
    pre_job: f64,
    job: f64,
    post_job: f64,
    pub(super) preempt: PreemptState,
    place: Reverse<usize>,
}

impl Liking {
    /// The place of the slot in the list.
    pub(super) fn slot(&self) -> usize {
        self.place.0
    }
}

impl Eq for Liking {}

impl Ord for Liking {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pre_job
            .total_cmp(&other.pre_job)
            .then_with(|| self.job.total_cmp(&other.job))
            .then_with(|| self.post_job.total_cmp(&other.post_job))
            .then_with(|| self.preempt.cmp(&other.preempt))
            .then_with(|| self.place.cmp(&other.place))
    }
}

impl PartialOrd for Liking {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Evaluates slots for requests.
#[derive(Clone, Debug)]
pub(super) struct Judge<'a> {
    config: &'a Config,
    env: Env,
}

impl<'a> Judge<'a> {
    pub(super) fn new(config: &'a Config, now: i64) -> Self {
        Self { config, env: Env::at(now) }
    }

    /// What a match with the slot costs.
    pub(super) fn cost(&self, slot: &Candidate) -> f64 {
        let sane = self.config.use_slot_weights && slot.weight.is_finite() && slot.weight >= 0.0;
        if sane { slot.weight } else { 1.0 }
    }

    /// All slots of the pool that match the request, as a heap.
    pub(super) fn candidates(&self, pool: &Pool<'_>, request: &Ad) -> BinaryHeap<Liking> {
        pool.iter().filter_map(|(place, slot)| self.like(place, &slot.ad, request)).collect()
    }

    /// How the slot is liked, if it matches.
    fn like(&self, place: usize, slot: &Ad, request: &Ad) -> Option<Liking> {
        if !symmetric_match(request, slot, &self.env) {
            return None;
        }
        Some(Liking {
            pre_job: self.pool_rank(self.config.pre_job_rank.as_ref(), slot, request),
            job: comparable(rank(request, slot, &self.env), 0.0),
            post_job: self.pool_rank(self.config.post_job_rank.as_ref(), slot, request),
            preempt: PreemptState::None,
            place: Reverse(place),
        })
    }

    /// The value of one of the negotiator's ranks. What is no number ranks lowest. HTCondor keeps these in
    /// single precision: differences too small for that do not count.
    fn pool_rank(&self, expr: Option<&Expr>, slot: &Ad, request: &Ad) -> f64 {
        let Some(expr) = expr else { return 0.0 };
        let value = expr.eval(Some(slot), Some(request), &self.env).as_number();
        single_precision(comparable(value.unwrap_or(f64::MIN), f64::MIN))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
fn single_precision(value: f64) -> f64 {
    f64::from(value as f32)
}

/// One zero and no NaN, so that a total order is the usual one.
fn comparable(value: f64, otherwise: f64) -> f64 {
    if value.is_nan() { otherwise } else { value + 0.0 }
}
