//! The life of a pod's containers, from admission to exit. Each step has a point in time, which does not depend on
//! when the shell asks for it.

use std::time::Duration;

use jiff::Timestamp;

use super::script::Script;
use super::status::Exit;

/// The exit code of a process that SIGKILL ended: 128 + 9.
pub const KILLED: i32 = 137;

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// The kubelet has admitted the pod, and its containers start at this time.
    Starting {
        /// The start of the containers.
        at: Timestamp,
    },
    /// The containers run. They may have received TERM.
    Running(Run),
    /// The containers have ended, or the kubelet rejected the pod.
    Ended,
}

/// Containers that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When they started.
    pub since: Timestamp,
    /// When the agent suspended them, if they are suspended.
    pub suspended: Option<Timestamp>,
    /// How long they were suspended before, in total.
    pub suspended_before: Duration,
    /// The TERM that the kubelet has sent, if any.
    pub term: Option<Term>,
}

/// A TERM that was sent, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// When it was sent.
    pub sent: Timestamp,
    /// When the containers stop because of it; `None` if they ignore it.
    pub stops: Option<Timestamp>,
    /// When the grace period ends and the kubelet sends KILL.
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

    /// When something will happen next by itself; `None` if nothing will.
    pub fn next(&self, script: &Script) -> Option<Timestamp> {
        match self {
            Self::Starting { at } => Some(*at),
            Self::Running(_) => self.exit(script).map(|exit| exit.at),
            Self::Ended => None,
        }
    }

    /// How the running containers will end if nothing else happens; `None` if they run for ever. Suspended
    /// containers end only by KILL.
    pub fn exit(&self, script: &Script) -> Option<Exit> {
        let Self::Running(run) = self else { return None };
        let runs = run.suspended.is_none();
        let own = script.runtime.filter(|_| runs);
        let own = own.map(|runtime| (after(run.since, runtime + run.suspended_before), script.exit_code));
        let stopped =
            run.term.filter(|_| runs).and_then(|term| term.stops).map(|at| (at, script.term_exit_code));
        let killed = run.term.filter(|_| !script.ignore_kill).map(|term| (term.kills, KILLED));
        // `min_by_key` returns the first of equal times: the containers' own exit, then their stop after TERM, then
        // KILL.
        let (at, code) = [own, stopped, killed].into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(Exit { started: Some(run.since), at, code, fenced: false })
    }
}

impl Run {
    /// Containers that started at this time.
    pub fn new(since: Timestamp) -> Self {
        Self { since, suspended: None, suspended_before: Duration::ZERO, term: None }
    }

    /// Suspends or continues the containers. Their runtime, and the time that they take to stop after TERM, are
    /// longer by the time for which they were suspended.
    pub fn set_suspended(&mut self, suspended: bool, now: Timestamp) {
        let Some(since) = self.suspended else {
            self.suspended = suspended.then_some(now);
            return;
        };
        if suspended {
            return;
        }
        self.suspended = None;
        self.suspended_before += span(since, now);
        if let Some(term) = &mut self.term {
            let suspended_since_term = span(since.max(term.sent), now);
            term.stops = term.stops.map(|stops| after(stops, suspended_since_term));
        }
    }

    /// Sends TERM with this grace period, or shortens the grace period of an earlier TERM. A second TERM cannot
    /// lengthen it.
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

/// `time` plus `duration`, at most [`Timestamp::MAX`].
pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// The duration from one time to a later one; zero if `to` is not later.
fn span(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
