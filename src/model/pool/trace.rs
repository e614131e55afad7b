//! Transitions noted down while somebody wants to know them: simulations and tests.

use std::sync::Arc;

use super::ids::{MachineName, SlotName};
use super::machine_slot::MachineSlot;
use super::slot::{Claim, LastTransition, Slot, State};

/// A transition that a slot took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The slot. A dynamic slot takes the first of its transitions, its match, as what is left of its partitionable slot.
    pub slot: SlotName,
    /// Where it was.
    pub from: State,
    /// Where it is.
    pub to: State,
    /// Number, reason and time.
    pub taken: LastTransition,
    /// The proc of its claim: the job's name and the proc's number.
    pub proc: Option<(Arc<str>, u32)>,
}

impl Noted {
    /// What a claimed slot just did.
    pub fn of_claimed(slot: &Slot, from: State) -> Option<Self> {
        let taken = slot.phase().last().cloned()?;
        let proc = Some(proc(slot.claim()));
        Some(Self { slot: slot.name().clone(), from, to: slot.state(), taken, proc })
    }

    /// What a slot of this machine just did that nobody has claimed.
    pub fn of_standing(slot: &MachineSlot, machine: &MachineName, from: State) -> Option<Self> {
        let taken = slot.phase().last().cloned()?;
        Some(Self { slot: slot.name(machine), from, to: slot.state(), taken, proc: None })
    }
}

fn proc(claim: &Claim) -> (Arc<str>, u32) {
    (Arc::clone(&claim.last.job.name), claim.last.proc)
}
