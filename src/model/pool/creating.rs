//! Pods that do not exist yet: those that the deciders have asked the API server to create, and those that wait until some of these are
//! created.
//!
//! A large negotiation cycle starts tens of thousands of procs at once, and an API server creates some hundred pods a second. So the
//! deciders ask for a limited number of pods of a namespace at a time ([`Pool::create_at_once`]). The other procs wait in their claims.
//! There they cost no memory, and they are given up at once if nobody wants them any more, or if their job lacks pods.
//!
//! Each namespace has that number for itself: pods of a namespace whose webhook hangs delay no pods of others.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Pool;
use super::ids::{JobKey, JobUid, SlotName};
use super::marks::Change;
use super::slot::Slot;
use super::time::Time;

/// The slots whose pods are being created, or wait for that.
#[derive(Clone, Debug, Default)]
pub(super) struct Creating {
    /// How many pods of a namespace are created at a time; `None`: as many as there are.
    at_once: Option<usize>,
    /// The slots whose pods are asked for.
    asked: BTreeMap<SlotName, Asked>,
    /// How many of the pods of a job were asked for at a time.
    times: BTreeMap<(JobUid, Time), usize>,
    namespaces: BTreeMap<Arc<str>, Namespace>,
}

/// A pod that is asked for.
#[derive(Clone, Debug)]
struct Asked {
    job: JobKey,
    at: Time,
}

/// The pods of a namespace.
#[derive(Clone, Debug, Default)]
struct Namespace {
    /// How many pods are asked for.
    asked: usize,
    /// The slots whose pods wait until others are created.
    waiting: BTreeSet<SlotName>,
}

impl Creating {
    /// How many pods are asked for.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Whether one more pod of the namespace may be asked for.
    fn has_room(&self, namespace: &str) -> bool {
        let asked = self.namespaces.get(namespace).map_or(0, |namespace| namespace.asked);
        self.at_once.is_none_or(|most| asked < most)
    }

    fn wait(&mut self, name: &SlotName, namespace: &Arc<str>) {
        self.namespaces.entry(namespace.clone()).or_default().waiting.insert(name.clone());
    }

    /// Notes that a slot's pod was asked for.
    fn ask(&mut self, name: &SlotName, job: &JobKey, at: Time) {
        self.answered(name);
        *self.times.entry((job.uid.clone(), at)).or_default() += 1;
        self.namespaces.entry(job.namespace.clone()).or_default().asked += 1;
        self.asked.insert(name.clone(), Asked { job: job.clone(), at });
    }

    /// Notes that a slot has no pod that is asked for.
    fn answered(&mut self, name: &SlotName) {
        let Some(Asked { job, at }) = self.asked.remove(name) else { return };
        if let Entry::Occupied(mut count) = self.times.entry((job.uid, at)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        if let Some(namespace) = self.namespaces.get_mut(&job.namespace) {
            namespace.asked -= 1;
        }
    }

    /// Notes that a slot does not wait.
    fn waits_no_longer(&mut self, name: &SlotName, namespace: &str) {
        if let Some(namespace) = self.namespaces.get_mut(namespace) {
            namespace.waiting.remove(name);
        }
    }

    /// Takes out a slot of the namespace that waited, if there is room for its pod.
    fn next(&mut self, namespace: &str) -> Option<SlotName> {
        let has_room = self.has_room(namespace);
        let of = self.namespaces.get_mut(namespace)?;
        let next = has_room.then(|| of.waiting.pop_first()).flatten();
        if of.asked == 0 && of.waiting.is_empty() {
            self.namespaces.remove(namespace);
        }
        next
    }

    /// The time at which that pod of the job was asked for which was asked for first.
    fn first_of(&self, job: &JobUid) -> Option<Time> {
        let (of, at) = self.times.range((job.clone(), Time::default())..).next()?.0;
        (of == job).then_some(*at)
    }
}

impl Pool {
    /// From now on, asks for at most so many pods of a namespace at a time.
    pub const fn create_at_once(&mut self, most: usize) {
        self.creating.at_once = Some(most);
    }

