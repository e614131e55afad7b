//! Wall-clock time that follows tokio's clock, so that paused time in tests moves it too.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::life::after;

/// Reads the time: the wall clock once, at creation, and tokio's monotonic clock from there.
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

    /// Sleeps until `time`, or for ever without one.
    pub(super) async fn sleep_until(&self, time: Option<Timestamp>) {
        match time {
            Some(time) => {
                let left = Duration::try_from(time.duration_since(self.now())).unwrap_or(Duration::ZERO);
                // Sleeps end on whole milliseconds; one more never wakes a moment too early.
                tokio::time::sleep(left.saturating_add(Duration::from_micros(100))).await;
            }
            None => std::future::pending().await,
        }
    }
}
