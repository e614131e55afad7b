//! Claims for which several dynamic slots make room: `ALLOW_PSLOT_PREEMPTION`.
//!
//! None of these slots is taken over. Each goes in its own way, and what it held returns to the partitionable slot, where it is
//! kept with what else the claim is to have: nobody else's match takes it. When the last has gone the claim's own slot is carved.
//! None of this is in any object: a new leader negotiates it again.

use std::collections::BTreeSet;

use super::Pool;
use super::ids::{ClaimId, MachineName, SlotName};
use super::leaving::Preemptor;
use super::limits::Wants;
use super::marks::Change;
use super::resources::Resources;
use super::slot::Claim;

/// A claim that waits until several dynamic slots have gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathering {
    /// The claim.
    pub claim: Claim,
    /// The partitionable slot that its slot is to be carved from.
    pub parent: SlotName,
    /// How much it is to have.
    pub resources: Resources,
    /// The dynamic slots that are still there.
    pub slots: BTreeSet<SlotName>,
}

impl Pool {
    /// Has a claim wait for several dynamic slots, each with its `RANK` for the claim's job.
    pub fn gather(
        &mut self,
        claim: Claim,
        parent: SlotName,
        resources: Resources,
        slots: &[(SlotName, f64)],
    ) {
        let id = claim.id.clone();
        // What it takes of limited things counts once, and not once for each slot.
        let part = Claim { limits: Wants::default(), ..claim.clone() };
        let names = slots.iter().map(|(name, _)| name.clone()).collect();
        let gathering = Gathering { claim, parent: parent.clone(), resources, slots: names };
        self.gatherings.insert(id.clone(), gathering);
        for (name, rank) in slots {
            self.wait_for(name, Preemptor { claim: part.clone(), rank: *rank, part: true });
        }
        self.changed(Change::Gathering(&id));
        self.count_gathered(&parent);
    }

    /// Nobody waits any more for several dynamic slots: those that are still there may stay, and what was kept is anybody's.
    pub fn end_gathering(&mut self, id: &ClaimId) -> Option<Gathering> {
        let gathering = self.gatherings.remove(id)?;
        for name in &gathering.slots {
            if let Some(slot) = self.slots.get_mut(name) {
                slot.is_awaited_no_longer(|_| true);
                self.changed(Change::Waits(name));
            }
        }
        if let Some(cluster) = self.jobs.get_mut(&gathering.claim.last.job.uid) {
            cluster.waits_for.remove(id);
        }
        self.count_gathered(&gathering.parent);
        self.changed(Change::GatheringOver);
        Some(gathering)
    }

    /// One of the slots that a claim waits for has gone, whichever way. Its resources are back.
    pub(super) fn part_gone(&mut self, name: &SlotName, id: &ClaimId) {
        let Some(gathering) = self.gatherings.get_mut(id) else { return };
        gathering.slots.remove(name);
        let (parent, job) = (gathering.parent.clone(), gathering.claim.last.job.uid.clone());
        if let Some(slots) = self.jobs.get_mut(&job).and_then(|cluster| cluster.waits_for.get_mut(id)) {
            slots.remove(name);
        }
        self.changed(Change::Gathering(id));
        self.count_gathered(&parent);
    }

    /// What those who wait at a partitionable slot take of limited things.
    pub(super) fn wanted_at(&self, parent: &SlotName) -> Wants {
        self.gathered_at(parent).fold(Wants::default(), |sum, gathering| sum.and(&gathering.claim.limits))
    }

    /// Whether there is as much as a claim is to have once all have gone that it waits for: the node may have less by now.
    pub fn has_room(&self, gathering: &Gathering) -> bool {
        let parent = &gathering.parent;
        let Some(machine) = self.machines.get(&parent.machine) else { return false };
        let Some(standing) = machine.standing.get(&parent.slot) else { return false };
        let others = self.gatherings.values().filter(|other| other.claim.id != gathering.claim.id);
        let fits = |total: &Resources, carved: &Resources, others: &mut dyn Iterator<Item = &Gathering>| {
            let mut left = total.clone();
            left.subtract(carved);
            gathering
                .slots
                .iter()
                .filter_map(|name| self.slots.get(name))
                .for_each(|slot| left.add(slot.resources()));
            others.for_each(|other| left.subtract(&self.own_part(other)));
            gathering.resources.fits_in(&left)
        };
        let mut here = others.clone().filter(|other| other.parent == *parent);
        let mut all = others.filter(|other| other.parent.machine == parent.machine);
        fits(&standing.total, &standing.carved, &mut here) && fits(&machine.total, &machine.carved, &mut all)
    }

    /// Of what a claim is to have, what does not come from the slots that are still there.
    fn own_part(&self, gathering: &Gathering) -> Resources {
        let mut own = gathering.resources.clone();
        let there = gathering.slots.iter().filter_map(|name| self.slots.get(name));
        there.for_each(|slot| own.subtract(slot.resources()));
        own.floor_at_zero()
    }

    /// Those who wait at a machine's slots are looked at: something of the machine has changed.
    pub fn look_at_gatherings(&mut self, machine: &MachineName) {
        let there = self.gatherings.iter().filter(|(_, gathering)| gathering.parent.machine == *machine);
        let there: Vec<ClaimId> = there.map(|(id, _)| id.clone()).collect();
        for id in there {
            self.changed(Change::Gathering(&id));
        }
    }

    fn gathered_at<'p>(&'p self, parent: &'p SlotName) -> impl Iterator<Item = &'p Gathering> {
        self.gatherings.values().filter(move |gathering| gathering.parent == *parent)
    }

    /// What is kept at a partitionable slot follows from who waits there.
    fn count_gathered(&mut self, parent: &SlotName) {
        let mut kept = Resources::default();
        for gathering in self.gathered_at(parent) {
            kept.add(&self.own_part(gathering));
        }
        let standing = self.machines.get_mut(&parent.machine).and_then(|m| m.standing.get_mut(&parent.slot));
        if let Some(standing) = standing {
            standing.kept = (kept != Resources::default()).then(|| Box::new(kept));
            self.changed(Change::Kept(parent));
        }
        self.count_limits(parent);
    }
}