    /// Whether the slot's pod may be asked for now. If not, the slot is looked at again once other pods of the namespace are created.
    pub fn may_create_pod(&mut self, name: &SlotName) -> bool {
        let Some(slot) = self.slots.get(name) else { return false };
        let namespace = &slot.claim().last.job.namespace;
        let may = self.creating.has_room(namespace);
        if !may {
            self.creating.wait(name, namespace);
        }
        may
    }

    /// The slots whose pods are asked for.
    #[cfg(test)]
    pub fn asked_for_pods(&self) -> Vec<&SlotName> {
        self.creating.asked.keys().collect()
    }

    /// Notes whether the slot's pod is asked for. The deciders call this after each look at a slot.
    pub fn note_creation(&mut self, name: &SlotName, now: Time) {
        let Some(slot) = self.slots.get(name) else { return };
        let job = &slot.claim().last.job;
        if !slot.is_requested() {
            self.creating.answered(name);
        } else if self.creating.asked.get(name).is_none_or(|asked| asked.job.uid != job.uid) {
            self.creating.ask(name, job, now);
        }
        if !slot.is_assigned() {
            self.creating.waits_no_longer(name, &job.namespace);
        }
        if let Some(next) = self.creating.next(&job.namespace) {
            self.changed(Change::Slot(&next));
        }
    }

    /// Forgets a slot that is gone.
    pub(super) fn creates_no_longer(&mut self, slot: &Slot) {
        let namespace = &slot.claim().last.job.namespace;
        self.creating.answered(slot.name());
        self.creating.waits_no_longer(slot.name(), namespace);
        if let Some(next) = self.creating.next(namespace) {
            self.changed(Change::Slot(&next));
        }
    }

    /// The time at which that pod of the job was asked for which has been asked for longest; `None` if no pod of the job is asked for.
    pub fn waits_for_pod_since(&self, job: &JobUid) -> Option<Time> {
        self.creating.first_of(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: usize) -> SlotName {
        SlotName::parse(&format!("slot1_{number}@n1")).unwrap()
    }

    fn job(namespace: &str, uid: &str) -> JobKey {
        JobKey { namespace: namespace.into(), name: uid.into(), uid: uid.into() }
    }

    #[test]
    fn the_pod_of_a_job_that_was_asked_for_first_is_known() {
        let mut creating = Creating::default();
        let mut ask = |number, uid, at| creating.ask(&slot(number), &job("a", uid), Time::from_secs(at));
        ask(1, "b", 7);
        ask(2, "b", 5);
        ask(3, "c", 1);
        assert_eq!(creating.first_of(&"b".into()), Some(Time::from_secs(5)));
        assert_eq!(creating.first_of(&"a".into()), None);
        creating.ask(&slot(2), &job("a", "b"), Time::from_secs(9));
        assert_eq!(creating.first_of(&"b".into()), Some(Time::from_secs(7)));
        creating.answered(&slot(1));
        creating.answered(&slot(1));
        assert_eq!(creating.first_of(&"b".into()), Some(Time::from_secs(9)));
        creating.answered(&slot(2));
        assert_eq!(creating.first_of(&"b".into()), None);
    }

    #[test]
    fn pods_wait_for_others_of_their_namespace_alone() {
        let mut creating = Creating { at_once: Some(2), ..Creating::default() };
        let at = Time::from_secs(1);
        for number in [1, 2] {
            assert!(creating.has_room("a"));
            creating.ask(&slot(number), &job("a", "sweep"), at);
        }
        assert_eq!((creating.has_room("a"), creating.has_room("b")), (false, true));
        for number in [5, 4, 6] {
            creating.wait(&slot(number), &"a".into());
        }
        assert_eq!(creating.next("a"), None, "nothing is answered");
        creating.answered(&slot(2));
        creating.waits_no_longer(&slot(4), "a");
        assert_eq!(creating.next("a"), Some(slot(5)));
        creating.ask(&slot(5), &job("a", "sweep"), at);
        assert_eq!((creating.next("a"), creating.asked()), (None, 2));
        for number in [1, 5] {
            creating.answered(&slot(number));
        }
        assert_eq!((creating.next("a"), creating.next("a")), (Some(slot(6)), None));
        assert!(creating.namespaces.is_empty() && creating.times.is_empty());
    }
}
