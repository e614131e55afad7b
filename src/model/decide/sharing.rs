//! Decides which negotiator has which slots, and what the slots of each weigh.
//!
//! Source: the manual, "Running Multiple Negotiators in One Pool": "each negotiator is responsible for some
//! non-overlapping partition of the slots in the pool", which `NEGOTIATOR_SLOT_CONSTRAINT` describes. If constraints
//! overlap nevertheless, the first negotiator by name has the slots, and people are told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::negotiation::{is_true, slot_ad};
use crate::pool::{
    AtWork, Governing, NegotiatorConfig, NegotiatorId, Notice, Offer, Pool, Problem, Sharing, SlotName,
    SlotTally, Subject, Time,
};
use crate::startd::{keep_slot_ad, slot_weight, unclaimed_slot_ad};
use classad::{Ad, Env};

/// Decides again which negotiator has which slots, if negotiators changed.
pub(super) fn review(pool: &mut Pool, now: Time) {
    if pool.take_negotiators_changed() {
        survey(pool, now);
    }
}

/// Decides which negotiator has which slots, and tells people about overlaps that are new.
pub(super) fn survey(pool: &mut Pool, now: Time) {
    let all = pool.at_work();
    let found = look(pool, &all, now);
    if found == *pool.sharing() {
        return;
    }
    let news: Vec<Notice> = all.iter().filter_map(|one| overlap_notice(pool, &one.id, &found)).collect();
    pool.set_sharing(found, news);
}

fn look(pool: &mut Pool, all: &[AtWork], now: Time) -> Sharing {
    let only_and_whole = |one: &AtWork| all.len() == 1 && one.config.cycle.slot_constraint.is_none();
    if all.iter().any(only_and_whole) {
        return Sharing::default();
    }
    let env = Env::at(now.secs());
    let (mut sharing, mut owners) = (Sharing::default(), BTreeMap::new());
    for slot in machine_slots(pool) {
        let Some(host) = pool.machines().get(&slot.machine) else { continue };
        let config = pool.startd(host);
        let ad = pool.keep_ads(&slot.machine, |host| keep_slot_ad(host, slot.slot, &config));
        let Some(ad) = ad.flatten() else { continue };
        let takers: Vec<&NegotiatorId> = takers(all, &ad, &env).collect();
        for (index, one) in takers.iter().enumerate() {
            for other in takers.iter().skip(index + 1) {
                sharing.overlaps.entry(((*one).clone(), (*other).clone())).or_default().add(&slot);
            }
        }
        match takers.first() {
            Some(first) => {
                owners.insert(slot, (*first).clone());
            }
            None => sharing.uncovered.add(&slot),
        }
    }
    sharing.owners = Some(owners);
    sharing
}

/// The partitionable and static slots of machines that offer their resources.
fn machine_slots(pool: &Pool) -> Vec<SlotName> {
    let offered = pool.machines().values().filter(|machine| machine.offer == Offer::Offered);
    offered
        .flat_map(|machine| machine.machine_slots.values().map(|slot| slot.name(&machine.facts.name)))
        .collect()
}

/// The negotiators whose `NEGOTIATOR_SLOT_CONSTRAINT` is true for a slot's ad, in the order of their names. The first
/// has the slot.
fn takers<'a>(all: &'a [AtWork], slot: &'a Ad, env: &'a Env) -> impl Iterator<Item = &'a NegotiatorId> {
    let takes = move |one: &&AtWork| is_true(one.config.cycle.slot_constraint.as_ref(), slot, env);
    all.iter().filter(takes).map(|one| &one.id)
}

/// Whether a negotiator has a claimed slot, by the claimed slot's own ad.
pub(super) fn has_claimed(all: &[AtWork], id: &NegotiatorId, slot: &Ad, env: &Env) -> bool {
    takers(all, slot, env).next() == Some(id)
}

/// The notice about a negotiator's overlaps, if it overlaps with a negotiator with which it did not before.
fn overlap_notice(pool: &Pool, id: &NegotiatorId, found: &Sharing) -> Option<Notice> {
    let name = id.name()?;
    let with = |sharing: &Sharing| -> BTreeSet<NegotiatorId> {
        sharing.overlaps_of(id).map(|(other, _)| other.clone()).collect()
    };
    if with(found).is_subset(&with(pool.sharing())) {
        return None;
    }
    let about = Subject::Negotiator { name: name.clone(), uid: pool.negotiators().get(name)?.uid.clone() };
    let note = overlap_message(id, found)?;
    Some(Notice { about, warning: true, reason: "SlotsShared", action: "Sharing", note })
}

