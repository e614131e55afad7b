//! All jobs, and the queues of their submitters.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, TryLockError};

use super::Pool;
use super::ids::{JobUid, SubmitterName};
use super::job::{Job, QueueKey};
use crate::BoxMap;

/// All jobs by their uids. The queues follow from the jobs: they are brought up to date before they are read, for the jobs that
/// may have changed.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    by_uid: BoxMap<JobUid, Job>,
    queues: RwLock<Queues>,
}

impl Deref for Jobs {
    type Target = BoxMap<JobUid, Job>;

    fn deref(&self) -> &Self::Target {
        &self.by_uid
    }
}

impl Jobs {
    pub(super) fn insert(&mut self, uid: JobUid, job: Job) {
        self.touch(&uid);
        self.by_uid.insert(uid, job);
    }

    pub(super) fn remove(&mut self, uid: &JobUid) -> Option<Job> {
        self.touch(uid);
        self.by_uid.remove(uid)
    }

    pub(super) fn get_mut(&mut self, uid: &JobUid) -> Option<&mut Job> {
        self.touch(uid);
        self.by_uid.get_mut(uid)
    }

    fn touch(&mut self, uid: &JobUid) {
        let touched = &mut self.queues.get_mut().unwrap_or_else(PoisonError::into_inner).touched;
        if !touched.contains(uid) {
            touched.insert(uid.clone());
        }
    }

    fn queues(&self) -> RwLockReadGuard<'_, Queues> {
        loop {
            let queues = self.read();
            if queues.touched.is_empty() {
                return queues;
            }
            drop(queues);
            match self.queues.try_write() {
                Ok(mut queues) => queues.update(&self.by_uid),
                Err(TryLockError::Poisoned(queues)) => queues.into_inner().update(&self.by_uid),
                // Another thread looks whether the queues are up to date, or brings them up to date.
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Queues> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Jobs {
    fn clone(&self) -> Self {
        Self { by_uid: self.by_uid.clone(), queues: RwLock::new(self.read().clone()) }
    }
}

/// The queue of each submitter: its jobs that are not complete, in the order in which they are to run.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    by_submitter: BTreeMap<SubmitterName, Queue>,
    /// The place of each job in the queues.
    places: BTreeMap<JobUid, Place>,
    /// The jobs whose places may have changed.
    touched: BTreeSet<JobUid>,
}

/// The queue of a submitter.
#[derive(Clone, Debug, Default)]
struct Queue {
    jobs: BTreeSet<QueueKey>,
    /// The jobs among them that have an idle proc.
    waiting: BTreeSet<QueueKey>,
}

/// The place of a job in the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    submitter: SubmitterName,
    key: QueueKey,
    waits: bool,
}

impl Place {
    /// The place of a job; `None` if the job is in no queue.
    fn of(job: &Job) -> Option<Self> {
        let spec = job.spec.as_ref().filter(|_| !job.is_complete())?;
        let (submitter, key) = (spec.submitter.clone(), job.queue_key());
        Some(Self { submitter, key, waits: !job.idle.is_empty() })
    }
}

impl Queues {
    /// The jobs of a submitter.
    pub fn of(&self, submitter: &SubmitterName) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.get(submitter).into_iter().flat_map(|queue| &queue.jobs)
    }

    /// The jobs of a submitter that have an idle proc.
    pub fn waiting(&self, submitter: &SubmitterName) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.get(submitter).into_iter().flat_map(|queue| &queue.waiting)
    }

    /// The jobs of all submitters that have an idle proc.
    pub fn all_waiting(&self) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.values().flat_map(|queue| &queue.waiting)
    }

    fn update(&mut self, jobs: &BoxMap<JobUid, Job>) {
        for uid in std::mem::take(&mut self.touched) {
            let place = jobs.get(&uid).and_then(Place::of);
            if self.places.get(&uid) == place.as_ref() {
                continue;
            }
            if let Some(before) = self.places.remove(&uid) {
                self.leave(&before);
            }
            if let Some(place) = place {
                self.join(&place);
                self.places.insert(uid, place);
            }
        }
    }

    fn join(&mut self, place: &Place) {
        let queue = self.by_submitter.entry(place.submitter.clone()).or_default();
        queue.jobs.insert(place.key.clone());
        if place.waits {
            queue.waiting.insert(place.key.clone());
        }
    }

    fn leave(&mut self, place: &Place) {
        let Some(queue) = self.by_submitter.get_mut(&place.submitter) else { return };
        queue.waiting.remove(&place.key);
        queue.jobs.remove(&place.key);
        if queue.jobs.is_empty() {
            self.by_submitter.remove(&place.submitter);
        }
    }
}

impl Pool {
    /// The queues of all submitters.
    pub fn queues(&self) -> RwLockReadGuard<'_, Queues> {
        self.jobs.queues()
    }
}
