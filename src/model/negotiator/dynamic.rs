//! Preempts several dynamic slots of one partitionable slot for one job: `ALLOW_PSLOT_PREEMPTION`.
//!
//! If a partitionable slot has too little left for a job, the resources of its dynamic slots are added to what is left, one
//! dynamic slot after the other, until the job fits. Only dynamic slots that the job may preempt by the usual rules are added;
//! those whose job the slot ranks lowest come first. A dynamic slot with retirement time left is never added, whatever
//! `NEGOTIATOR_CONSIDER_EARLY_PREEMPTION` is. With this knob, dynamic slots are preempted in no other way.
//!
//! Source: the manual, "Dynamic Provisioning: Partitionable and Dynamic Slots"; `pslotMultiMatch` in `matchmaker.cpp` for what
//! the manual leaves out: custom resources are added too, and a submitter's own dynamic slots are not preempted for its
//! priority. HTCondor also preempts dynamic slots that were added and turned out not to be needed; Slotwright does not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::consuming::Consuming;
use super::cycle::{Candidate, PreemptState};
use super::in_use::{Availability, InUse};
use super::order::Descending;
use crate::pool::slot_types::Consumption;
use classad::{Ad, Env, Prepared, Roster};

/// The user of a partitionable slot whose dynamic slots are to be preempted, as HTCondor writes it.
const USERS: &str = "various_dSlot_users";

/// Whether a slot is dynamic.
pub(super) fn is_dynamic(ad: &Ad, env: &Env) -> bool {
    ad.contains("DynamicSlot") && ad.eval_attr("DynamicSlot", None, env).as_bool_equiv() == Some(true)
}

/// Whether a job may preempt several dynamic slots at once: yes, unless the job sets `WantPslotPreemption` to false. (In
/// HTCondor a schedd sets it for all jobs if the schedd supports this.)
pub(super) fn is_wanted(job: &Ad, env: &Env) -> bool {
    job.eval_attr("WantPslotPreemption", None, env).as_bool_equiv() != Some(false)
}

/// A partitionable slot's ad as ranks see it if the job has to preempt dynamic slots there: with a user, as every slot in use.
pub(super) fn seen_in_use(slot: &Ad) -> Ad {
    let mut seen = slot.clone();
    for name in ["RemoteUser", "RemoteOwner"] {
        seen.set(name, USERS);
    }
    seen
}

/// A dynamic slot that some job may preempt.
#[derive(Clone, Debug)]
struct Child {
    place: usize,
    /// `CurrentRank`.
    rank: f64,
    resources: Consumption,
    weight: f64,
}

/// The dynamic slots that some job may preempt, by the places of their partitionable slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Dynamic {
    children: BTreeMap<usize, Vec<Child>>,
}

/// The room that a job would have in a partitionable slot if certain dynamic slots of it were preempted.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// The places of these dynamic slots.
    pub(super) children: Vec<usize>,
    pub(super) preempt: PreemptState,
    /// The resources of these dynamic slots, and their slot weight.
    pub(super) freed: (Consumption, f64),
    /// The least `PREEMPTION_RANK` of these dynamic slots.
    pub(super) rank: f64,
    /// The cost of the match.
    pub(super) cost: Option<f64>,
}

/// A partitionable slot that is searched for room.
pub(super) struct Parent<'a> {
    /// The place of the partitionable slot.
    pub(super) slot: usize,
    /// The slot, less what the matches of this cycle took.
    pub(super) left: &'a Consuming,
    pub(super) roster: &'a Roster,
    pub(super) in_use: &'a InUse,
    pub(super) env: &'a Env,
}

impl Dynamic {
    /// Adds a dynamic slot in use, unless its job is being preempted already or has retirement time left.
    pub(super) fn add(&mut self, parent: Option<usize>, place: usize, ad: &Ad, env: &Env) {
        let number = |name: &str| ad.eval_attr(name, None, env).as_number();
        let preempting = ad
            .eval_attr("State", None, env)
            .as_str()
            .is_some_and(|state| state.eq_ignore_ascii_case("Preempting"));
        let promised = ["PreemptingUser", "PreemptingAccountingGroup"].iter().any(|name| ad.contains(name));
        let retires = number("RetirementTimeRemaining").is_some_and(|left| left > 0.0);
        let Some(parent) = parent.filter(|_| !(preempting || promised || retires)) else { return };
        let rank = number("CurrentRank").unwrap_or(0.0);
        let child = Child { place, rank, resources: Consumption::new(), weight: 0.0 };
        self.children.entry(parent).or_default().push(child);
    }

    /// Reads the resources and the weight of each dynamic slot. Removes dynamic slots whose parent is no partitionable slot of
    /// this cycle.
    pub(super) fn measure(&mut self, parents: &BTreeMap<usize, Consuming>, slots: &[Candidate], env: &Env) {
        self.children.retain(|parent, _| parents.contains_key(parent));
        for (parent, children) in &mut self.children {
            let Some(parent) = parents.get(parent) else { continue };
            for child in children {
                let Some(slot) = slots.get(child.place) else { continue };
                (child.resources, child.weight) = (parent.resources_of(&slot.ad, env), slot.weight);
            }
        }
    }

