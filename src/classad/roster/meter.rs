//! The cost of the evaluations for one job so far, and their bound.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::env::Bound;
use crate::eval::Evaluation;

/// Counts the steps of all evaluations for one job, those of slots' expressions among them: what they cost depends on
/// the job's attributes.
#[derive(Debug)]
pub(super) struct Meter {
    spent: AtomicU64,
    share: u64,
    /// Whether an evaluation of one of the job's own expressions hit [`Bound::Steps`].
    bounded: AtomicBool,
}

impl Default for Meter {
    fn default() -> Self {
        Self { spent: AtomicU64::new(0), share: u64::MAX, bounded: AtomicBool::new(false) }
    }
}

impl Meter {
    /// A meter that allows so many steps.
    pub(super) fn with_share(share: u64) -> Self {
        Self { share, ..Self::default() }
    }

    /// Counts steps.
    #[inline]
    pub(super) fn pay(&self, steps: u64) {
        // One thread works for a job at a time. A count that two threads lose is no harm, and an addition that is safe
        // against that would cost more than what is counted.
        self.spent.store(self.spent.load(Relaxed).saturating_add(steps), Relaxed);
    }

    /// Counts an evaluation.
    pub(super) fn count(&self, done: &Evaluation) {
        self.pay(u64::from(done.steps));
    }

    /// Counts an evaluation of one of the job's own expressions.
    pub(super) fn count_own(&self, done: &Evaluation) {
        self.count(done);
        if done.bound == Some(Bound::Steps) {
            self.bounded.store(true, Relaxed);
        }
    }

    /// The steps so far.
    pub(super) fn spent(&self) -> u64 {
        self.spent.load(Relaxed)
    }

    /// Whether the evaluations have cost more than they may.
    pub(super) fn is_over(&self) -> bool {
        self.spent() > self.share
    }

    /// Whether an evaluation of one of the job's own expressions hit [`Bound::Steps`].
    pub(super) fn is_bounded(&self) -> bool {
        self.bounded.load(Relaxed)
    }
}

impl Clone for Meter {
    fn clone(&self) -> Self {
        Self {
            spent: AtomicU64::new(self.spent()),
            share: self.share,
            bounded: AtomicBool::new(self.is_bounded()),
        }
    }
}
