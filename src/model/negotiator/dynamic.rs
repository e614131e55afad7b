//! Dynamic slots of which a job may have several at once: `ALLOW_PSLOT_PREEMPTION`.
//!
//! A partitionable slot that has too little left for a job is looked at with its dynamic slots. Those that the job might preempt
//! are added one after the other until there is enough, those that run what the slot ranks lowest first. Which those are, the
//! rules of any preemption say, but none with retirement time left is among them, whatever
//! `NEGOTIATOR_CONSIDER_EARLY_PREEMPTION` is. Dynamic slots are not preempted in any other way then.
//!
//! Source: the manual, "Dynamic Provisioning: Partitionable and Dynamic Slots"; `pslotMultiMatch` in `matchmaker.cpp` for what it
//! leaves out: custom resources are added too, and who is preempted for priority is another's. There what was added in vain is
//! preempted all the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::consuming::Consuming;
use super::cycle::{Candidate, PreemptState};
use super::in_use::{InUse, Standing};
use super::order::Descending;
use crate::pool::slot_types::Consumption;
use classad::{Ad, Env, Prepared, Roster};

/// What stands for the users of several dynamic slots, as in HTCondor.
const USERS: &str = "various_dSlot_users";

/// Whether a slot is dynamic.
pub(super) fn is_dynamic(ad: &Ad, env: &Env) -> bool {
    ad.contains("DynamicSlot") && ad.eval_attr("DynamicSlot", None, env).as_bool_equiv() == Some(true)
}

/// Whether a job may have several: schedds say for all jobs that they understand it, and a job may say no.
pub(super) fn is_wanted(job: &Ad, env: &Env) -> bool {
    job.eval_attr("WantPslotPreemption", None, env).as_bool_equiv() != Some(false)
}

/// A partitionable slot's ad as ranks see it, where it is to be had by preemption only: in use, as any such slot is.
pub(super) fn seen_in_use(slot: &Ad) -> Ad {
    let mut seen = slot.clone();
    for name in ["RemoteUser", "RemoteOwner"] {
        seen.set(name, USERS);
    }
    seen
}

/// A dynamic slot that jobs may preempt.
#[derive(Clone, Debug)]
struct Child {
    place: usize,
    /// `CurrentRank`.
    rank: f64,
    held: Consumption,
    weight: f64,
}

/// The dynamic slots that jobs may preempt, by the places of their partitionable slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Dynamic {
    children: BTreeMap<usize, Vec<Child>>,
}

/// Room for a job in a partitionable slot, once some of its dynamic slots are gone.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// Their places.
    pub(super) children: Vec<usize>,
    pub(super) preempt: PreemptState,
    /// What they hold, and what that weighs.
    pub(super) held: (Consumption, f64),
    /// The least `PREEMPTION_RANK` of them.
    pub(super) rank: f64,
    /// What the match costs.
    pub(super) cost: Option<f64>,
}

/// Where room is looked for.
pub(super) struct Place<'a> {
    /// The place of the partitionable slot.
    pub(super) slot: usize,
    /// As the matches of this cycle leave it.
    pub(super) left: &'a Consuming,
    pub(super) roster: &'a Roster,
    pub(super) in_use: &'a InUse,
    pub(super) env: &'a Env,
}

impl Dynamic {
    /// Takes note of a dynamic slot in use. Nothing comes of one that is being preempted already, or has retirement time left.
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
        let child = Child { place, rank, held: Consumption::new(), weight: 0.0 };
        self.children.entry(parent).or_default().push(child);
    }

    /// Works out what each holds. Those of slots that are not there, or not partitionable, are forgotten.
    pub(super) fn measure(&mut self, parents: &BTreeMap<usize, Consuming>, slots: &[Candidate], env: &Env) {
        self.children.retain(|parent, _| parents.contains_key(parent));
        for (parent, children) in &mut self.children {
            let Some(parent) = parents.get(parent) else { continue };
            for child in children {
                let Some(slot) = slots.get(child.place) else { continue };
                (child.held, child.weight) = (parent.held_by(&slot.ad, env), slot.weight);
            }
        }
    }

    /// The partitionable slots that have dynamic ones which some job may preempt.
    pub(super) fn parents(&self) -> impl Iterator<Item = usize> + '_ {
        self.children.keys().copied()
    }

    /// Whether a slot is one of them.
    pub(super) fn is_parent(&self, place: usize) -> bool {
        self.children.contains_key(&place)
    }

    /// Dynamic slots are matched.
    pub(super) fn remove(&mut self, parent: usize, taken: &[usize]) {
        if let Some(children) = self.children.get_mut(&parent) {
            children.retain(|child| !taken.contains(&child.place));
            if children.is_empty() {
                self.children.remove(&parent);
            }
        }
    }

    /// Room for a job of a submitter: the first dynamic slots in their order that together are enough, without those among them
    /// that are not needed. That more is never too little is taken for granted, lest each of very many be asked about.
    pub(super) fn room(&self, at: &Place<'_>, job: &Prepared, submitter: Option<u32>) -> Option<Room> {
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
        // The last made it enough; of the others, the first to stay is the one that is least to be preempted.
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
            held: held_by(&needed),
            children: needed.into_iter().map(|each| each.child.place).collect(),
        })
    }

    /// The dynamic slots that a job might preempt, in the order in which they are added: for their rank of it before for its
    /// submitter's priority, the lowest `CurrentRank` first, and of equals the highest `PREEMPTION_RANK`.
    fn preemptible(&self, at: &Place<'_>, job: &Prepared, submitter: Option<u32>) -> Vec<Preemptible<'_>> {
        let children = self.children.get(&at.slot).into_iter().flatten();
        let preemptible = children.filter_map(|child| {
            let Standing::Preempt(preempt, rank) = at.in_use.standing(at.roster, job, child.place) else {
                return None;
            };
            let own = submitter.is_some() && at.in_use.holder(child.place) == submitter;
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

/// What some dynamic slots hold, and what that weighs.
fn held_by(some: &[Preemptible<'_>]) -> (Consumption, f64) {
    let mut held = Consumption::new();
    for (name, amount) in some.iter().flat_map(|each| &each.child.held) {
        *held.entry(name.clone()).or_default() += amount;
    }
    (held, some.iter().map(|each| each.child.weight).sum())
}

impl Place<'_> {
    /// The slot with what some of its dynamic slots hold.
    fn with(&self, some: &[Preemptible<'_>]) -> Consuming {
        let (held, weight) = held_by(some);
        let mut grown = self.left.clone();
        grown.add(&held, weight, self.env);
        grown
    }
}