/// A text about the slots that the constraints of a negotiator and of others take; `None` if there are none.
pub fn overlap_message(id: &NegotiatorId, sharing: &Sharing) -> Option<String> {
    let parts: Vec<String> = sharing
        .overlaps_of(id)
        .map(|(other, SlotTally { count, example })| {
            let example = example.as_ref().map(ToString::to_string).unwrap_or_default();
            let such_as = if *count > 1 { "such as " } else { "" };
            let other = other.name().map(ToString::to_string).unwrap_or_default();
            format!(
                "NEGOTIATOR_SLOT_CONSTRAINT of {other} takes {count} of these slots, too ({such_as}{example})"
            )
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "{}; if several Negotiators take a slot, the first by name matches it: let the constraints exclude each other",
            parts.join("; ")
        )
    })
}

/// The problem that every slot of this negotiator is also another's: this negotiator has no `NEGOTIATOR_SLOT_CONSTRAINT`, or the same
/// constraint as a negotiator that comes before it by name. `None` if the overlap depends on the slots, or if this negotiator makes no
/// matches.
pub fn shares_all(pool: &Pool, name: &Arc<str>) -> Option<Problem> {
    let constraint =
        |object: &Governing<NegotiatorConfig>| Some(object.config.as_ref()?.cycle.slot_constraint.clone());
    let own = pool.negotiators().get(name).and_then(constraint)?;
    let others = pool.negotiators().iter().filter(|(other, _)| *other != name);
    let mut others = others.filter_map(|(other, object)| Some((other, constraint(object)?)));
    let what = if own.is_none() {
        let (other, _) = others.next()?;
        format!(
            "this Negotiator has no slotConstraint, so that it also takes every slot of the Negotiator {other}"
        )
    } else {
        let (other, _) = others.find(|(other, theirs)| *other < name && *theirs == own)?;
        format!("the Negotiator {other} has the same slotConstraint, and matches all these slots")
    };
    Some(Problem {
        reason: "SlotsShared",
        field: "spec".to_owned(),
        message: format!("{what}; give each a slotConstraint, such that no slot makes two of them true"),
    })
}

/// The weight of a negotiator's slots for which `NEGOTIATOR_SLOT_POOLSIZE_CONSTRAINT` is true: unclaimed slots that it
/// has, and claimed slots that are charged with it.
pub(super) fn weight(pool: &Pool, one: &AtWork, env: &Env) -> f64 {
    let constraint = one.config.cycle.slot_poolsize_constraint.as_ref();
    let counts = |slot: &crate::pool::Slot| {
        pool.answering(&slot.claim().negotiator) == one.id
            && (constraint.is_none() || is_true(constraint, &slot_ad(pool, slot, env), env))
    };
    let weighted = one.config.cycle.use_slot_weights;
    let claimed = pool.slots().values().filter(|slot| counts(slot));
    let claimed: f64 = claimed.map(|slot| if weighted { slot.claim().weight } else { 1.0 }).sum();
    let free: f64 = pool
        .machines()
        .values()
        .filter(|machine| machine.offer == Offer::Offered)
        .flat_map(|machine| machine.machine_slots.values().map(move |slot| (machine, slot)))
        .filter(|(machine, slot)| {
            !slot.claimed
                && (pool.sharing().owners.is_none()
                    || pool.sharing().has(&one.id, &slot.name(&machine.facts.name)))
        })
        .map(|(machine, slot)| {
            let config = pool.startd(machine);
            let left = machine.unheld_in(slot);
            let own = machine.slot_config(&config, slot.id);
            let looked_at = own.slot_weight.is_some() || constraint.is_some();
            let ad = if looked_at { unclaimed_slot_ad(machine, slot, &config) } else { Ad::new() };
            match is_true(constraint, &ad, env) && left.cpus > 0 {
                true if weighted => slot_weight(&ad, &left, own, env),
                counted => f64::from(u8::from(counted)),
            }
        })
        .sum();
    claimed + free
}
