//! Pods that were created and that no watch has shown yet.
//!
//! A watch that has to begin anew lists what exists. So a pod that was created, and is gone again when the watch lists,
//! is never seen, and nobody says that it went. Therefore a pod that no watch shows for a while is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Pool;
use super::event::PodFacts;
use super::ids::{PodRef, PodUid, SlotName};
use super::slot::Slot;
use super::time::Time;

/// How long a watch may take to show a pod, before the pod is looked up.
const LATE: Duration = Duration::from_secs(30);

/// The unseen pods, with the slots in which they run.
#[derive(Clone, Debug, Default)]
pub struct Unseen {
    pods: BTreeMap<PodUid, (Time, PodRef, SlotName)>,
    by_time: BTreeSet<(Time, PodUid)>,
}

impl Unseen {
    /// Notes that a pod was created and not seen yet.
    pub(super) fn made(&mut self, pod: PodRef, slot: SlotName, now: Time) {
        self.seen(&pod.uid);
        self.by_time.insert((now + LATE, pod.uid.clone()));
        self.pods.insert(pod.uid.clone(), (now + LATE, pod, slot));
    }

    /// Notes that a watch has shown the pod.
    pub(super) fn seen(&mut self, pod: &PodUid) {
        if let Some((at, ..)) = self.pods.remove(pod) {
            self.by_time.remove(&(at, pod.clone()));
        }
    }

    /// When the next pod is to be looked up, unless a watch shows it before.
    pub fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

impl Pool {
    /// The pods that should have been seen by now; the caller looks them up. If a lookup brings no answer, the pod is
    /// returned again after another [`LATE`].
    pub fn overdue_pods(&mut self, now: Time) -> Vec<(PodRef, SlotName)> {
        let mut overdue = Vec::new();
        while let Some((_, uid)) = self.unseen.by_time.first().filter(|(at, _)| *at <= now).cloned() {
            let Some((_, pod, slot)) = self.unseen.pods.get(&uid).cloned() else { break };
            self.unseen.seen(&uid);
            if self.runs_in(&slot, &uid) {
                self.unseen.made(pod.clone(), slot.clone(), now);
                overdue.push((pod, slot));
            }
        }
        overdue
    }

    fn runs_in(&self, slot: &SlotName, uid: &PodUid) -> bool {
        self.slots.get(slot).and_then(Slot::active).is_some_and(|running| running.pod.uid == *uid)
    }

    /// A lookup found that a pod does not exist. If no watch has shown the pod, it was deleted before a watch could.
    pub(super) fn pod_missing(&mut self, name: &SlotName, pod: PodRef, now: Time) {
        if !self.unseen.pods.contains_key(&pod.uid) || !self.runs_in(name, &pod.uid) {
            return;
        }
        let Some(slot) = self.slots.get(name) else { return };
        let facts = PodFacts { deleting: true, ..PodFacts::of_nothing(pod, slot) };
        self.pod_gone(facts, now);
    }
}
