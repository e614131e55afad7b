//! The life of a pod's containers, from admission to exit. All times are points, so a late look changes nothing.

use std::time::Duration;

use jiff::Timestamp;

use super::script::Script;
use super::status::Exit;

/// Exit code of a process that KILL ended: 128 + 9.
pub const KILLED: i32 = 137;

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Admitted; its containers start at this time.
    Starting {
        /// Start of the containers.
        at: Timestamp,
    },
    /// Its containers run, perhaps with TERM behind them.
    Running(Run),
    /// Over: ended, refused, or ended by somebody else.
    Ended,
}

/// Containers that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Since when.
    pub since: Timestamp,
    /// Since when an agent holds them still.
    pub suspended: Option<Timestamp>,
    /// For how long one did before that.
    pub stood_still: Duration,
    /// Set once TERM was sent.
    pub term: Option<Term>,
}

/// What follows a TERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// When it was sent.
    pub sent: Timestamp,
    /// When the containers stop because of it; `None` when they ignore it.
    pub stops: Option<Timestamp>,
    /// When KILL comes.
    pub kills: Timestamp,
}

impl Life {
    /// Whether the pod counts against the node's allocatable.
    pub fn takes_resources(&self) -> bool {
        *self != Self::Ended
    }

    /// Whether TERM was sent.
    pub fn is_terminating(&self) -> bool {
        matches!(self, Self::Running(Run { term: Some(_), .. }))
    }

    /// When something happens next by itself.
    pub fn next(&self, script: &Script) -> Option<Timestamp> {
        match self {
            Self::Starting { at } => Some(*at),
            Self::Running(_) => self.exit(script).map(|exit| exit.at),
            Self::Ended => None,
        }
    }

    /// Whether an agent holds its containers still.
    pub fn is_suspended(&self) -> bool {
        matches!(self, Self::Running(Run { suspended: Some(_), .. }))
    }

    /// How the running containers will end as things stand. KILL ends those too that are held still; nothing else does.
    pub fn exit(&self, script: &Script) -> Option<Exit> {
        let Self::Running(run) = self else { return None };
        let runs = run.suspended.is_none();
        let own = script.runtime.filter(|_| runs);
        let own = own.map(|runtime| (after(run.since, runtime + run.stood_still), script.exit_code));
        let stopped =
            run.term.filter(|_| runs).and_then(|term| term.stops).map(|at| (at, script.term_exit_code));
        let killed = run.term.filter(|_| !script.ignore_kill).map(|term| (term.kills, KILLED));
        // The first of equals wins: an exit of one's own, then a stop in time, then KILL.
        let (at, code) = [own, stopped, killed].into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(Exit { started: Some(run.since), at, code, fenced: false })
    }
}

impl Run {
    /// Containers that start now.
    pub fn new(since: Timestamp) -> Self {
        Self { since, suspended: None, stood_still: Duration::ZERO, term: None }
    }

    /// Holds the containers still, or lets them go on. What they had before them takes as much longer, TERM's work too.
    pub fn hold(&mut self, suspended: bool, now: Timestamp) {
        let Some(since) = self.suspended else {
            self.suspended = suspended.then_some(now);
            return;
        };
        if suspended {
            return;
        }
        self.suspended = None;
        self.stood_still += span(since, now);
        if let Some(term) = &mut self.term {
            let still = span(since.max(term.sent), now);
            term.stops = term.stops.map(|stops| after(stops, still));
        }
    }

    /// Sends TERM with this grace, or shortens the grace of an earlier one; a longer one is not honored.
    pub fn terminate(&mut self, now: Timestamp, grace: Duration, script: &Script) {
        let kills = after(now, grace);
        self.term = Some(match self.term {
            Some(term) => Term { kills: term.kills.min(kills), ..term },
            None => {
                Term { sent: now, stops: (!script.ignore_term).then(|| after(now, script.term_delay)), kills }
            }
        });
    }
}

/// `time` plus `duration`, at most the end of time.
pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// From one time to a later one; nothing where it is not later.
fn span(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
