//! A simulated pod.

use std::time::Duration;

use model::pool::{PodFacts, Time};

/// A pod as the API server has it.
pub(super) struct Pod {
    pub(super) facts: PodFacts,
    pub(super) host: usize,
    pub(super) stay: u32,
    pub(super) cpus: i64,
    pub(super) started: Option<Time>,
    pub(super) runtime: Duration,
    /// Since when it is suspended.
    pub(super) suspended: Option<Time>,
    /// For how long it was, before that.
    pub(super) stood_still: Duration,
    pub(super) record: usize,
}

impl Pod {
    /// For how long it has run, without the time in which it was suspended.
    pub(super) fn ran(&self, now: Time) -> Option<Duration> {
        let until = self.suspended.unwrap_or(now);
        self.started.map(|started| until.since(started).saturating_sub(self.stood_still))
    }

    /// When it ends by itself, as things stand.
    pub(super) fn ends(&self) -> Option<Time> {
        let started = self.started.filter(|_| self.suspended.is_none())?;
        Some(started + self.runtime + self.stood_still)
    }
}
