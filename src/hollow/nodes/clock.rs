//! Wall-clock time that follows tokio's clock, so that a test that advances tokio's paused clock advances this one.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::life::after;

/// A clock that reads the wall clock once, at its creation, and adds the time that tokio's monotonic clock has
/// measured since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { wall: Timestamp::now(), start: Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        after(self.wall, self.start.elapsed())
    }

    /// Sleeps until `time`; for ever if there is no time.
    pub(super) async fn sleep_until(&self, time: Option<Timestamp>) {
        match time {
            Some(time) => {
                let left = Duration::try_from(time.duration_since(self.now())).unwrap_or(Duration::ZERO);
                // Tokio's sleeps end on whole milliseconds, rounded up. The added 100 µs keep a sleep whose end is
                // already a whole millisecond from waking a moment too early.
                tokio::time::sleep(left.saturating_add(Duration::from_micros(100))).await;
            }
            None => std::future::pending().await,
        }
    }
}
