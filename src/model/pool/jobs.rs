//! All jobs, and the queues of their submitters.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, TryLockError};

use super::Pool;
use super::ids::{JobUid, SubmitterName};
use super::job::{Job, QueueKey};
use super::time::Time;
use super::timers::Timers;
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

    /// Takes note of the time: some jobs may start procs now that could start none before.
    pub(super) fn wake(&mut self, now: Time) {
        self.queues_mut().wake(now);
    }

    fn touch(&mut self, uid: &JobUid) {
        let touched = &mut self.queues_mut().touched;
        if !touched.contains(uid) {
            touched.insert(uid.clone());
        }
    }

    fn queues_mut(&mut self) -> &mut Queues {
        self.queues.get_mut().unwrap_or_else(PoisonError::into_inner)
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
    /// The jobs that start no proc before a time that has not come yet.
    asleep: Timers<JobUid>,
    /// The time as of the last [`Queues::wake`].
    now: Time,
}

/// The queue of a submitter.
#[derive(Clone, Debug, Default)]
struct Queue {
    jobs: BTreeSet<QueueKey>,
    /// The jobs among them that may start a proc now, as far as each job alone tells.
    awake: BTreeSet<QueueKey>,
}

/// The place of a job in the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    submitter: SubmitterName,
    key: QueueKey,
    /// The time before which the job starts no proc; `None` if the job starts none until something about the job changes.
    starts_from: Option<Time>,
}

impl Place {
    /// The place of a job; `None` if the job is in no queue.
    fn of(job: &Job) -> Option<Self> {
        let spec = job.spec.as_ref().filter(|_| !job.is_complete())?;
        let (submitter, key) = (spec.submitter.clone(), job.queue_key());
        Some(Self { submitter, key, starts_from: job.starts_from() })
    }
}

impl Queues {
    /// The jobs of a submitter.
    pub fn of(&self, submitter: &SubmitterName) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.get(submitter).into_iter().flat_map(|queue| &queue.jobs)
    }

    /// The jobs of a submitter that may start a proc now: no other job may, and one of these may not if more than the job alone
    /// keeps it from that.
    pub fn awake(&self, submitter: &SubmitterName) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.get(submitter).into_iter().flat_map(|queue| &queue.awake)
    }

    /// The jobs of all submitters that may start a proc now, as [`Queues::awake`] says.
    pub fn all_awake(&self) -> impl Iterator<Item = &QueueKey> {
        self.by_submitter.values().flat_map(|queue| &queue.awake)
    }

    fn wake(&mut self, now: Time) {
        self.now = now;
        while let Some(uid) = self.asleep.pop_due(now) {
            let place = self.places.get(&uid);
            let queue = place.and_then(|place| Some((self.by_submitter.get_mut(&place.submitter)?, place)));
            if let Some((queue, place)) = queue {
                queue.awake.insert(place.key.clone());
            }
        }
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
        match place.starts_from {
            Some(at) if at <= self.now => drop(queue.awake.insert(place.key.clone())),
            later => self.asleep.set(&place.key.job().uid, later),
        }
    }

    fn leave(&mut self, place: &Place) {
        self.asleep.set(&place.key.job().uid, None);
        let Some(queue) = self.by_submitter.get_mut(&place.submitter) else { return };
        queue.awake.remove(&place.key);
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
