//! Pods that were made and that no watch has shown yet.
//!
//! A watch that has to begin anew lists what there is: a pod that was made and is gone again by then is never seen, and
//! nobody tells that it went. So a pod that is not seen for a while is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Pool;
use super::event::PodFacts;
use super::ids::{PodRef, PodUid, SlotName};
use super::slot::Slot;
use super::time::Time;

/// How long a watch may take to show a pod, before the pod is asked for.
const LATE: Duration = Duration::from_secs(30);

/// Such pods, with the slots that they run in.
#[derive(Clone, Debug, Default)]
pub struct Unseen {
    pods: BTreeMap<PodUid, (Time, PodRef, SlotName)>,
    by_time: BTreeSet<(Time, PodUid)>,
}

impl Unseen {
    /// A pod was made, and nobody has seen it.
    pub(super) fn made(&mut self, pod: PodRef, slot: SlotName, now: Time) {
        self.seen(&pod.uid);
        self.by_time.insert((now + LATE, pod.uid.clone()));
        self.pods.insert(pod.uid.clone(), (now + LATE, pod, slot));
    }

    /// A watch has shown it.
    pub(super) fn seen(&mut self, pod: &PodUid) {
        if let Some((at, ..)) = self.pods.remove(pod) {
            self.by_time.remove(&(at, pod.clone()));
        }
    }

    /// When one is to be asked for, unless it is seen.
    pub fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

impl Pool {
    /// Pods that should have been seen by now, to be asked for. They are again when that is no answer either.
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

    /// A pod that no watch has shown is not there: it was deleted before one could.
    pub(super) fn pod_missing(&mut self, name: &SlotName, pod: PodRef, now: Time) {
        if !self.unseen.pods.contains_key(&pod.uid) || !self.runs_in(name, &pod.uid) {
            return;
        }
        let Some(slot) = self.slots.get(name) else { return };
        let facts = PodFacts { deleting: true, ..PodFacts::of_nothing(pod, slot) };
        self.pod_gone(&facts, now);
    }
}
