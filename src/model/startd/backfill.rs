//! Backfill work of a machine's slots: which pods there are to be, and which have to go.
//!
//! Source: the manual's "Backfill State". The work is a pod that holds what of its slot nobody has claimed. Like the BOINC
//! client it ends before its slot is anything else, and a policy's answer is all that it asks for to begin.

use std::sync::Arc;

use super::standing::backfill_ends;
use super::unclaimed::surroundings;
use crate::pool::backfill::{Plan, Work};
use crate::pool::{
    Backfill, BackfillStage, BackfillTemplate, Capacity, Effect, Machine, MachineName, MachineSlot, Offer,
    PODS, Pool, Resources, SlotKind, SlotName, StartdConfig, State, Time,
};

/// The grace of a pod that is killed, in seconds. None at all would take it off the API server before its end is confirmed.
const KILL_GRACE: u32 = 1;

/// Whether a slot is to do backfill work where its policy says so: it may, and there is something to do it with.
pub(super) fn fills(pool: &Pool, machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> bool {
    template(machine, slot, config).is_some()
        && (size(machine, slot, &machine.available()).is_some()
            || pool.backfill().stage(&slot.name(&machine.facts.name)) != BackfillStage::None)
}

/// What a slot does when idle.
fn template<'a>(
    machine: &Machine,
    slot: &MachineSlot,
    config: &'a StartdConfig,
) -> Option<&'a Arc<BackfillTemplate>> {
    config.backfill.as_ref().filter(|_| machine.slot_config(config, slot.id).policy.enable_backfill)
}

/// What a slot's pod would hold where there is this much: a static slot's share, or all that is left of a partitionable one.
fn size(machine: &Machine, slot: &MachineSlot, room: &Resources) -> Option<Resources> {
    let mut size = slot.uncarved().at_most(room);
    if slot.kind == SlotKind::Static && !slot.total.fits_in(&size) {
        return None;
    }
    if machine.total.extended.contains_key(PODS) {
        if size.amount(PODS) < 1 {
            return None;
        }
        size.extended.insert(PODS.into(), 1);
    }
    (size.cpus > 0 && size.memory_mib > 0).then_some(size)
}

/// Whether a slot's work has to end for what comes after it: claims wait for what it holds, the policy has another template
/// now, or the slot has become twice as large.
pub(super) fn is_in_the_way(
    pool: &Pool,
    machine: &Machine,
    slot: &MachineSlot,
    config: &StartdConfig,
) -> bool {
    let (name, none) = (slot.name(&machine.facts.name), Resources::default());
    let over_holds = |slot: &MachineSlot| pool.backfill().over_holds(machine, slot, &none);
    let lives = |work: &&Work| work.lives() && work.facts.slot == Some(slot.id);
    over_holds(slot)
        // Where it is nobody's in particular, it is everybody's.
        || pool.backfill().crowds(machine, &none) && !machine.slots().any(over_holds)
        || pool
            .backfill()
            .on(&machine.facts.name)
            .filter(lives)
            .any(|work| is_outdated(machine, slot, config, &name, work))
}

fn is_outdated(
    machine: &Machine,
    slot: &MachineSlot,
    config: &StartdConfig,
    name: &SlotName,
    work: &Work,
) -> bool {
    let Some(template) = template(machine, slot, config) else { return true };
    let outgrown = || {
        let cpus = machine.available_in(slot).cpus;
        let requests = work.facts.requests.as_ref();
        requests.is_some_and(|own| cpus.saturating_mul(1000) >= own.milli_cpu.saturating_mul(2))
    };
    !work.is_of(name, template) || outgrown()
}

/// Gives the slots of a machine just seen the work that they did under an earlier leader.
pub(super) fn adopt(pool: &mut Pool, name: &MachineName, offer: &Offer, now: Time) {
    if !matches!(offer, Offer::Offered | Offer::Cordoned) {
        return;
    }
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    let own = |slot: &MachineSlot, work: &&Work| {
        let of =
            template(machine, slot, &config).is_some_and(|template| work.is_of(&slot.name(name), template));
        of && work.lives() && !work.facts.deleting
    };
    let fresh = machine.slots().filter(|slot| slot.phase().last().is_none() && !slot.claimed);
    let found: Vec<(u32, Time)> = fresh
        .filter_map(|slot| {
            let work = pool.backfill().on(name).find(|work| own(slot, work))?;
            Some((slot.id, work.facts.started.unwrap_or(now)))
        })
        .collect();
    for (id, since) in found {
        let slot = SlotName { machine: name.clone(), slot: id, dynamic: None };
        pool.edit_machine_slot(&slot, |slot| {
            if slot.state() == State::Owner {
                slot.recall(State::Backfill(Backfill::Idle), since);
            }
        });
    }
}

