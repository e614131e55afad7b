//! Which slots match a request, the best first.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use super::config::Config;
use super::consuming::Consuming;
use super::cycle::{Candidate, PreemptState};
use crate::classad::{Ad, Env, Expr, Ranks, Roster};

/// Which slots of the cycle are still to be had.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    taken: Vec<bool>,
    left: usize,
}

impl Pool {
    /// All of so many.
    pub(super) fn new(slots: usize) -> Self {
        Self { taken: vec![false; slots], left: slots }
    }

    /// Takes a slot off the list.
    pub(super) fn take(&mut self, slot: usize) {
        if let Some(taken @ false) = self.taken.get_mut(slot) {
            *taken = true;
            self.left -= 1;
        }
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        self.left
    }

    /// Whether a slot is left.
    fn has(&self, slot: usize) -> bool {
        !self.taken.get(slot).copied().unwrap_or(true)
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
    /// All slots of the cycle, in their places.
    roster: Roster,
    /// Those of them that have a consumption policy, by their places.
    consuming: BTreeMap<usize, Consuming>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(config: &'a Config, now: i64, slots: &[Candidate]) -> Self {
        let env = Env::at(now);
        let mut roster = Roster::new(config.pre_job_rank.clone(), config.post_job_rank.clone());
        for (place, slot) in slots.iter().enumerate() {
            roster.set(place, slot.ad.clone());
        }
        let consuming = slots
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| Some((place, Consuming::of(&slot.ad, &env)?)));
        let consuming = consuming.collect();
        Self { config, env, roster, consuming }
    }

    /// The least that a match with the slot can cost.
    pub(super) fn least_cost(&self, place: usize, slot: &Candidate) -> f64 {
        if self.consuming.contains_key(&place) { 0.0 } else { self.sane(slot.weight) }
    }

    /// What a match of the request with the slot costs.
    pub(super) fn cost(&self, place: usize, slot: &Candidate, request: &Ad) -> f64 {
        let consumed = |consuming: &Consuming| consuming.cost(request, &self.env).unwrap_or(f64::NAN);
        self.sane(self.consuming.get(&place).map_or(slot.weight, consumed))
    }

    fn sane(&self, weight: f64) -> f64 {
        let sane = self.config.use_slot_weights && weight.is_finite() && weight >= 0.0;
        if sane { weight } else { 1.0 }
    }

    /// All slots of the pool that match the request, as a heap.
    pub(super) fn candidates(&mut self, pool: &Pool, request: &Ad) -> BinaryHeap<Liking> {
        let prepared = self.roster.prepare(request, &self.env);
        let mut matching = self.roster.matching(&prepared);
        matching.retain(|place| pool.has(place) && !self.consuming.contains_key(&place));
        let ranked = self.roster.ranked(&prepared, matching);
        let consuming = self
            .consuming
            .iter()
            .filter(|(place, slot)| pool.has(**place) && slot.matches(request, &self.env));
        let consuming =
            consuming.filter_map(|(place, _)| Some((*place, self.roster.ranks(&prepared, *place)?)));
        ranked.chain(consuming).map(|(place, ranks)| self.like(place, ranks)).collect()
    }

    /// A match of the request with the slot is made: the slot goes from the pool, but for one whose consumption policy leaves
    /// more to be had. How much that is liked for the request, if it matches it still.
    pub(super) fn take(&mut self, pool: &mut Pool, place: usize, request: &Ad) -> Option<Liking> {
        if !self.consuming.get_mut(&place).is_some_and(|slot| slot.take(request, &self.env)) {
            pool.take(place);
            return None;
        }
        let slot = self.consuming.get(&place)?;
        self.roster.set(place, slot.ad.clone());
        if !slot.matches(request, &self.env) {
            return None;
        }
        let prepared = self.roster.prepare(request, &self.env);
        self.roster.ranks(&prepared, place).map(|ranks| self.like(place, ranks))
    }

    /// How a slot that matches is liked.
    fn like(&self, place: usize, ranks: Ranks) -> Liking {
        Liking {
            pre_job: pool_rank(self.config.pre_job_rank.as_ref(), ranks.pre_job),
            job: comparable(ranks.job, 0.0),
            post_job: pool_rank(self.config.post_job_rank.as_ref(), ranks.post_job),
            preempt: PreemptState::None,
            place: Reverse(place),
        }
    }
}

/// The value of one of the negotiator's ranks. What is no number ranks lowest. HTCondor keeps these in single
/// precision: differences too small for that do not count.
fn pool_rank(expr: Option<&Expr>, value: Option<f64>) -> f64 {
    if expr.is_none() {
        return 0.0;
    }
    single_precision(comparable(value.unwrap_or(f64::MIN), f64::MIN))
}

#[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
fn single_precision(value: f64) -> f64 {
    f64::from(value as f32)
}

/// One zero and no NaN, so that a total order is the usual one.
fn comparable(value: f64, otherwise: f64) -> f64 {
    if value.is_nan() { otherwise } else { value + 0.0 }
}
