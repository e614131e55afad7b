//! Claimed slots that come and go: the one place where a machine's resources change hands.

use super::ids::{ClaimId, MachineName, SlotName};
use super::leaving::Preemptor;
use super::machine::Machine;
use super::slot::{Claim, Record, Shown, Slot};
use super::slot_types::Kind as SlotKind;
use super::time::Time;
use super::{Document, Pool};

impl Pool {
    /// Adds a claimed slot: its resources are the machine's no more, and its submitter is charged. False, and nothing
    /// done, when the machine or its standing slot is not there, or the name is taken.
    pub fn carve(&mut self, slot: Slot, now: Time) -> bool {
        if self.slots.contains_key(&slot.name) {
            return false;
        }
        let Some(machine) = self.machines.get_mut(&slot.name.machine) else { return false };
        let Some(standing) = machine.standing.get_mut(&slot.name.slot) else { return false };
        if let Some(dynamic) = slot.name.dynamic {
            standing.dynamic.insert(dynamic);
        } else {
            standing.claimed = true;
            standing.total.clone_from(&slot.resources);
        }
        standing.carved.add(&slot.resources);
        machine.carved.add(&slot.resources);
        machine.count_unclaimed(now);
        // Before the start is complete the accounts are not known; Synced reconciles them with the claims.
        if self.synced {
            self.charge(&slot.claim, now);
        }
        self.claims.insert(slot.claim.id.clone(), slot.name.clone());
        self.touch(&slot);
        let name = slot.name.clone();
        self.attention.slots.insert(name.clone());
        self.slots.insert(name.clone(), slot);
        self.count_limits(&name);
        true
    }

    /// Takes a claim's slot away: its resources return to the machine, and its submitter is charged no longer. A static
    /// slot is its owner's again.
    pub fn give_back(&mut self, name: &SlotName, now: Time) -> Option<Slot> {
        let gathered = self.slots.get_mut(name).and_then(|slot| slot.preempting.take_if(|next| next.part));
        self.dismiss(name);
        self.charge_again(name, now);
        self.set_alarm(name, None);
        let slot = self.slots.remove(name)?;
        if slot.shown == Shown::Another {
            self.strays.insert(name.clone());
        }
        self.claims.remove(&slot.claim.id);
        self.count_limits(name);
        if let Some(machine) = self.machines.get_mut(&name.machine) {
            machine.carved.subtract(&slot.resources);
            if let Some(standing) = machine.standing.get_mut(&name.slot) {
                standing.carved.subtract(&slot.resources);
                match name.dynamic {
                    Some(dynamic) => {
                        standing.dynamic.remove(&dynamic);
                    }
                    None => standing.let_go(&slot, now),
                }
            }
            machine.count_unclaimed(now);
            machine.looked_at = None;
        }
        if let Some(next) = gathered {
            self.part_gone(name, &next.claim.id);
        }
        if self.synced {
            self.discharge(&slot.claim, now);
        }
        self.touch(&slot);
        self.attention.machines.insert(name.machine.clone());
        self.attention.costs.insert(name.machine.clone());
        self.schedule.wanted = true;
        Some(slot)
    }

    /// Has a claim wait for a slot; one that waited before goes.
    pub fn wait_for(&mut self, name: &SlotName, next: Preemptor) {
        self.dismiss(name);
        let Some(slot) = self.slots.get_mut(name) else { return };
        if let Some(cluster) = self.jobs.get_mut(&next.claim.job.uid) {
            cluster.waits_for.entry(next.claim.id.clone()).or_default().insert(name.clone());
        }
        slot.preempting = Some(Box::new(next));
        self.count_limits(name);
        self.attention.slots.insert(name.clone());
    }

