//! Timestamps as Kubernetes writes them.

use jiff::{SignedDuration, Timestamp};

/// `metav1.Time`: whole seconds, UTC.
pub(super) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `time` moved by `seconds`, inside what a timestamp can hold.
pub(super) fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}