/// Ends the pods that have to go, and asks for those that are to be. Comes after the slots took their transitions.
pub(super) fn tend(pool: &mut Pool, name: &MachineName, offer: &Offer, now: Time, effects: &mut Vec<Effect>) {
    for (slot, namespace) in pool.overdue_backfill(name, now) {
        effects.push(Effect::LookForBackfill { slot, namespace });
    }
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    let asks: Vec<(Ask, Work)> = pool
        .backfill()
        .on(name)
        .filter_map(|work| Some((what_of(pool, machine, &config, offer, work, now)?, work.clone())))
        .collect();
    for (ask, work) in asks {
        if !pool.backfill_asked_to_go(name, &work.facts.pod.uid, ask == Ask::Kill, now) {
            continue;
        }
        let grace = match ask {
            Ask::Note => continue,
            Ask::Delete => None,
            Ask::Kill => Some(KILL_GRACE),
            Ask::Force => Some(0),
        };
        let off = ask == Ask::Force && work.lives();
        effects.push(Effect::DeleteBackfill { pod: work.facts.pod, machine: name.clone(), grace, off });
    }
    make(pool, name, &config, offer, now, effects);
}

/// What is asked of a pod that has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Nothing: it goes already.
    Note,
    /// To end in its own time.
    Delete,
    /// To end at once.
    Kill,
    /// To be gone: nothing runs in it, or nobody is left to confirm its end.
    Force,
}

fn what_of(
    pool: &Pool,
    machine: &Machine,
    config: &StartdConfig,
    offer: &Offer,
    work: &Work,
    now: Time,
) -> Option<Ask> {
    let over = !work.lives() || *offer == Offer::Gone;
    if over {
        return work.asked.is_none().then_some(Ask::Force);
    }
    if !has_to_go(pool, machine, config, offer, work, now) {
        return None;
    }
    match work.asked {
        None if work.facts.deleting => Some(Ask::Note),
        None => Some(Ask::Delete),
        Some(at) if !work.killed && at + killing_timeout(machine, config, work) <= now => Some(Ask::Kill),
        Some(_) => None,
    }
}

fn killing_timeout(machine: &Machine, config: &StartdConfig, work: &Work) -> std::time::Duration {
    machine.slot_config(config, work.facts.slot.unwrap_or(0)).policy.killing_timeout
}

fn has_to_go(
    pool: &Pool,
    machine: &Machine,
    config: &StartdConfig,
    offer: &Offer,
    work: &Work,
    now: Time,
) -> bool {
    let Some(slot) = work.facts.slot.and_then(|id| machine.standing.get(&id)) else { return true };
    let fills = matches!(slot.state(), State::Backfill(Backfill::Idle | Backfill::Busy));
    slot.claimed
        || !fills
        || is_outdated(machine, slot, config, &slot.name(&machine.facts.name), work)
        || backfill_ends(&surroundings(pool, machine, slot, config, offer, now))
}

/// "Once a machine is in Backfill/Idle, it will immediately attempt to spawn whatever backfill manager it has been
/// configured to use."
fn make(
    pool: &mut Pool,
    name: &MachineName,
    config: &StartdConfig,
    offer: &Offer,
    now: Time,
    effects: &mut Vec<Effect>,
) {
    let Some(machine) = pool.machines().get(name) else { return };
    let waits = |slot: &&MachineSlot| slot.state() == State::Backfill(Backfill::Idle) && !slot.claimed;
    let idle: Vec<u32> = machine.slots().filter(waits).map(|slot| slot.id).collect();
    for id in idle {
        if let Some(plan) = plan(pool, name, id, config, offer, now) {
            pool.ask_for_backfill(&plan.slot, plan.template.namespace.clone(), plan.resources.clone());
            effects.push(Effect::CreateBackfill(Box::new(plan)));
        }
    }
}

fn plan(
    pool: &Pool,
    name: &MachineName,
    id: u32,
    config: &StartdConfig,
    offer: &Offer,
    now: Time,
) -> Option<Plan> {
    let machine = pool.machines().get(name)?;
    let slot = machine.standing.get(&id)?;
    let template = Arc::clone(template(machine, slot, config)?);
    let slot_name = slot.name(name);
    let may = pool.backfill().may_make(&slot_name, now)
        && !backfill_ends(&surroundings(pool, machine, slot, config, offer, now));
    if !may {
        return None;
    }
    // What other slots' work holds is theirs, though nobody has claimed it.
    let mut room = Capacity::of(&machine.available());
    room.subtract(&pool.backfill().held(machine));
    let resources = size(machine, slot, &room.whole())?;
    let policy = machine.policy.clone()?;
    let uid = Arc::clone(&pool.policies().get(&policy)?.uid);
    let tolerations = config.tolerations.clone();
    Some(Plan { slot: slot_name, template, policy: (policy, uid), resources, tolerations })
}

/// When a machine's backfill work has to be looked at though nothing happens.
pub(super) fn again(pool: &Pool, machine: &Machine, config: &StartdConfig, now: Time) -> Option<Time> {
    let name = &machine.facts.name;
    let kills = pool.backfill().on(name).filter(|work| work.lives() && !work.killed).filter_map(|work| {
        let at = work.asked? + killing_timeout(machine, config, work);
        (at > now).then_some(at)
    });
    kills.chain(pool.backfill().wake(name, now)).min()
}
