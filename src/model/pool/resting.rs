//! Jobs that rest, because the API server refused a pod of theirs or a slot refused their match. After the pause they try with one
//! proc, so that they do not keep slots from others.

use super::job::{Cooling, Job};
use super::time::Time;

/// The refusals since the API server last accepted a pod of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    /// How often the job rested, and until when.
    cooling: Cooling,
    /// The proc that got a slot after the last pause.
    trial: Option<u32>,
}

impl Job {
    /// Lets the job rest after a refusal: the others of its procs would be refused for the same reason, so that none is tried for a
    /// while. Returns the time of the next try. Several refusals before that time count once.
    pub fn rest(&mut self, now: Time) -> Time {
        let cooling = self.resting.map(|resting| resting.cooling);
        if let Some(cooling) = cooling.filter(|cooling| cooling.until > now) {
            return cooling.until;
        }
        let times = cooling.map_or(1, |cooling| cooling.times.saturating_add(1));
        let until = now + Cooling::wait(times);
        self.resting = Some(Resting { cooling: Cooling { times, until }, trial: None });
        until
    }

    /// Notes that the API server accepted a pod of the job. Returns whether there was a refusal before.
    pub(super) fn rests_no_more(&mut self) -> bool {
        self.resting.take().is_some()
    }

    /// Notes that a proc has got a slot.
    pub(super) fn is_tried(&mut self, proc: u32) {
        if let Some(resting) = &mut self.resting {
            resting.trial = Some(proc);
        }
    }

    /// Whether no proc may be tried now: the pause is not over, or the proc that was tried after the pause still has its slot.
    pub(super) fn is_resting(&self, now: Time) -> bool {
        let tries = |resting: Resting| resting.trial.is_some_and(|proc| self.active.contains_key(&proc));
        self.resting.is_some_and(|resting| resting.cooling.until > now || tries(resting))
    }

    /// How many procs may get slots at once.
    pub(super) fn tried_at_once(&self) -> u64 {
        if self.resting.is_some() { 1 } else { u64::MAX }
    }
}
