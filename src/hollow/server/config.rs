//! The settings of a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::admission::Webhooks;

/// The clock of a server.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock of the operating system.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// A clock that calls `now` for each timestamp that the server writes.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The settings of a server. The defaults suit the demo and most tests.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The clock for `creationTimestamp`, `deletionTimestamp`, conditions and managed fields.
    pub clock: Clock,
    /// How many changes the server remembers per resource, at least 1. A watch that starts from an older version gets
    /// 410 Gone. Each remembered change keeps one state of its object in memory (some 10 KB for a pod).
    pub history: usize,
    /// How often a watch that allows bookmarks gets one; `None` if only [`super::RunningServer::send_bookmarks`] sends
    /// them.
    pub bookmarks: Option<Duration>,
    /// The largest request body in bytes.
    pub body_limit: usize,
    /// The most Event objects that are kept. A further one replaces the oldest (a real server deletes events after an
    /// hour).
    pub max_events: usize,
    /// Whether the garbage collector runs. It deletes the dependents of deleted owners, the contents of deleted
    /// namespaces and the objects of deleted CRDs.
    pub collect_garbage: bool,
    /// The webhooks that are asked about writes.
    pub webhooks: Webhooks,
    /// The seed of uids and generated names; `None` if each server has a random one.
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
            webhooks: Webhooks::default(),
            seed: None,
        }
    }
}
