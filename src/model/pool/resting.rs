//! Jobs that rest, because the API server refused a pod of theirs or a slot refused their match. After the pause such a job tries
//! with one proc, then with two, with four and so on, so that it does not keep slots from others for pods that are refused again. If
//! the API server accepts the pods slowly, as under a slow admission webhook, the number grows by one each time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::job::{Cooling, Job};
use super::time::Time;

/// A job that may try more procs at once than this no longer rests: it starts procs as if nothing had been refused.
const ENOUGH: u64 = 1000;
/// A pod that the API server accepts this long after its proc got the slot was accepted slowly.
const SLOW: Duration = Duration::from_secs(5);

/// How a job tries again after a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// How many times in a row everything was refused, and until when no proc is tried.
    cooling: Cooling,
    /// How many procs may be tried at once.
    most: u64,
    /// The procs that got slots since the first pause and whose pods the API server has not accepted, each with the
    /// time at which it got its slot. A proc that has lost its slot does not count, and is dropped at the next pause.
    tried: BTreeMap<u32, Time>,
}

impl Job {
    /// Lets the job rest after a refusal: its other procs would be refused for the same reason, so that none is tried for a while.
    /// Returns the time of the next try. Several refusals before that time count once.
    pub fn rest(&mut self, now: Time) -> Time {
        let cooling = self.resting.as_ref().map(|resting| resting.cooling);
        if let Some(cooling) = cooling.filter(|cooling| cooling.until > now) {
            return cooling.until;
        }
        let times = cooling.map_or(1, |cooling| cooling.times.saturating_add(1));
        let until = now + Cooling::wait(times);
        let mut tried = self.resting.take().map_or_else(BTreeMap::new, |resting| resting.tried);
        tried.retain(|proc, _| self.active.contains_key(proc));
        self.resting = Some(Resting { cooling: Cooling { times, until }, most: 1, tried });
        until
    }

    /// Notes that a proc has got a slot.
    pub(super) fn note_try(&mut self, proc: u32, now: Time) {
        if let Some(resting) = &mut self.resting {
            resting.tried.insert(proc, now);
        }
    }

    /// Notes that the API server accepted the pod of a proc. Returns whether more procs may be tried now than before.
    pub(super) fn pod_is_accepted(&mut self, proc: u32, now: Time) -> bool {
        let Some(resting) = &mut self.resting else { return false };
        let Some(tried) = resting.tried.remove(&proc) else { return false };
        resting.cooling.times = 0;
        let more = if now.since(tried) >= SLOW { 1 } else { resting.most };
        resting.most = resting.most.saturating_add(more);
        if resting.most > ENOUGH {
            self.resting = None;
        }
        true
    }

    /// Notes that a pod of the job has ended, so that what it took of a quota is free. Returns when the next try is, if that is sooner
    /// than before.
    pub(super) fn rests_shorter(&mut self, now: Time) -> Option<Time> {
        let resting = self.resting.as_mut()?;
        let soon = now + Cooling::wait(1);
        if resting.cooling.until <= soon {
            return None;
        }
        resting.cooling.until = soon;
        Some(soon)
    }

    /// How many more procs may get slots now.
    pub(super) fn triable(&self, now: Time) -> u64 {
        let Some(resting) = &self.resting else { return u64::MAX };
        if resting.cooling.until > now { 0 } else { self.left_to_try(resting) }
    }

    /// When the job's rest is over; `None` if the job then waits for the pods of the procs that it has tried.
    pub(super) fn rested_from(&self) -> Option<Time> {
        let Some(resting) = &self.resting else { return Some(Time::default()) };
        // Each match asks. The slots of the procs are looked at only if these may be too many.
        let tries_more = (resting.tried.len() as u64) < resting.most || self.left_to_try(resting) > 0;
        tries_more.then_some(resting.cooling.until)
    }

    fn left_to_try(&self, resting: &Resting) -> u64 {
        let wait = resting.tried.keys().filter(|proc| self.active.contains_key(proc)).count() as u64;
        resting.most.saturating_sub(wait)
    }
}
