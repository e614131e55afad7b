//! Backfill work of a machine's slots: decides which pods are created, and which have to end.
//!
//! Source: the manual's "Backfill State". A backfill pod holds the unclaimed resources of its slot. Like HTCondor's
//! BOINC client, the pod ends before its slot leaves Backfill, and begins as soon as the policy allows.

use std::sync::Arc;

use super::unclaimed::surroundings;
use super::without_claim::backfill_ends;
use crate::pool::backfill::{Plan, Work};
use crate::pool::{
    Backfill, BackfillStage, BackfillTemplate, Capacity, Effect, KILL_GRACE, Machine, MachineName,
    MachineSlot, Offer, PODS, Pool, Resources, SlotKind, SlotName, StartdConfig, State, Time,
};

/// Whether a slot can do backfill work: the policy has a template and enables backfill, and resources are left for a
/// pod, or a pod exists.
pub(super) fn fills(pool: &Pool, machine: &Machine, slot: &MachineSlot, config: &StartdConfig) -> bool {
    template(machine, slot, config).is_some()
        && (size(machine, slot, &machine.available()).is_some()
            || pool.backfill().stage(&slot.name(&machine.facts.name)) != BackfillStage::None)
}

/// The template of the slot's backfill work; `None` if the policy has none or does not enable backfill.
fn template<'a>(
    machine: &Machine,
    slot: &MachineSlot,
    config: &'a StartdConfig,
) -> Option<&'a Arc<BackfillTemplate>> {
    config.backfill.as_ref().filter(|_| machine.slot_config(config, slot.id).policy.enable_backfill)
}

/// The size of the slot's pod if `room` is left on the machine: a static slot's whole share, or everything that is left
/// of a partitionable slot. `None` if no pod fits.
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

/// Whether a slot's work must end for what comes after it: claims wait for what the work holds, the policy has another
/// template now, or the slot has become twice as large.
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
        // If the machine is overfull but no single slot is, the work of every slot is in the way.
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

/// Puts slots of a machine that was just seen into Backfill/Idle, if their backfill work was started under an earlier
/// leader.
pub(super) fn adopt(pool: &mut Pool, name: &MachineName, offer: &Offer, now: Time) {
    if !matches!(offer, Offer::Offered | Offer::Cordoned) {
        return;
    }
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    let own = |slot: &MachineSlot, work: &&Work| {
        let of =
            template(machine, slot, &config).is_some_and(|template| work.is_of(&slot.name(name), template));
        of && work.lives() && !work.facts.deletion.deleting
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

/// Asks for the deletion of pods that have to end, and for the creation of new ones. The slots have taken their
/// transitions before.
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
        let grace = match ask {
            Ask::Note | Ask::Delete => None,
            Ask::Kill => Some(KILL_GRACE),
            Ask::Force => Some(0),
        };
        pool.backfill_asked_to_go(name, &work.facts.pod.uid, grace, now);
        if ask == Ask::Note {
            continue;
        }
        let off = ask == Ask::Force && work.lives();
        effects.push(Effect::DeleteBackfill { pod: work.facts.pod, machine: name.clone(), grace, off });
    }
    make(pool, name, &config, offer, now, effects);
}

/// How a pod that has to end is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Without a call: somebody else deletes the pod already, and the operator only notes that the pod is to go.
    Note,
    /// By a deletion with the pod's own grace period.
    Delete,
    /// By a deletion with the shortest grace period.
    Kill,
    /// By force: no program runs in the pod, or nobody is left to confirm its end.
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
    if !work.lives() {
        return work.asked.is_none().then_some(Ask::Force);
    }
    if *offer == Offer::Gone {
        return what_of_without_node(work, now);
    }
    if !has_to_go(pool, machine, config, offer, work, now) {
        return None;
    }
    match work.asked {
        None if work.facts.deletion.deleting => Some(Ask::Note),
        None => Some(Ask::Delete),
        Some(at) if !work.killed && at + killing_timeout(machine, config, work) <= now => Some(Ask::Kill),
        Some(_) => None,
    }
}

/// As [`what_of`], for a pod whose Node was deleted. A kubelet may still be there, and lets the pod run for the time
/// that the pod was granted. The pod holds its resources for that time: the Node may come back.
fn what_of_without_node(work: &Work, now: Time) -> Option<Ask> {
    match work.asked {
        None if work.facts.deletion.deleting => Some(Ask::Note),
        None => Some(Ask::Kill),
        Some(_) => {
            let gone = work.granted.is_some_and(|granted| granted.is_gone(now));
            (gone && !work.forced).then_some(Ask::Force)
        }
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
    let Some(slot) = work.facts.slot.and_then(|id| machine.machine_slots.get(&id)) else { return true };
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
    let slot = machine.machine_slots.get(&id)?;
    let template = Arc::clone(template(machine, slot, config)?);
    let slot_name = slot.name(name);
    let may = pool.backfill().may_make(&slot_name, now)
        && !backfill_ends(&surroundings(pool, machine, slot, config, offer, now));
    if !may {
        return None;
    }
    // The resources of other slots' backfill pods are not free, although no claim has them.
    let mut room = Capacity::of(&machine.available());
    room.subtract(&pool.backfill().held(machine));
    let resources = size(machine, slot, &room.whole())?;
    let policy = machine.policy.clone()?;
    let uid = Arc::clone(&pool.policies().get(&policy)?.uid);
    let tolerations = config.tolerations.clone();
    Some(Plan { slot: slot_name, template, policy: (policy, uid), resources, tolerations })
}

/// When a machine's backfill work must next be looked at, even if nothing happens.
pub(super) fn again(pool: &Pool, machine: &Machine, config: &StartdConfig, now: Time) -> Option<Time> {
    let name = &machine.facts.name;
    let kills = pool.backfill().on(name).filter(|work| work.lives() && !work.killed).filter_map(|work| {
        let at = work.asked? + killing_timeout(machine, config, work);
        (at > now).then_some(at)
    });
    let gone = machine.offer == Offer::Gone;
    let forces = pool.backfill().on(name).filter(|work| gone && work.lives() && !work.forced);
    let forces = forces.filter_map(|work| work.granted?.gone_by());
    kills.chain(forces).chain(pool.backfill().wake(name, now)).min()
}
