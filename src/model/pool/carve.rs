//! Claims slots and returns them. All changes of what is carved out of a machine are made here.

use std::collections::BTreeSet;

use super::ids::{ClaimId, JobUid, MachineName, SlotName};
use super::leaving::Preemptor;
use super::limits::Wants;
use super::machine::{Machine, Offer};
use super::machine_slot::Share;
use super::marks::Change;
use super::slot::{Assignment, Claim, Record, Removal, Shown, Slot, State};
use super::time::Time;
use super::{Document, Pool};

impl Pool {
    /// Adds a claimed slot. Its resources are taken from the machine, and its submitter is charged from now on. Returns
    /// false and changes nothing if the machine or its machine slot does not exist, or if the slot is claimed already.
    pub fn carve(&mut self, slot: Slot, now: Time) -> bool {
        let name = slot.name().clone();
        if self.slots.contains_key(&name) {
            return false;
        }
        let Some(machine) = self.machines.get_mut(&name.machine) else { return false };
        let Some(machine_slot) = machine.machine_slots.get_mut(&name.slot) else { return false };
        if let Some(dynamic) = name.dynamic {
            machine_slot.dynamic.insert(dynamic);
        } else {
            machine_slot.claimed = true;
            machine_slot.total.clone_from(slot.resources());
        }
        machine_slot.carved.add(slot.resources());
        machine.carved.add(slot.resources());
        machine.count_unclaimed(now);
        // Until the start is complete the accounts are not known; the event Synced then reconciles them with the
        // claims.
        if self.synced {
            self.charge(slot.claim().charge(), now);
        }
        self.claims.insert(slot.claim().id.clone(), name.clone());
        self.changed(Change::Carved(&slot));
        if matches!(slot.state(), State::Backfill(_)) {
            self.changed(Change::Machine(&name.machine));
        }
        self.slots.insert(name.clone(), slot);
        self.count_limits(&name);
        true
    }

    /// Removes a claimed slot, and returns it. Its resources return to the machine, and its submitter is charged no
    /// longer. A static slot is left to its owner (state Owner).
    pub fn return_slot(&mut self, name: &SlotName, now: Time) -> Option<Slot> {
        let gathered = self.slots.get_mut(name).and_then(|slot| slot.is_awaited_no_longer(|next| next.part));
        self.stop_waiting(name);
        self.charge_again(name, now);
        self.set_alarm(name, None);
        let slot = self.slots.remove(name)?;
        self.lasts_no_longer(&slot);
        self.creates_no_longer(&slot);
        if slot.shown() == Shown::Another {
            self.strays.insert(name.clone());
        }
        self.claims.remove(&slot.claim().id);
        self.count_limits(name);
        if let Some(machine) = self.machines.get_mut(&name.machine) {
            machine.carved.subtract(slot.resources());
            if let Some(machine_slot) = machine.machine_slots.get_mut(&name.slot) {
                machine_slot.carved.subtract(slot.resources());
                match name.dynamic {
                    Some(dynamic) => {
                        machine_slot.dynamic.remove(&dynamic);
                    }
                    None => machine_slot.let_go(&slot, now),
                }
            }
            machine.count_unclaimed(now);
            machine.looked_at = None;
        }
        if let Some(next) = gathered {
            self.part_gone(name, &next.claim.id);
        }
        if self.synced {
            self.discharge(slot.claim().charge(), now);
        }
        self.changed(Change::Returned(&slot));
        Some(slot)
    }

    /// Assigns an idle proc to a claim; `limits` is what the proc takes of concurrency limits. False if the claim or
    /// the job does not exist.
    pub fn assign(&mut self, name: &SlotName, uid: &JobUid, proc: u32, limits: Wants, now: Time) -> bool {
        let (Some(slot), Some(job)) = (self.slots.get_mut(name), self.jobs.get_mut(uid)) else {
            return false;
        };
        job.idle.remove(proc);
        job.active.insert(proc, name.clone());
        job.note_time(proc, now);
        job.note_try(proc, now);
        let next_start = job.starts(now);
        slot.assign(Assignment { job: job.key.clone(), cluster_id: job.cluster_id, proc }, &limits);
        let submitter = slot.claim().submitter.clone();
        // A claim that waits for a slot is no longer wanted once its job has no idle proc.
        let awaited: Vec<SlotName> = job.awaited().filter(|_| job.idle.is_empty()).cloned().collect();
        self.slots_changed(&awaited);
        self.take_limits(name, limits);
        self.changed(Change::Assigned(name, uid, &submitter));
        if let Some(at) = next_start {
            self.wake_at(at);
        }
        true
    }

    /// Takes a proc that has not started from its claim; the proc is idle again at once.
    pub fn withdraw(&mut self, name: &SlotName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let Some(Assignment { job, proc, .. }) = slot.withdraw() else { return };
        let uid = job.uid;
        let Some(job) = self.jobs.get_mut(&uid) else { return };
        job.active.remove(&proc);
        if job.has_counted(proc) && !job.removing && !job.is_out(proc) {
            job.idle.insert(proc);
        }
        self.changed(Change::Withdrawn(&uid));
    }

