//! The life of a pod's containers, from admission to exit. The time of each step does not depend on when the shell asks
//! for it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::script::Script;
use super::status::{Cause, Exit};
use super::view::{Phase, PodView};

/// The exit code of a process that SIGKILL ended: 128 + 9.
pub const KILLED: i32 = 137;
/// The exit code of a process that SIGTERM ended: 128 + 15.
const TERMINATED: i32 = 143;
/// The least time that containers have between TERM and KILL, whatever grace period a deletion asks for.
const LEAST_GRACE: Duration = Duration::from_secs(2);
/// How long a pod whose containers have all ended stays in phase Running: until the kubelet has taken down its sandbox.
const SANDBOX: Duration = Duration::from_secs(1);

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
    /// The main container has ended. Others may run, and the pod's phase is not terminal yet.
    Ending(Ending),
    /// The pod's phase is terminal, or will be once the write of it succeeds.
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

/// A pod whose main container has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How the main container ended.
    pub exit: Exit,
    /// The run of its containers before that end.
    pub run: Run,
}

impl Life {
    /// Whether the pod counts against the node's allocatable: a kubelet frees what a pod has when the pod's phase becomes
    /// terminal, and not when its containers end.
    pub fn takes_resources(&self) -> bool {
        *self != Self::Ended
    }

    /// Whether the main container will run or runs.
    pub fn is_before_exit(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Running(_))
    }

    /// When something will happen next by itself; `None` if nothing will.
    pub fn next(&self, view: &PodView) -> Option<Timestamp> {
        match self {
            Self::Starting { at } => Some(*at),
            Self::Running(_) => self.exit(&view.script).map(|exit| exit.at),
            Self::Ending(ending) => Some(ending.settles(view)),
            Self::Ended => None,
        }
    }

    /// How the main container will end if nothing else happens; `None` if it runs for ever. Suspended containers end only
    /// by KILL.
    pub fn exit(&self, script: &Script) -> Option<Exit> {
        let Self::Running(run) = self else { return None };
        let runs = run.suspended.is_none();
        let (code, cause) = own_exit(script);
        let own = script.runtime.filter(|_| runs);
        let own = own.map(|runtime| (after(run.since, runtime + run.suspended_before), code, cause));
        let stopped = run.term.filter(|_| runs).and_then(|term| term.stops);
        let stopped = stopped.map(|at| (at, script.term_exit_code, Cause::Exited));
        let killed = run.term.filter(|_| !script.ignore_kill).map(|term| (term.kills, KILLED, Cause::Exited));
        // `min_by_key` returns the first of equal times: the container's own exit, then its stop after TERM, then KILL.
        let (at, code, cause) = [own, stopped, killed].into_iter().flatten().min_by_key(|(at, ..)| *at)?;
        Some(Exit { started: Some(run.since), at, code, cause })
    }
}

/// How the main container ends when its runtime is over.
fn own_exit(script: &Script) -> (i32, Cause) {
    if script.evicted.is_some() {
        (KILLED, Cause::Evicted)
    } else if script.out_of_memory {
        (KILLED, Cause::OutOfMemory)
    } else {
        (script.exit_code, Cause::Exited)
    }
}

impl Ending {
    /// How the containers after the first one end. Without a runtime of their own they end as the first one does.
    pub fn others(&self, script: &Script) -> Exit {
        let at_once = matches!(self.exit.cause, Cause::Fenced | Cause::Evicted);
        let Some(runtime) = script.others_runtime.filter(|_| !at_once) else { return self.exit };
        let own = (after(self.run.since, runtime), 0);
        let told = self.run.term.map(|term| (term.sent, TERMINATED));
        let (at, code) = [Some(own), told].into_iter().flatten().min_by_key(|(at, _)| *at).unwrap_or(own);
        Exit { at, code, cause: Cause::Exited, ..self.exit }
    }

    /// When the last of the ordinary containers ends.
    fn ordinary_over(&self, view: &PodView) -> Timestamp {
        let others = (view.containers.len() > 1).then(|| self.others(&view.script).at);
        self.exit.at.max(others.unwrap_or(self.exit.at))
    }

    /// When the sidecars end: after all others.
    pub fn sidecars_over(&self, view: &PodView) -> Timestamp {
        let delay = if view.sidecars.is_empty() { Duration::ZERO } else { view.script.sidecar_delay };
        after(self.ordinary_over(view), delay)
    }

    /// When the pod's phase becomes terminal.
    pub fn settles(&self, view: &PodView) -> Timestamp {
        after(self.sidecars_over(view), SANDBOX)
    }

    /// The phase then: Failed if any ordinary container failed.
    pub fn phase(&self, view: &PodView) -> Phase {
        let others_fail = view.containers.len() > 1 && self.others(&view.script).code != 0;
        if others_fail { Phase::Failed } else { self.exit.phase() }
    }

    /// Returns this ending with all its times moved by `ahead`: the times that a clock shows which is ahead by this
    /// much.
    pub fn dated(&self, ahead: SignedDuration) -> Self {
        let mut dated = *self;
        dated.exit.at = shifted(self.exit.at, ahead);
        dated.exit.started = self.exit.started.map(|at| shifted(at, ahead));
        dated.run.since = shifted(self.run.since, ahead);
        if let Some(term) = &mut dated.run.term {
            term.sent = shifted(term.sent, ahead);
        }
        dated
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

    /// Sends TERM with this grace period. A kubelet that has sent TERM before does not look at another grace period,
    /// shorter or longer (kubernetes#83916).
    pub fn terminate(&mut self, now: Timestamp, grace: Duration, script: &Script) {
        let stops = (!script.ignore_term).then(|| after(now, script.term_delay));
        self.term.get_or_insert(Term { sent: now, stops, kills: after(now, grace.max(LEAST_GRACE)) });
    }
}

/// `time` as a clock shows it that is ahead by this much.
pub(super) fn shifted(time: Timestamp, ahead: SignedDuration) -> Timestamp {
    time.saturating_add(ahead).unwrap_or(time)
}

/// `time` plus `duration`, at most [`Timestamp::MAX`].
pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// The duration from one time to a later one; zero if `to` is not later.
fn span(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
