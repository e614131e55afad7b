//! The slots into which a machine is divided: static slots, and partitionable slots from which dynamic slots are
//! carved.
//!
//! A machine slot exists as long as the layout has it. A claim is on a [`Slot`]: either a dynamic slot of
//! a partitionable slot, or the static slot itself, under its own name, for as long as the claim lives.

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
    /// The number of the slot's type; 0 for the type that exists by default.
    pub slot_type: u32,
    /// Whether the slot is static or partitionable.
    pub kind: SlotKind,
    /// The resources of the slot.
    pub resources: Resources,
}

/// A slot that the machine's layout makes, static or partitionable.
#[derive(Clone, Debug)]
pub struct MachineSlot {
    /// `SlotID`, from 1.
    pub id: u32,
    /// The number of the slot's type; 0 for the type that exists by default. `None` if only a claim on the slot is
    /// known.
    pub slot_type: Option<u32>,
    /// Whether the slot is static or partitionable.
    pub kind: SlotKind,
    /// The resources of the slot when nothing is claimed: `TotalSlotCpus` and the like.
    pub total: Resources,
    /// The resources of the slot that claims hold.
    pub carved: Resources,
    /// The resources that are kept for claims that wait until dynamic slots have gone.
    pub kept: Option<Box<Resources>>,
    /// `DSlotID`s in use.
    pub dynamic: BTreeSet<u32>,
    /// Whether a claim is on the static slot itself. If so, the slot's state is that of the claimed slot.
    pub claimed: bool,
    phase: Phase,
    /// The slot's part of the machine's load.
    pub load: Load,
    /// The values of the slot's latched expressions, in the order of the configuration.
    pub latched: Vec<Latched>,
    /// The slot's ads, kept with what they were made of.
    pub(super) ads: Option<MadeSlotAd>,
}

impl MachineSlot {
    /// A slot in Owner, as the startd makes it.
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

    /// The slot's name.
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

    /// The slot's object.
    pub fn document(&self, machine: &MachineName) -> Document {
        let name = self.name(machine);
        match self.kind {
            SlotKind::Static => Document::Slot(name),
            SlotKind::Partitionable => Document::PartitionableSlot(name),
        }
    }

    /// The part of the slot's resources that no claim holds or waits for. Less may be left to carve: see
    /// [`Machine::available`](super::Machine::available).
    pub fn uncarved(&self) -> Resources {
        self.balance().floor_at_zero()
    }

    /// The slot's resources less what claims hold and wait for; negative if claims hold more than the slot has.
    pub(super) fn balance(&self) -> Resources {
        let mut left = self.total.clone();
        left.subtract(&self.carved);
        if let Some(kept) = &self.kept {
            left.subtract(kept);
        }
        left
    }

    /// Whether a claim is on the slot, or on a dynamic slot that was carved from it.
    pub fn is_held(&self) -> bool {
        self.claimed || !self.dynamic.is_empty()
    }

    /// The names of the claimed slots: the slot itself if it is claimed, and its dynamic slots.
    pub fn claimed_slots(&self, machine: &MachineName) -> impl Iterator<Item = SlotName> {
        let name = self.name(machine);
        let own = self.claimed.then(|| name.clone());
        let dynamic = self.dynamic.iter().map(move |id| SlotName { dynamic: Some(*id), ..name.clone() });
        own.into_iter().chain(dynamic)
    }

    /// The lowest `DSlotID` that is not in use. HTCondor uses ids again, too.
    pub fn free_dynamic_id(&self) -> u32 {
        (1..).zip(&self.dynamic).find(|(n, used)| n != *used).map_or_else(
            || u32::try_from(self.dynamic.len()).unwrap_or(u32::MAX).saturating_add(1),
            |(n, _)| n,
        )
    }

    /// Whether the slot and `share` are the same slot of a layout, though perhaps of another size or type. The type
    /// only says which configuration holds for the slot; so a layout that says the same as the default in other words
    /// ends no claims.
    pub(super) fn is_of(&self, share: &Share) -> bool {
        self.kind == share.kind
    }

    /// The claim on a static slot is over: the slot is in Owner again, and keeps the claimed slot's last transition.
    pub(super) fn let_go(&mut self, slot: &Slot, now: Time) {
        self.claimed = false;
        self.phase = Phase::starting(State::Owner, now).by(slot.phase().last().cloned());
    }

    /// Takes over the type and size of a share. A claimed slot keeps its size. Returns whether the type or size
    /// changed.
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
