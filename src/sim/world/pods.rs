//! A simulated pod.

use std::time::Duration;

use model::pool::{PodFacts, Time};

/// A pod as it is in the API server.
pub(super) struct Pod {
    pub(super) facts: PodFacts,
    pub(super) host: usize,
    /// How often the machine had left the pool before the pod was made.
    pub(super) stay: usize,
    pub(super) cpus: i64,
    pub(super) started: Option<Time>,
    pub(super) runtime: Duration,
    /// Since when the pod is suspended, if it is.
    pub(super) suspended: Option<Time>,
    /// The length of all earlier suspensions.
    pub(super) suspended_before: Duration,
    pub(super) record: usize,
}

impl Pod {
    /// How long the pod had run at `now`, without its suspensions; `None` before it has started.
    pub(super) fn ran(&self, now: Time) -> Option<Duration> {
        let until = self.suspended.map_or(now, |since| since.min(now));
        self.started.map(|started| until.since(started).saturating_sub(self.suspended_before))
    }

    /// When the pod will end by itself, unless it is suspended again; `None` before its start and while it is
    /// suspended.
    pub(super) fn ends(&self) -> Option<Time> {
        let started = self.started.filter(|_| self.suspended.is_none())?;
        Some(started + self.runtime + self.suspended_before)
    }
}
