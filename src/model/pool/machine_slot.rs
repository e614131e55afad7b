//! The slots that a machine is laid out into: static ones, and partitionable ones from which dynamic slots are carved.
//!
//! A standing slot is there as long as the layout says so. What is claimed is a [`Slot`](super::Slot): a dynamic slot of a
//! partitionable one, or the static slot itself under its own name for as long as the claim lives.

use std::collections::BTreeSet;

use super::Document;
use super::ids::{MachineName, SlotName};
use super::machine::Load;
use super::made::MadeSlotAd;
use super::resources::Resources;
use super::slot::{LastTransition, Latched, Phase, Slot, State};
use super::slot_types::Kind as SlotKind;
use super::time::Time;

/// One slot of a layout: its share of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of its slot type, 0 for the default's.
    pub slot_type: u32,
    /// Static or partitionable.
    pub kind: SlotKind,
    /// What it holds.
    pub resources: Resources,
}

/// A slot that the machine's layout makes.
#[derive(Clone, Debug)]
pub struct MachineSlot {
    /// `SlotID`, from 1.
    pub id: u32,
    /// The number of its slot type, 0 for the default's. None for a slot of which only a claim is known.
    pub slot_type: Option<u32>,
    /// Static or partitionable.
    pub kind: SlotKind,
    /// What it holds when nothing is claimed: `TotalSlotCpus` and the like.
    pub total: Resources,
    /// What claims hold of it.
    pub carved: Resources,
    /// What is kept for claims that wait until dynamic slots have gone.
    pub kept: Option<Box<Resources>>,
    /// `DSlotID`s in use.
    pub dynamic: BTreeSet<u32>,
    /// A static slot's claim is on it: its state is that of the claimed slot.
    pub claimed: bool,
    phase: Phase,
    /// Its part of the machine's load.
    pub load: Load,
    /// What its latches gave, in their order.
    pub latched: Vec<Latched>,
    /// Ads that were made of it.
    pub(super) ads: Option<MadeSlotAd>,
}

impl MachineSlot {
    /// A slot as the startd makes it: in Owner.
    pub(super) fn new(id: u32, share: Share, now: Time) -> Self {
        Self {
            id,
            slot_type: Some(share.slot_type),
            kind: share.kind,
            total: share.resources,
            carved: Resources::default(),
            kept: None,
            dynamic: BTreeSet::new(),
            claimed: false,
            phase: Phase::starting(State::Owner, now),
            load: Load::default(),
            latched: Vec::new(),
            ads: None,
        }
    }

    /// A slot of which only a claim is known.
    pub(super) fn adopted(id: u32, kind: SlotKind, now: Time) -> Self {
        let share = Share { slot_type: 0, kind, resources: Resources::default() };
        Self { slot_type: None, ..Self::new(id, share, now) }
    }

    /// Its name.
    pub fn name(&self, machine: &MachineName) -> SlotName {
        SlotName { machine: machine.clone(), slot: self.id, dynamic: None }
    }

    /// State and activity while the slot is not claimed, and since when. A partitionable slot is never claimed itself.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// State and activity while the slot is not claimed.
    pub const fn state(&self) -> State {
        self.phase.state()
    }

    /// Enters a state and activity by a transition.
    pub fn enter(&mut self, to: State, taken: LastTransition) {
        self.phase.enter(to, taken);
    }

    /// The slot is in a state since then, without a transition.
    pub fn recall(&mut self, state: State, since: Time) {
        self.phase = Phase::starting(state, since);
    }

    /// Its object.
    pub fn document(&self, machine: &MachineName) -> Document {
        let name = self.name(machine);
        match self.kind {
            SlotKind::Static => Document::Slot(name),
            SlotKind::Partitionable => Document::PartitionableSlot(name),
        }
    }

    /// What of its share no claim holds and none waits for. Less may be had: see [`Machine::available`](super::Machine::available).
    pub fn uncarved(&self) -> Resources {
        self.balance().floor_at_zero()
    }

    /// Its share less what claims hold and wait for: negative where they hold more than the share.
    pub(super) fn balance(&self) -> Resources {
        let mut left = self.total.clone();
        left.subtract(&self.carved);
        if let Some(kept) = &self.kept {
            left.subtract(kept);
        }
        left
    }

    /// Whether a claim is on it, or on something carved from it.
    pub fn is_held(&self) -> bool {
        self.claimed || !self.dynamic.is_empty()
    }

    /// The names of the claimed slots on it.
    pub fn claimed_slots(&self, machine: &MachineName) -> impl Iterator<Item = SlotName> {
        let name = self.name(machine);
        let own = self.claimed.then(|| name.clone());
        let dynamic = self.dynamic.iter().map(move |id| SlotName { dynamic: Some(*id), ..name.clone() });
        own.into_iter().chain(dynamic)
    }

    /// The lowest `DSlotID` not in use: `HTCondor` uses them again.
    pub fn free_dynamic_id(&self) -> u32 {
        (1..).zip(&self.dynamic).find(|(n, used)| n != *used).map_or_else(
            || u32::try_from(self.dynamic.len()).unwrap_or(u32::MAX).saturating_add(1),
            |(n, _)| n,
        )
    }

    /// Whether a layout has the same slot here, if perhaps of another size or type. The number of a type says which configuration
    /// is the slot's, and nothing of what was carved: a layout that is the default's in other words lets all claims be.
    pub(super) fn is_of(&self, share: &Share) -> bool {
        self.kind == share.kind
    }

    /// Its claim is over: it goes on where the claimed slot stood.
    pub(super) fn let_go(&mut self, slot: &Slot, now: Time) {
        self.claimed = false;
        self.phase = Phase::starting(State::Owner, now).by(slot.phase().last().cloned());
    }

    /// Takes the type and size of a share. A static slot keeps what its claim holds. True if it is another type or size.
    pub(super) fn resize(&mut self, share: &Share) -> bool {
        let other = self.slot_type.replace(share.slot_type) != Some(share.slot_type);
        if self.claimed || self.total == share.resources {
            return other;
        }
        self.total = share.resources.clone();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_ids_are_used_again() {
        let share = Share { slot_type: 0, kind: SlotKind::Partitionable, resources: Resources::default() };
        let mut slot = MachineSlot::new(1, share, Time::default());
        for (used, free) in
            [(vec![], 1), (vec![1, 2], 3), (vec![1, 3], 2), (vec![2], 1), (vec![1, 2, 4, 5], 3)]
        {
            slot.dynamic = used.into_iter().collect();
            assert_eq!(slot.free_dynamic_id(), free, "{:?}", slot.dynamic);
        }
    }
}
