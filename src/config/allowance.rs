//! What all expansions of one configuration may cost together.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may still be looked at or moved. It goes down with each question, and questions share the configuration:
/// hence the atomic number.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Allowance {
    pub fn of(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn spend(&self, bytes: u64) {
        // The update never refuses: what is not there counts as nothing.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
    }
}

/// No bound but that of each value.
impl Default for Allowance {
    fn default() -> Self {
        Self::of(u64::MAX)
    }
}

/// A copy has what is left.
impl Clone for Allowance {
    fn clone(&self) -> Self {
        Self::of(self.left())
    }
}
