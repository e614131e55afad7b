//! Claims for which several dynamic slots make room: `ALLOW_PSLOT_PREEMPTION`.
//!
//! None of these slots is taken over. When each has ended in its own way, its resources return to the partitionable
//! slot and are kept there for the waiting claim: no other match gets them. When the last slot has gone, the claim's
//! own slot is carved. No object records any of this: a new leader negotiates the claim again.

use std::collections::BTreeSet;

use super::Pool;
use super::ids::{ClaimId, MachineName, SlotName};
use super::indexed::About;
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
    /// The partitionable slot out of which the claim's slot is to be carved.
    pub parent: SlotName,
    /// The resources that the claim is to have.
    pub resources: Resources,
    /// The dynamic slots that have not gone yet.
    pub slots: BTreeSet<SlotName>,
}

impl About for Gathering {
    /// The machine.
    type Subject = MachineName;

    fn subjects(&self) -> impl IntoIterator<Item = MachineName> {
        [self.parent.machine.clone()]
    }
}

impl Pool {
    /// Lets a claim wait for several dynamic slots, each given with its `RANK` for the claim's job.
    pub fn gather(
        &mut self,
        claim: Claim,
        parent: SlotName,
        resources: Resources,
        slots: &[(SlotName, f64)],
    ) {
        let id = claim.id.clone();
        // The units of concurrency limits that the claim takes count once, not once for each slot.
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

    /// Ends a gathering: the dynamic slots that are still there may stay, and anybody may have what was kept.
    pub fn end_gathering(&mut self, id: &ClaimId) -> Option<Gathering> {
        let gathering = self.gatherings.remove(id)?;
        for name in &gathering.slots {
            if let Some(slot) = self.slots.get_mut(name) {
                slot.is_awaited_no_longer(|_| true);
                self.changed(Change::Waits(name));
            }
        }
        if let Some(job) = self.jobs.get_mut(&gathering.claim.last.job.uid) {
            job.waits_for.remove(id);
        }
        self.count_gathered(&gathering.parent);
        self.changed(Change::GatheringOver);
        Some(gathering)
    }

    /// Notes that one of the slots that a claim waits for has gone, in whatever way. Its resources have returned.
    pub(super) fn part_gone(&mut self, name: &SlotName, id: &ClaimId) {
        let gone = self.gatherings.edit(id, |gathering| {
            gathering.slots.remove(name);
            (gathering.parent.clone(), gathering.claim.last.job.uid.clone())
        });
        let Some((parent, job)) = gone else { return };
        if let Some(slots) = self.jobs.get_mut(&job).and_then(|job| job.waits_for.get_mut(id)) {
            slots.remove(name);
        }
        self.changed(Change::Gathering(id));
        self.count_gathered(&parent);
    }

    /// The units of concurrency limits that the claims which wait at a partitionable slot take.
    pub(super) fn wanted_at(&self, parent: &SlotName) -> Wants {
        self.gathered_at(parent).fold(Wants::default(), |sum, gathering| sum.and(&gathering.claim.limits))
    }

    /// Whether a claim will have enough room once all slots that it waits for have gone. The node may have shrunk
    /// meanwhile.
    pub fn has_room(&self, gathering: &Gathering) -> bool {
        let parent = &gathering.parent;
        let Some(machine) = self.machines.get(&parent.machine) else { return false };
        let Some(machine_slot) = machine.machine_slots.get(&parent.slot) else { return false };
        let others = self.gathered_on(&parent.machine).filter(|other| other.claim.id != gathering.claim.id);
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
        let mut all = others;
        fits(&machine_slot.total, &machine_slot.carved, &mut here)
            && fits(&machine.total, &machine.carved, &mut all)
    }

    /// The part of what a claim is to have that does not come from slots that are still there.
    fn own_part(&self, gathering: &Gathering) -> Resources {
        let mut own = gathering.resources.clone();
        let there = gathering.slots.iter().filter_map(|name| self.slots.get(name));
        there.for_each(|slot| own.subtract(slot.resources()));
        own.floor_at_zero()
    }

    /// Marks the gatherings on a machine, because something of the machine changed.
    pub fn look_at_gatherings(&mut self, machine: &MachineName) {
        let there: Vec<ClaimId> = self.gatherings.about(machine).map(|(id, _)| id.clone()).collect();
        for id in there {
            self.changed(Change::Gathering(&id));
        }
    }

    fn gathered_at<'p>(&'p self, parent: &'p SlotName) -> impl Iterator<Item = &'p Gathering> {
        self.gathered_on(&parent.machine).filter(move |gathering| gathering.parent == *parent)
    }

    fn gathered_on(&self, machine: &MachineName) -> impl Iterator<Item = &Gathering> + Clone {
        self.gatherings.about(machine).map(|(_, gathering)| gathering)
    }

    /// Updates what is kept at a partitionable slot for the claims that wait there.
    fn count_gathered(&mut self, parent: &SlotName) {
        let mut kept = Resources::default();
        for gathering in self.gathered_at(parent) {
            kept.add(&self.own_part(gathering));
        }
        let machine_slot =
            self.machines.get_mut(&parent.machine).and_then(|m| m.machine_slots.get_mut(&parent.slot));
        if let Some(machine_slot) = machine_slot {
            machine_slot.kept = (kept != Resources::default()).then(|| Box::new(kept));
            self.changed(Change::Kept(parent));
        }
        self.count_limits(parent);
    }
}
