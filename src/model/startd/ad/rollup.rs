//! The attributes of a partitionable slot's ad about the dynamic slots that were carved from it: lists, in the order of their
//! ids.
//!
//! Source: HTCondor 25.14's ads, which have `Child<Attr>` for the attributes below, for each custom resource, and for the
//! attributes that `STARTD_PARTITIONABLE_SLOT_ATTRS` names.

use crate::pool::{Machine, MachineSlot, Pool, SlotName, Time};
use classad::{Ad, Env, Value};

use super::claimed_slot_ad;

/// The names of the lists, and the attribute of dynamic slots that each list shows.
const SHOWN: &[(&str, &str)] = &[
    ("ChildAccountingGroup", "AccountingGroup"),
    ("ChildActivity", "Activity"),
    ("ChildCpus", "Cpus"),
    ("ChildCurrentRank", "CurrentRank"),
    ("ChildDSlotId", "DSlotId"),
    ("ChildDisk", "Disk"),
    ("ChildEnteredCurrentState", "EnteredCurrentState"),
    ("ChildMemory", "Memory"),
    ("ChildName", "Name"),
    ("ChildRemoteOwner", "RemoteOwner"),
    ("ChildRemoteUser", "RemoteUser"),
    ("ChildRetirementTimeRemaining", "RetirementTimeRemaining"),
    ("ChildState", "State"),
];

/// Puts the lists into a partitionable slot's ad, with the values that the attributes have at `now`.
pub(super) fn set(ad: &mut Ad, pool: &Pool, machine: &Machine, slot: &MachineSlot, now: Time) {
    let config = pool.startd(machine);
    let env = Env::at(now.secs());
    let children: Vec<Ad> = slot
        .claimed_slots(&machine.facts.name)
        .filter_map(|name| pool.slots().get(&name))
        .map(|child| claimed_slot_ad(machine, &config, child, job_of(pool, child.name()), &env))
        .collect();
    let list = |attribute: &str| {
        let values = children.iter().map(|child| child.eval_attr(attribute, None, &env));
        Value::from(values.collect::<Vec<Value>>())
    };
    ad.set("PslotRollupInformation", true);
    for (name, attribute) in SHOWN {
        ad.set(*name, list(attribute));
    }
    let custom = machine.total.by_classad_name().into_keys();
    for attribute in custom.chain(config.child_attrs.iter().cloned()) {
        ad.set(&*format!("Child{attribute}"), list(&attribute));
    }
}

/// The ad of the job that a slot is claimed for.
pub(super) fn job_of<'a>(pool: &'a Pool, slot: &SlotName) -> Option<&'a Ad> {
    pool.spec_of(&pool.slots().get(slot)?.claim().last).map(|spec| &spec.ad)
}
