//! A record of slots' transitions, for simulations and tests.

use std::sync::Arc;

use super::ids::{MachineName, SlotName};
use super::machine_slot::MachineSlot;
use super::slot::{Claim, LastTransition, Slot, State};

/// A transition that a slot took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The slot. A dynamic slot's first transition is its match. It takes that transition from the state of its
    /// partitionable slot.
    pub slot: SlotName,
    /// The state before the transition.
    pub from: State,
    /// The state after the transition.
    pub to: State,
    /// The transition's number, reason and time.
    pub taken: LastTransition,
    /// The proc of the slot's claim: the job's name and the proc's number.
    pub proc: Option<(Arc<str>, u32)>,
}

impl Noted {
    /// The transition that a claimed slot just took.
    pub fn of_claimed(slot: &Slot, from: State) -> Option<Self> {
        let taken = slot.phase().last().cloned()?;
        let proc = Some(proc(slot.claim()));
        Some(Self { slot: slot.name().clone(), from, to: slot.state(), taken, proc })
    }

    /// The transition that an unclaimed slot of this machine just took.
    pub fn of_machine_slot(slot: &MachineSlot, machine: &MachineName, from: State) -> Option<Self> {
        let taken = slot.phase().last().cloned()?;
        Some(Self { slot: slot.name(machine), from, to: slot.state(), taken, proc: None })
    }
}

fn proc(claim: &Claim) -> (Arc<str>, u32) {
    (Arc::clone(&claim.last.job.name), claim.last.proc)
}
