//! How long a cycle, a submitter and a submitter's turn may take: the `NEGOTIATOR_MAX_TIME_PER_*` knobs.
//!
//! A submitter that has used up its time, or whose turn comes after the cycle has used up its time, gets no more turns. A turn
//! that takes too long ends before its next job, and the submitter may go on in the next spin. Matches made until then stay.
//!
//! Source: `matchmaker.cpp`.

use std::fmt;
use std::time::Duration;

use super::config::Config;

/// Says how long the cycle has taken so far. The caller of the negotiation provides the stopwatch.
#[derive(Clone, Copy)]
pub struct Stopwatch<'a>(Option<&'a dyn Fn() -> Duration>);

impl<'a> Stopwatch<'a> {
    /// A stopwatch that always shows 0: no limit is ever reached, and the same input gives the same outcome.
    pub const STOPPED: Self = Self(None);

    /// A stopwatch that shows what `elapsed` returns. The outcome depends on it only if a limit is reached.
    pub const fn showing(elapsed: &'a dyn Fn() -> Duration) -> Self {
        Self(Some(elapsed))
    }

    fn elapsed(self) -> Duration {
        self.0.map_or(Duration::ZERO, |elapsed| elapsed())
    }
}

impl fmt::Debug for Stopwatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stopwatch({:?})", self.elapsed())
    }
}

/// The time limits of a cycle, and the time that each submitter has had.
#[derive(Debug)]
pub(super) struct TimeLimits<'a> {
    stopwatch: Stopwatch<'a>,
    per_cycle: Duration,
    per_submitter: Duration,
    per_piespin: Duration,
    spent: Vec<Duration>,
}

/// When a turn has to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    stopwatch: Stopwatch<'a>,
    began: Duration,
    ends: Duration,
}

impl Deadline<'_> {
    pub(super) fn is_over(self) -> bool {
        self.stopwatch.elapsed() >= self.ends
    }
}

impl<'a> TimeLimits<'a> {
    pub(super) fn new(config: &Config, submitters: usize, stopwatch: Stopwatch<'a>) -> Self {
        Self {
            stopwatch,
            per_cycle: config.max_time_per_cycle,
            per_submitter: config.max_time_per_submitter,
            per_piespin: config.max_time_per_piespin,
            spent: vec![Duration::ZERO; submitters],
        }
    }

    /// Begins a submitter's turn. Returns none if there is no time for a turn.
    pub(super) fn begin(&self, submitter: usize) -> Option<Deadline<'a>> {
        let began = self.stopwatch.elapsed();
        let spent = self.spent.get(submitter).copied().unwrap_or_default();
        let left = self.per_submitter.saturating_sub(spent).min(self.per_cycle.saturating_sub(began));
        let ends = began.saturating_add(left.min(self.per_piespin));
        (!left.is_zero()).then_some(Deadline { stopwatch: self.stopwatch, began, ends })
    }

    /// Ends a submitter's turn.
    pub(super) fn end(&mut self, submitter: usize, turn: Deadline<'_>) {
        if let Some(spent) = self.spent.get_mut(submitter) {
            *spent += self.stopwatch.elapsed().saturating_sub(turn.began);
        }
    }
}
