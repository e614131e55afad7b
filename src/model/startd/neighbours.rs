//! The attributes by which slots of one machine depend on each other: each slot's part of the machine's load, and
//! `STARTD_SLOT_ATTRS`.

use std::sync::Arc;

use super::ad::{claimed_slot_ad, look_at_latches, unclaimed_slot_ad};
use super::load::{Bearer, Turn, divide};
use crate::pool::{
    Claimed, Latched, Machine, MachineName, MachineSlot, Pool, Resources, Slot, SlotName, StartdConfig,
    State, Time,
};
use classad::{Ad, Env, Expr};

/// Updates the parts of the load, the latched expressions and the crossed attributes of a machine's slots.
pub(super) fn look_around(pool: &mut Pool, name: &MachineName, now: Time) {
    divide_load(pool, name);
    latch(pool, name, now);
    cross(pool, name, now);
}

/// A machine slot that is not claimed, or a claimed slot.
enum Either<'a> {
    MachineSlot(&'a MachineSlot),
    Claimed(&'a Slot),
}

/// The slots of a machine in the order of their names. A static slot that is claimed is listed as its claimed slot.
fn slots<'a>(pool: &'a Pool, machine: &'a Machine) -> impl Iterator<Item = (SlotName, Either<'a>)> {
    machine.slots().flat_map(move |machine_slot| {
        let own = (!machine_slot.claimed)
            .then(|| (machine_slot.name(&machine.facts.name), Either::MachineSlot(machine_slot)));
        let claimed = machine_slot.claimed_slots(&machine.facts.name);
        own.into_iter().chain(claimed.filter_map(|name| {
            let slot = pool.slots().get(&name)?;
            Some((name, Either::Claimed(slot)))
        }))
    })
}

fn divide_load(pool: &mut Pool, name: &MachineName) {
    let Some(machine) = pool.machines().get(name) else { return };
    let (Some(sensed), Some(report)) = (&machine.sensed, &machine.report) else { return };
    let (names, bearers): (Vec<SlotName>, Vec<Bearer>) =
        slots(pool, machine).map(|(name, slot)| (name, bearer(machine, &slot))).unzip();
    let loads = divide(&bearers, sensed.owner_load, report.pool_load);
    for (slot, load) in names.into_iter().zip(loads) {
        if pool.edit_slot(&slot, |claimed| claimed.set_load(load)).is_none() {
            pool.edit_machine_slot(&slot, |unclaimed| unclaimed.load = load);
        }
    }
}

fn bearer(machine: &Machine, slot: &Either) -> Bearer {
    let (state, cpus) = match slot {
        Either::MachineSlot(slot) => (slot.state(), cpus(&machine.available_in(slot))),
        Either::Claimed(slot) => (slot.state(), cpus(slot.resources())),
    };
    let turn = match state {
        State::Owner => Turn::Owner,
        State::Unclaimed(_) => Turn::Unclaimed,
        _ => Turn::Other,
    };
    let busy = matches!(state, State::Claimed(Claimed::Busy | Claimed::Retiring) | State::Preempting(_));
    Bearer { turn, cpus, busy }
}

#[allow(clippy::cast_precision_loss, reason = "no machine has 2^52 CPUs")]
fn cpus(resources: &Resources) -> f64 {
    resources.cpus as f64
}

/// Updates the latched expressions of a machine's slots.
fn latch(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    let env = Env::at(now.secs());
    let changed: Vec<(SlotName, Vec<Latched>)> = slots(pool, machine)
        .filter_map(|(name, slot)| {
            let latches = &machine.slot_config(&config, name.slot).latches;
            let before = match &slot {
                Either::MachineSlot(slot) => &slot.latched,
                Either::Claimed(slot) => slot.latched(),
            };
            if latches.is_empty() && before.is_empty() {
                return None;
            }
            let gives = look_at_latches(latches, before, &ad(machine, &config, &slot, &env), &env, now);
            (gives != *before).then_some((name, gives))
        })
        .collect();
    for (slot, gives) in changed {
        if pool.edit_slot(&slot, |claimed| claimed.set_latched(gives.clone())).is_none() {
            pool.edit_machine_slot(&slot, |unclaimed| unclaimed.latched = gives);
        }
    }
}

fn ad(machine: &Machine, config: &StartdConfig, slot: &Either, env: &Env) -> Ad {
    match slot {
        Either::MachineSlot(slot) => unclaimed_slot_ad(machine, slot, config),
        Either::Claimed(slot) => claimed_slot_ad(machine, config, slot, None, env),
    }
}

/// Updates the attributes of `STARTD_SLOT_ATTRS`: `slot2_State` is the `State` of the second slot, `slot1_3_State` that
/// of a dynamic slot.
fn cross(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name) else { return };
    let config = pool.startd(machine);
    if config.slot_attrs.is_empty() && machine.crossed.is_empty() {
        return;
    }
    let env = Env::at(now.secs());
    let crossed: Vec<(String, Expr)> =
        slots(pool, machine).flat_map(|(name, slot)| shown(machine, &config, &name, &slot, &env)).collect();
    if *machine.crossed != *crossed {
        pool.edit_machine(name, |machine| machine.crossed = Arc::from(crossed));
    }
}

fn shown(
    machine: &Machine,
    config: &StartdConfig,
    name: &SlotName,
    slot: &Either,
    env: &Env,
) -> Vec<(String, Expr)> {
    let ad = ad(machine, config, slot, env);
    let prefix = match name.dynamic {
        Some(dynamic) => format!("slot{}_{dynamic}", name.slot),
        None => format!("slot{}", name.slot),
    };
    let value = |attribute: &String| {
        let value = ad.get(attribute).map(|_| ad.eval_attr(attribute, None, env))?;
        Some((format!("{prefix}_{attribute}"), Expr::literal(value)))
    };
    config.slot_attrs.iter().filter_map(value).collect()
}
