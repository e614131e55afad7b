//! What can be set about a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// Where the server's time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Any function of time; it is called for each timestamp that the server writes.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Settings of a server; [`Default`] is good for the demo and for most tests.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Time of `creationTimestamp`, `deletionTimestamp`, conditions and managed fields.
    pub clock: Clock,
    /// Changes remembered per resource for watches from an older version; at least 1. A small number forces 410 Gone;
    /// each remembered change keeps one state of its object in memory (some 10 KB for a pod).
    pub history: usize,
    /// How often watches that allow it get a bookmark; `None`: only by [`super::RunningServer::send_bookmarks`].
    pub bookmarks: Option<Duration>,
    /// Largest request body in bytes.
    pub body_limit: usize,
    /// Events kept; the oldest goes when another comes (the real server forgets them after an hour).
    pub max_events: usize,
    /// Whether dependents are deleted after their owners.
    pub collect_garbage: bool,
    /// Seed of uids and generated names; `None`: another one for each server.
    pub seed: Option<u64>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            history: 4096,
            bookmarks: Some(Duration::from_mins(1)),
            body_limit: 3 * 1024 * 1024,
            max_events: 10_000,
            collect_garbage: true,
            seed: None,
        }
    }
}
