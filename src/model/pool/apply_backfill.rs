//! Events about backfill pods, and outcomes of calls about them.

use std::sync::Arc;

use super::Pool;
use super::backfill::{Facts, Work};
use super::effect::{Notice, Subject};
use super::ids::{MachineName, PodUid, SlotName};
use super::marks::Change;
use super::resources::Resources;
use super::time::Time;

impl Pool {
    pub(super) fn backfill_seen(&mut self, facts: Facts, now: Time) {
        let (machine, uid) = (facts.machine.clone(), facts.pod.uid.clone());
        self.drop_outside(&uid);
        if let Some(slot) = facts.slot {
            self.backfill.settle(&SlotName { machine: machine.clone(), slot, dynamic: None });
        }
        let key = (machine.clone(), uid);
        let before = self.backfill.pods.get(&key);
        if before.is_some_and(|before| before.facts == facts) {
            return;
        }
        let work = Work::seen(facts, before, now);
        let just_ended = before.is_some_and(Work::lives) && !work.lives();
        if just_ended {
            self.backfill.ended(&work, now);
        }
        self.backfill.pods.insert(key, work);
        self.backfill_changed(&machine);
    }

    pub(super) fn backfill_gone(&mut self, machine: &MachineName, pod: &PodUid, now: Time) {
        let Some(work) = self.backfill.pods.remove(&(machine.clone(), pod.clone())) else { return };
        if work.lives() {
            self.backfill.ended(&work, now);
        }
        self.backfill_changed(machine);
    }

    /// The pod was not created. If that is not certain, nobody knows whether the pod exists, and the pod is looked for
    /// later.
    pub(super) fn backfill_refused(&mut self, slot: &SlotName, why: &str, certain: bool, now: Time) {
        if certain {
            self.backfill.settle(slot);
        } else {
            self.backfill_expected(slot, now);
        }
        self.backfill.failed(slot, now);
        self.tell_refusal(slot, why, now);
        self.backfill_changed(&slot.machine);
    }

    /// Notes that a lookup found no backfill pod of this slot. Claims may have waited for the pod's end, and the slot may leave
    /// Backfill.
    pub(super) fn backfill_missing(&mut self, slot: &SlotName) {
        self.backfill.settle(slot);
        self.backfill_changed(&slot.machine);
    }

    /// The slots of a machine whose backfill pods should have been seen by now, and the namespaces in which to look for the pods.
    pub fn overdue_backfill(&mut self, machine: &MachineName, now: Time) -> Vec<(SlotName, Arc<str>)> {
        self.backfill.overdue(machine, now)
    }

    /// Notes that the creation of a backfill pod was asked for.
    pub fn ask_for_backfill(&mut self, slot: &SlotName, namespace: Arc<str>, resources: Resources) {
        self.backfill.ask(slot, namespace, resources);
    }

    /// Notes that a backfill pod's deletion was asked for, with a grace period of so many seconds, or with the pod's
    /// own.
    pub fn backfill_asked_to_go(
        &mut self,
        machine: &MachineName,
        pod: &PodUid,
        grace: Option<u32>,
        now: Time,
    ) {
        if let Some(work) = self.backfill.get_mut(machine, pod) {
            work.asked_to_go(grace, now);
        }
    }

    pub(super) fn backfill_expected(&mut self, slot: &SlotName, now: Time) {
        self.backfill.expect(slot, now);
        self.changed(Change::Machine(&slot.machine));
    }

    /// Tells people why a pod was refused. The template is refused for the same reason on every node, so that the event
    /// is about the policy, and not about each node.
    fn tell_refusal(&mut self, slot: &SlotName, why: &str, now: Time) {
        let policy = self.machines.get(&slot.machine).and_then(|machine| machine.policy.clone());
        let Some((name, uid)) =
            policy.and_then(|name| Some((name.clone(), self.policies.get(&name)?.uid.clone())))
        else {
            return;
        };
        if !self.backfill.tells(&name, now) {
            return;
        }
        let note = format!(
            "a backfill pod for {slot} could not be made: {why}; it is tried again, and what fails on other nodes \
             meanwhile is not told"
        );
        let about = Subject::Policy { name, uid };
        let (reason, action) = ("BackfillRefused", "CreatePod");
        self.notices.push(Notice { about, warning: true, reason, action, note });
    }

    /// The deletion of a pod failed. The pod counts as not asked to go, so that its deletion is asked for again.
    pub(super) fn backfill_stays(&mut self, machine: &MachineName, pod: &PodUid) {
        if let Some(work) = self.backfill.get_mut(machine, pod) {
            work.stays();
        }
        self.changed(Change::Machine(machine));
    }

    /// Marks the machine and every claim on it: a claim may have waited for what the pod held.
    fn backfill_changed(&mut self, machine: &MachineName) {
        self.changed(Change::Machine(machine));
        self.changed(Change::ClaimsOn(machine));
    }
}
