//! The work that all expansions of one configuration may take together.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that may still be looked at or moved. Every question to the configuration uses some up, and questions
/// share the configuration, so the number is atomic.
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
        // The update never fails: more than is left leaves 0.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
    }
}

/// No bound on all expansions together; each value still has its own.
impl Default for Allowance {
    fn default() -> Self {
        Self::of(u64::MAX)
    }
}

/// A clone has as much work left as the original has at this moment. Neither uses up the work of the other.
impl Clone for Allowance {
    fn clone(&self) -> Self {
        Self::of(self.left())
    }
}
