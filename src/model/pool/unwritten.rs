//! Claims that no object has yet.
//!
//! A claim of a plain kind is not written before its pod is created: the pod has the claim's id, and says which proc the
//! claim serves. So a claim that ends soon costs no Slot. The claim is written once its proc has lasted (`lasting`), or
//! once the slot has anything to show that a new leader could not learn from the pod.
//!
//! A leader that finds such a pod at its start makes the claim again from the pod and the job. The pod is not trusted further
//! than that: anybody may write labels, so that namespace, name, machine and the proc's state have to fit.

use super::Pool;
use super::event::PodFacts;
use super::ids::SlotName;
use super::negotiators::NegotiatorId;
use super::resources::Resources;
use super::slot::{Record, Slot, State};
use super::time::Time;

impl Pool {
    /// From now on, writes the claims of a plain kind only once they have lasted.
    pub const fn write_claims_late(&mut self) {
        self.claims_late = true;
    }

    /// Whether a new claim may be written later than its pod: if a new leader can learn all about the claim from its pod and its
    /// job. Such a claim is for a dynamic slot without devices, and for a match that the pool's only negotiator made in the group's
    /// turn. A claim that takes concurrency limits is written all the same: see [`Slot::assign`].
    pub fn may_be_unwritten(&self, slot: &Slot) -> bool {
        let claim = slot.claim();
        self.claims_late
            && slot.name().dynamic.is_some()
            && slot.state() == State::Matched
            && slot.resources().is_plain()
            && self.negotiators.len() <= 1
            && claim.negotiator == self.answering(&NegotiatorId::Unnamed)
            && !claim.regrouped
    }

    /// Lets the operator write a claim that was not written until now, because the claim has lasted.
    pub(super) fn claim_lasts(&mut self, name: &SlotName) {
        if self.slots.get(name).is_some_and(|slot| slot.record() == Record::Unwritten) {
            self.edit_slot(name, Slot::claim_is_due);
        }
    }

    /// The pods that live under claims of the operator's that no object has. Returns them once, at the start.
    pub fn take_unwritten(&mut self) -> Vec<PodFacts> {
        if !std::mem::take(&mut self.unwritten) {
            return Vec::new();
        }
        // A program that has ended keeps its claim until its pod is over.
        let lives = |facts: &&PodFacts| facts.tracked && !facts.is_over() && !facts.deleting;
        self.orphans().values().filter(lives).cloned().collect()
    }

    /// Adds the slot of a pod that an earlier leader created under the slot's claim, and gives the proc to the claim. Returns
    /// false and changes nothing if the machine has no such slot to carve from, or the slot's name is taken.
    pub fn adopt_pod(&mut self, facts: PodFacts, slot: Slot, now: Time) -> bool {
        let name = slot.name().clone();
        if !self.carve(slot, now) {
            return false;
        }
        if let Some(job) = self.jobs.get_mut(&facts.job) {
            job.idle.remove(facts.proc);
            job.active.insert(facts.proc, name.clone());
        }
        self.edit_slot(&name, Slot::assign_again);
        // The pod is no orphan any more, so that the machine does not count what it requests besides the slot.
        self.drop_outside(&facts.pod.uid);
        self.pod(facts, now);
        true
    }
}

impl PodFacts {
    /// The resources of the slot in which the pod was created. `counts_pods` tells whether the machine counts the resource `pods`, of
    /// which the slot then has one. `None` if the operator wrote no size on the pod, and the pod requests something besides CPUs,
    /// memory and disk.
    ///
    /// The size that the operator wrote on the pod counts, unless the pod requests less: then somebody edited the size.
    pub fn slot_resources(&self, counts_pods: bool) -> Option<Resources> {
        let said = self.size.filter(|size| size.is_within(&self.requests));
        let said = said.map(|size| size.resources(counts_pods));
        said.or_else(|| self.requests.in_slot(counts_pods))
    }
}
