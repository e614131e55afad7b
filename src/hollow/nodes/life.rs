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
    /// Set once TERM was sent.
    pub term: Option<Term>,
}

/// What follows a TERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
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

    /// How the running containers will end as things stand.
    pub fn exit(&self, script: &Script) -> Option<Exit> {
        let Self::Running(run) = self else { return None };
        let own = script.runtime.map(|runtime| (after(run.since, runtime), script.exit_code));
        let stopped = run.term.and_then(|term| term.stops).map(|at| (at, script.term_exit_code));
        let killed = run.term.map(|term| (term.kills, KILLED));
        // The first of equals wins: an exit of one's own, then a stop in time, then KILL.
        let (at, code) = [own, stopped, killed].into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(Exit { started: Some(run.since), at, code })
    }
}

impl Run {
    /// Sends TERM with this grace, or shortens the grace of an earlier one; a longer one is not honored.
    pub fn terminate(&mut self, now: Timestamp, grace: Duration, script: &Script) {
        let kills = after(now, grace);
        self.term = Some(match self.term {
            Some(term) => Term { kills: term.kills.min(kills), ..term },
            None => Term { stops: (!script.ignore_term).then(|| after(now, script.term_delay)), kills },
        });
    }
}

/// `time` plus `duration`, at most the end of time.
pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
