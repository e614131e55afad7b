//! When a job may start procs, as far as the job alone tells. The queues keep the jobs apart that may start none, so that nobody walks
//! over thousands of them for each proc that ends.

use super::job::{Job, JobFinalizer};
use super::time::Time;

impl Job {
    /// Whether the job's object and spec let procs start.
    pub fn is_ready(&self) -> bool {
        !self.removing
            && self.finalizer == JobFinalizer::Held
            && self.problems.is_empty()
            && self.policy_recorded
            && self.spec.is_some()
    }

    /// A time before which the job starts no proc; `None` if the job starts none until something about the job changes. The job may
    /// start its first proc later than that, and no sooner.
    pub(super) fn starts_from(&self) -> Option<Time> {
        let barred =
            self.told.group_missing || self.is_full() || self.awaits_time() || self.idle.are_all_late();
        if barred || !self.is_ready() {
            return None;
        }
        let pace = [self.pacing.opens_at(), self.next_start, self.idle.tried_from()];
        pace.into_iter().flatten().chain([self.rested_from()?]).max()
    }
}
