//! Timestamps as Kubernetes writes them.

use jiff::{SignedDuration, Timestamp};

/// The text of a `metav1.Time`: UTC, in whole seconds.
pub(super) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `time` plus `seconds`, at most the last time that a timestamp can have.
pub(super) fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}
