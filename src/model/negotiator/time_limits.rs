//! How long a cycle, a submitter and a submitter's turn may take: the `NEGOTIATOR_MAX_TIME_PER_*` knobs.
//!
//! Source: `matchmaker.cpp`. Who has had their time, or comes when the cycle has had its own, has no turn any more; a turn that
//! takes too long ends before its next job, and may go on in the next spin. What was matched until then stays.

use std::fmt;
use std::time::Duration;

use super::config::Config;

/// How long the cycle has taken so far, as whoever runs it says.
#[derive(Clone, Copy)]
pub struct Watch<'a>(Option<&'a dyn Fn() -> Duration>);

impl<'a> Watch<'a> {
    /// One that stands still: the cycle takes as long as it takes, and the same input gives the same outcome.
    pub const STOPPED: Self = Self(None);

    /// One that says what this does. An outcome may depend on it once a limit is reached.
    pub const fn showing(elapsed: &'a dyn Fn() -> Duration) -> Self {
        Self(Some(elapsed))
    }

    fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |elapsed| elapsed())
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({:?})", self.elapsed())
    }
}

/// The time of a cycle, and who has had how much of it.
#[derive(Debug)]
pub(super) struct TimeLimits<'a> {
    watch: Watch<'a>,
    per_cycle: Duration,
    per_submitter: Duration,
    per_piespin: Duration,
    spent: Vec<Duration>,
}

/// When a turn has to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    watch: Watch<'a>,
    began: Duration,
    ends: Duration,
}

impl Deadline<'_> {
    pub(super) fn is_over(self) -> bool {
        self.watch.elapsed() >= self.ends
    }
}

impl<'a> TimeLimits<'a> {
    pub(super) fn new(config: &Config, submitters: usize, watch: Watch<'a>) -> Self {
        Self {
            watch,
            per_cycle: config.max_time_per_cycle,
            per_submitter: config.max_time_per_submitter,
            per_piespin: config.max_time_per_piespin,
            spent: vec![Duration::ZERO; submitters],
        }
    }

    /// A submitter's turn begins; none where there is no time for one.
    pub(super) fn begin(&self, submitter: usize) -> Option<Deadline<'a>> {
        let began = self.watch.elapsed();
        let spent = self.spent.get(submitter).copied().unwrap_or_default();
        let left = self.per_submitter.saturating_sub(spent).min(self.per_cycle.saturating_sub(began));
        let ends = began.saturating_add(left.min(self.per_piespin));
        (!left.is_zero()).then_some(Deadline { watch: self.watch, began, ends })
    }

    /// It is over.
    pub(super) fn end(&mut self, submitter: usize, turn: Deadline<'_>) {
        if let Some(spent) = self.spent.get_mut(submitter) {
            *spent += self.watch.elapsed().saturating_sub(turn.began);
        }
    }
}