    /// The claim that waits for a slot goes, be it for several.
    pub fn dismiss(&mut self, name: &SlotName) {
        let Some(waited) = self.slots.get_mut(name).and_then(|slot| slot.preempting.take()) else { return };
        if waited.part {
            self.disperse(&waited.claim.id);
        } else if let Some(cluster) = self.jobs.get_mut(&waited.claim.job.uid) {
            cluster.waits_for.remove(&waited.claim.id);
            // Its proc may be matched again.
            self.schedule.wanted = true;
        }
        self.count_limits(name);
    }

    /// A slot's claim was replaced: what follows from who has the slot follows.
    pub fn claim_changed(&mut self, name: &SlotName, before: &Claim, now: Time) {
        self.carry(name, before);
        let Some(slot) = self.slots.get(name).cloned() else { return };
        let after = slot.claim.clone();
        self.claims.remove(&before.id);
        self.claims.insert(after.id.clone(), name.clone());
        if self.synced {
            self.discharge(before, now);
            self.charge(&after, now);
        }
        self.touch(&Slot { claim: before.clone(), ..slot.clone() });
        self.touch(&slot);
        self.attention.slots.insert(name.clone());
        self.schedule.wanted = true;
    }

    /// Keeps in mind that a claim was deleted by us, until it is seen gone.
    pub fn expect_gone(&mut self, name: &SlotName, claim: &ClaimId) {
        self.deleted_claims.insert(name.clone(), claim.clone());
    }

    /// The object of a claim that is over is gone: what it held returns.
    pub(super) fn slot_deleted(&mut self, name: &SlotName, claim: &ClaimId, now: Time) {
        let over = |slot: &Slot| slot.record == Record::Deleting && slot.claim.id == *claim;
        if self.slots.get(name).is_some_and(over) {
            self.give_back(name, now);
        }
    }

    /// The claim was deleted by us and is not seen gone yet.
    pub(super) fn is_deleted(&self, name: &SlotName, claim: &ClaimId) -> bool {
        self.deleted_claims.get(name) == Some(claim)
    }

    /// The claim that was deleted by us and is not seen gone yet.
    pub(super) fn deleted_claim(&self, name: &SlotName) -> Option<&ClaimId> {
        self.deleted_claims.get(name)
    }

    pub(super) fn forget_deleted(&mut self, name: &SlotName, claim: &ClaimId) {
        if self.is_deleted(name, claim) {
            self.deleted_claims.remove(name);
        }
    }

    /// The objects of a machine's standing slots say no longer what is so.
    pub fn touch_standing(&mut self, machine: &MachineName) {
        if let Some(machine) = self.machines.get(machine) {
            self.stale.extend(machine.documents());
        }
    }

    /// Forgets a machine whose node is gone and on which nothing is carved any more.
    pub fn forget_machine(&mut self, name: &MachineName) -> Option<Machine> {
        self.deleted_claims.retain(|slot, _| slot.machine != *name);
        self.wake_machine_at(name, None);
        self.backfill.forget_machine(name);
        self.unclaimed_objects.retain(|slot, _| slot.machine != *name);
        self.machines.remove(name)
    }

    /// Marks what the existence of a slot shows in.
    fn touch(&mut self, slot: &Slot) {
        self.stale.insert(Document::of_holder(&slot.name));
        self.stale.insert(Document::Submitter(slot.claim.submitter.clone()));
        self.stale.insert(Document::Job(slot.claim.job.uid.clone()));
        let machine = self.machines.get(&slot.name.machine);
        // What is left of the machine is left for all that may still carve of it, such as pods.
        let carvers = machine.into_iter().flat_map(|machine| {
            let partitionable = machine.slots().filter(|slot| slot.kind == SlotKind::Partitionable);
            partitionable.map(|slot| slot.document(&machine.facts.name))
        });
        self.stale.extend(carvers);
        if machine.is_some_and(|machine| self.startd(machine).has_weights()) {
            // Such a weight need not be the same before and after carving: the pool's may change, and with it the dynamic
            // quotas of groups that have nothing to do with this claim.
            self.stale.extend(self.groups.keys().cloned().map(Document::Group));
        } else {
            self.touch_groups(slot.claim.group.as_ref());
        }
    }
}