    /// The places of the partitionable slots that have a dynamic slot which some job may preempt.
    pub(super) fn parents(&self) -> impl Iterator<Item = usize> + '_ {
        self.children.keys().copied()
    }

    /// Whether [`Dynamic::parents`] contains a slot.
    pub(super) fn is_parent(&self, place: usize) -> bool {
        self.children.contains_key(&place)
    }

    /// Removes dynamic slots that are preempted for a match.
    pub(super) fn remove(&mut self, parent: usize, taken: &[usize]) {
        if let Some(children) = self.children.get_mut(&parent) {
            children.retain(|child| !taken.contains(&child.place));
            if children.is_empty() {
                self.children.remove(&parent);
            }
        }
    }

    /// Finds room for a job of a submitter: as many of the first preemptible dynamic slots as the job needs, without those
    /// among them that turn out not to be needed.
    ///
    /// The number is found by bisection, which assumes that the job still fits when more dynamic slots are added: trying one
    /// number after the other would be too slow for machines with very many dynamic slots.
    pub(super) fn room(&self, at: &Parent<'_>, job: &Prepared, submitter: Option<u32>) -> Option<Room> {
        let preemptible = self.preemptible(at, job, submitter);
        if preemptible.is_empty() {
            return None;
        }
        let fits = |some: &[Preemptible<'_>]| {
            let grown = at.with(some);
            grown.has_room(job.ad(), at.env).then_some(grown)
        };
        fits(&preemptible)?;
        let counts: Vec<usize> = (1..=preemptible.len()).collect();
        let too_few = |count: &usize| preemptible.get(..*count).is_none_or(|some| fits(some).is_none());
        let enough = counts.partition_point(too_few) + 1;
        let mut needed = preemptible.get(..enough.min(preemptible.len()))?.to_vec();
        // The last one is needed: without it there was too little. The others are tried in turn, first those that should be
        // preempted last.
        for at in (0..needed.len().saturating_sub(1)).rev() {
            let mut fewer = needed.clone();
            fewer.remove(at);
            if fits(&fewer).is_some() {
                needed = fewer;
            }
        }
        let slot = fits(&needed)?;
        Some(Room {
            preempt: needed.iter().map(|child| child.preempt).min()?,
            rank: needed.iter().map(|child| child.preemption_rank).fold(f64::INFINITY, f64::min),
            cost: slot.cost(job.ad(), at.env),
            freed: freed_by(&needed),
            children: needed.into_iter().map(|each| each.child.place).collect(),
        })
    }

    /// The dynamic slots that a job may preempt, in the order in which they are added: preemption by rank comes before
    /// preemption by priority, then the lowest `CurrentRank`, then the highest `PREEMPTION_RANK`.
    fn preemptible(&self, at: &Parent<'_>, job: &Prepared, submitter: Option<u32>) -> Vec<Preemptible<'_>> {
        let children = self.children.get(&at.slot).into_iter().flatten();
        let preemptible = children.filter_map(|child| {
            let Availability::Preempt(preempt, rank) = at.in_use.availability(at.roster, job, child.place)
            else {
                return None;
            };
            let own = submitter.is_some() && at.in_use.user_number(child.place) == submitter;
            let taken = preempt != PreemptState::Priority || !own;
            taken.then_some(Preemptible { child, preempt, preemption_rank: rank })
        });
        let mut preemptible: Vec<Preemptible<'_>> = preemptible.collect();
        preemptible.sort_by_key(Preemptible::order);
        preemptible
    }
}

/// A dynamic slot that a job may preempt, and why.
#[derive(Clone, Copy, Debug)]
struct Preemptible<'c> {
    child: &'c Child,
    preempt: PreemptState,
    preemption_rank: f64,
}

impl Preemptible<'_> {
    fn order(&self) -> (Reverse<PreemptState>, Reverse<Descending>, Descending, usize) {
        let current = Reverse(Descending::of(self.child.rank, 0.0));
        let preemption = Descending::of(self.preemption_rank, f64::MIN);
        (Reverse(self.preempt), current, preemption, self.child.place)
    }
}

/// The resources and the weight that some dynamic slots free together.
fn freed_by(some: &[Preemptible<'_>]) -> (Consumption, f64) {
    let mut freed = Consumption::new();
    for (name, amount) in some.iter().flat_map(|each| &each.child.resources) {
        *freed.entry(name.clone()).or_default() += amount;
    }
    (freed, some.iter().map(|each| each.child.weight).sum())
}

impl Parent<'_> {
    /// The partitionable slot as if some of its dynamic slots were gone.
    fn with(&self, some: &[Preemptible<'_>]) -> Consuming {
        let (freed, weight) = freed_by(some);
        let mut grown = self.left.clone();
        grown.add(&freed, weight, self.env);
        grown
    }
}
