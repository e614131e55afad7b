//! Events about Slot objects.

use super::Pool;
use super::event::SlotFacts;
use super::ids::{ClaimId, SlotName};
use super::job::Job;
use super::marks::Change;
use super::slot::{Claim, Claimed, Phase, Record, Removal, Shown, Slot, State};
use super::time::Time;

impl Pool {
    pub(super) fn slot(&mut self, facts: SlotFacts, now: Time) {
        if facts.name.dynamic.is_none() && facts.claim.is_none() {
            self.unclaimed_objects.insert(facts.name.clone(), facts.resources.clone());
        } else {
            self.unclaimed_objects.remove(&facts.name);
        }
        let unheard = self.slots.get(&facts.name).is_some_and(|slot| slot.shown() == Shown::Unheard);
        if let (None, None, Some(claim), false) =
            (facts.name.dynamic, &facts.claim, self.deleted_claim(&facts.name).cloned(), unheard)
        {
            // The object of a static slot stays when its claim is taken off.
            self.forget_deleted(&facts.name, &claim);
            self.slot_deleted(&facts.name, &claim, now);
        }
        if let Some(slot) = self.slots.get_mut(&facts.name) {
            // If somebody edited the slot or its claim, or took the claim off, the object is written again.
            let same = facts.claim.is_some_and(|claim| slot.is_named_by(&claim))
                && facts.resources == *slot.resources();
            if slot.record() == Record::Written && !same {
                slot.claim_is_due();
                self.changed(Change::Slot(&facts.name));
            } else {
                slot.object_shows(same);
            }
            return;
        }
        match facts.claim {
            Some(claim) if self.is_deleted(&facts.name, &claim.id) => {}
            // A claim that was made for another slot is not adopted.
            Some(claim) if !self.synced && claim.id.is_of(&facts.name) => {
                self.adopt(SlotFacts { claim: None, ..facts }, claim, now);
            }
            _ => self.stray(facts.name),
        }
    }

    pub(super) fn stray(&mut self, name: SlotName) {
        if !self.slots.contains_key(&name) {
            self.strays.insert(name);
        }
    }

    /// Takes over a slot from an earlier leader, with the claim that the leader wrote.
    fn adopt(&mut self, facts: SlotFacts, mut claim: Claim, now: Time) {
        if let Some(job) = self.jobs.get(&claim.last.job.uid) {
            share_texts(&mut claim, job);
        }
        let name = facts.name;
        if !self.machines.contains_key(&name.machine) {
            let gone = self.machine_of_nothing(&name.machine, now);
            self.machines.insert(name.machine.clone(), gone);
            self.changed(Change::Machine(&name.machine));
        }
        if let Some(machine) = self.machines.get_mut(&name.machine) {
            machine.stand(&name, now);
        }
        // If the job is gone, its pod may still run in the slot.
        let assigned = self.jobs.get_mut(&claim.last.job.uid).is_none_or(|job| {
            let free = !job.was_out(claim.last.proc) && !job.active.contains_key(&claim.last.proc);
            if free {
                job.idle.remove(claim.last.proc);
                job.active.insert(claim.last.proc, name.clone());
            }
            free
        });
        let idle = Phase::starting(State::Claimed(Claimed::Idle), now);
        let must_go = |job: &Job| job.removing || (assigned && job.is_out(claim.last.proc));
        let removal = self.jobs.get(&claim.last.job.uid).is_none_or(must_go).then_some(Removal::ByUser);
        let slot = Slot::new(name, facts.resources, claim, idle).adopted(assigned, removal, facts.recorded);
        self.changed(Change::SlotObject(slot.name()));
        let id = slot.claim().id.clone();
        if self.carve(slot, now) {
            // A Slot that an earlier leader wrote with its last breath may be told after its pod.
            for pod in self.orphans_of(&id).cloned().collect::<Vec<_>>() {
                self.pod(pod, now);
            }
        }
    }

    pub(super) fn slot_gone(&mut self, name: &SlotName, claim: Option<&ClaimId>, now: Time) {
        self.strays.remove(name);
        self.unclaimed_objects.remove(name);
        if let Some(slot) = self.slots.get_mut(name) {
            slot.object_is_gone();
        }
        if name.dynamic.is_none() {
            // A static slot has an object as long as the layout has the slot.
            self.changed(Change::SlotObject(name));
        }
        if let Some(claim) = claim {
            self.forget_deleted(name, claim);
            self.slot_deleted(name, claim, now);
        }
        self.write_again(name, |slot| {
            matches!(slot.record(), Record::Written | Record::Writing) && claim == Some(&slot.claim().id)
        });
    }

    /// Writes a live claim again whose Slot somebody deleted: only the operator ends claims.
    pub(super) fn write_again(&mut self, name: &SlotName, is_live: impl Fn(&Slot) -> bool) {
        if let Some(slot) = self.slots.get_mut(name).filter(|slot| is_live(slot)) {
            slot.claim_is_due();
            self.changed(Change::Slot(name));
            self.changed(Change::SlotObject(name));
        }
    }
}

/// Lets a claim share the texts that are equal with its job. A job may have as many claims as procs.
fn share_texts(claim: &mut Claim, job: &Job) {
    if claim.last.job == job.key {
        claim.last.job = job.key.clone();
    }
    let Some(spec) = &job.spec else { return };
    if claim.submitter == spec.submitter {
        claim.submitter = spec.submitter.clone();
    }
    if claim.group == spec.group {
        claim.group.clone_from(&spec.group);
    }
}