    /// Lets the claim `next` wait for a slot. If another claim waited for the slot, it waits no longer.
    pub fn wait_for(&mut self, name: &SlotName, next: Preemptor) {
        self.stop_waiting(name);
        let Some(slot) = self.slots.get_mut(name) else { return };
        if let Some(job) = self.jobs.get_mut(&next.claim.last.job.uid) {
            job.waits_for.entry(next.claim.id.clone()).or_default().insert(name.clone());
        }
        slot.is_awaited_by(next);
        self.count_limits(name);
        self.changed(Change::Waits(name));
    }

    /// Ends the wait of the claim that waits for a slot. If the claim was gathering several slots, the gathering ends.
    pub fn stop_waiting(&mut self, name: &SlotName) {
        let waited = self.slots.get_mut(name).and_then(|slot| slot.is_awaited_no_longer(|_| true));
        let Some(waited) = waited else { return };
        if waited.part {
            self.end_gathering(&waited.claim.id);
        } else if let Some(job) = self.jobs.get_mut(&waited.claim.last.job.uid) {
            job.waits_for.remove(&waited.claim.id);
            self.changed(Change::WaitsNoLonger);
        }
        self.count_limits(name);
    }

    /// The slot's claim was replaced; `before` is the earlier claim. Updates the index of claims, the charges and the
    /// marks.
    pub fn claim_changed(&mut self, name: &SlotName, before: &Claim, now: Time) {
        self.carry(name, before);
        let Some(slot) = self.slots.get(name).cloned() else { return };
        let after = slot.claim().clone();
        self.claims.remove(&before.id);
        self.claims.insert(after.id.clone(), name.clone());
        if self.synced {
            self.discharge(before.charge(), now);
            self.charge(after.charge(), now);
        }
        self.changed(Change::Replaced(before, &slot));
        if let Some(job) = self.jobs.get_mut(&after.last.job.uid) {
            job.waits_for.remove(&after.id);
        }
    }

    /// Notes that the operator deleted a claim's Slot object. The note stays until the object is seen gone.
    pub fn expect_gone(&mut self, name: &SlotName, claim: &ClaimId) {
        self.deleted_claims.insert(name.clone(), claim.clone());
        self.changed(Change::SlotObjectGoes(name));
    }

    /// A Slot object is gone. If its claim was over and the operator was deleting it, the claim's resources return.
    pub(super) fn slot_deleted(&mut self, name: &SlotName, claim: &ClaimId, now: Time) {
        let over = |slot: &Slot| slot.record() == Record::Deleting && slot.claim().id == *claim;
        if self.slots.get(name).is_some_and(over) {
            self.return_slot(name, now);
        }
    }

    /// Whether the operator deleted this claim's Slot object and has not seen the object gone yet.
    pub(super) fn is_deleted(&self, name: &SlotName, claim: &ClaimId) -> bool {
        self.deleted_claims.get(name) == Some(claim)
    }

    /// The claim whose Slot object the operator deleted and has not seen gone yet.
    pub(super) fn deleted_claim(&self, name: &SlotName) -> Option<&ClaimId> {
        self.deleted_claims.get(name)
    }

    pub(super) fn forget_deleted(&mut self, name: &SlotName, claim: &ClaimId) {
        if self.is_deleted(name, claim) {
            self.deleted_claims.remove(name);
        }
    }

    /// Divides a machine into machine slots by `shares`. True if claims on the present slots keep the machine from
    /// that.
    pub fn lay_out(&mut self, name: &MachineName, shares: Vec<Share>, now: Time) -> bool {
        let Some(machine) = self.machines.get_mut(name) else { return false };
        let before: BTreeSet<Document> = machine.documents().collect();
        let relaid = machine.lay_out(shares, now);
        if !relaid.changed.is_empty() {
            self.changed(Change::Layout(name, &before));
            // The object of a static slot says how large the slot is. An object that is wrong now is deleted, and then
            // created again.
            let shown = relaid.changed.into_iter().filter(|name| self.unclaimed_objects.contains_key(name));
            self.strays.extend(shown);
        }
        relaid.waits
    }

    /// Marks all claims on a machine whose programs are certain not to run any more: their procs must leave the slots.
    pub fn evacuate(&mut self, name: &MachineName) {
        let from = SlotName { machine: name.clone(), slot: 0, dynamic: None };
        let on_it = self.slots.range_mut(from..).take_while(|(slot, _)| slot.machine == *name);
        for (_, slot) in on_it {
            slot.must_go(Removal::MachineGone);
        }
        self.changed(Change::ClaimsOn(name));
    }

    /// Forgets a machine whose node is gone, once neither a claim nor a backfill pod is left on the machine.
    pub fn forget_if_gone(&mut self, name: &MachineName) {
        let over = self.machines.get(name).is_some_and(|m| m.offer == Offer::Gone && !m.is_held());
        if over
            && self.backfill.is_off(name)
            && let Some(machine) = self.forget_machine(name)
        {
            let documents = machine.documents().collect();
            self.changed(Change::Forgotten(&documents, machine.policy.as_ref()));
            self.changed(Change::Tied { before: &machine.tied, after: &[] });
        }
    }

    /// Forgets a machine, and everything that the pool keeps about it elsewhere.
    fn forget_machine(&mut self, name: &MachineName) -> Option<Machine> {
        self.deleted_claims.retain(|slot, _| slot.machine != *name);
        self.wake_machine_at(name, None);
        self.backfill.forget_machine(name);
        self.unclaimed_objects.retain(|slot, _| slot.machine != *name);
        self.machines.remove(name)
    }
}
