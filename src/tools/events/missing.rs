//! The events that a log lacks. The log itself says what was written before, so that each event is written once by whatever
//! program.
//!
//! Changes that were undone between two looks leave no event: a run that began and ended, a hold that was released.

use super::read::{Log, Standing};
use super::{Event, Exit, Kind};

/// A run of a proc's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the run among the proc's runs, from 1.
    pub number: u32,
    /// When the program started, in seconds since 1970.
    pub started: i64,
    /// The host of the run: an address in angle brackets.
    pub host: String,
    /// The slot, as HTCondor names it.
    pub slot: Option<String>,
}

/// How a proc stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// The proc waits.
    Idle {
        /// Since when; none if that is not known.
        since: Option<i64>,
        /// Why the last run ended, if that is known.
        evicted: Option<String>,
        /// How the program ended in the last run, if it ended by itself.
        requeued: Option<Exit>,
    },
    /// The proc's last run goes on.
    Running {
        /// Whether the program stands still.
        suspended: bool,
    },
    /// The proc is held.
    Held {
        /// Since when; none if that is not known.
        since: Option<i64>,
        /// `HoldReason`.
        reason: String,
        /// `HoldReasonCode`.
        code: i64,
        /// `HoldReasonSubCode`.
        subcode: i64,
    },
    /// The proc's program ended by itself in the last run, and the proc is done.
    Done {
        /// When the program ended; `None` if the time is not known.
        at: Option<i64>,
        /// How the program ended.
        exit: Exit,
    },
    /// The proc was removed.
    Removed {
        /// The reason of the removal, if the reason is known.
        reason: Option<String>,
    },
}

/// A proc, as far as the objects of the cluster tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// ClusterId and ProcId.
    pub id: (i64, u32),
    /// When the job was submitted, in seconds since 1970.
    pub submitted: i64,
    /// The API server to which the job was submitted: an address in angle brackets.
    pub host: String,
    /// The run that goes on, or the last run that ended; `None` if the run is not known.
    pub run: Option<Run>,
    /// How the proc stands.
    pub now: Now,
}

/// `HoldReasonCode` of a proc that an expression of its job holds.
const JOB_POLICY: i64 = 3;
/// `VacateReasonCode` of a proc that left its slot since somebody removed the proc.
const REMOVED: i64 = 1023;

impl Proc {
    /// The events that a log lacks, in their order. `time` is for events whose own time is not known.
    pub fn missing(&self, log: &Log, time: i64) -> Vec<Event> {
        if log.is_over() {
            return Vec::new();
        }
        let mut told = ProcEvents { id: self.id, events: Vec::new(), standing: log.standing, last: 0 };
        if log.standing == Standing::Unknown {
            told.tell(self.submitted, Kind::Submitted { host: self.host.clone(), notes: Vec::new() });
        }
        let at = self.since().unwrap_or(time);
        let is_new = self.run.as_ref().is_some_and(|run| run.number > log.run);
        let goes_on = matches!(self.now, Now::Running { .. }) && !is_new;
        let ends = matches!(self.now, Now::Done { .. }) && !is_new;
        if told.runs() && !goes_on && !ends && !self.is_held_at_exit() {
            // The run that the log has ended before the present run began, if there is one.
            let at = self.run.as_ref().filter(|_| is_new).map_or(at, |run| run.started.min(at));
            told.tell(at, self.eviction());
        }
        let shows_run = matches!(self.now, Now::Running { .. } | Now::Done { .. });
        let run = self.run.as_ref().filter(|_| is_new && shows_run);
        if let Some(run) = run {
            told.release(run.started);
            told.tell(run.started, Kind::Executing(run.clone()));
        }
        match &self.now {
            Now::Idle { .. } => told.release(at),
            Now::Running { suspended } => match (told.standing, suspended) {
                (Standing::Running, true) => told.tell(time, Kind::Suspended),
                (Standing::Suspended, false) => told.tell(time, Kind::Unsuspended),
                _ => {}
            },
            Now::Held { reason, code, subcode, .. } => {
                let hold = (reason.clone(), *code, *subcode);
                let known = told.standing == Standing::Held && log.hold.as_ref() == Some(&as_read(&hold));
                if !known {
                    told.release(at);
                    let (reason, code, subcode) = hold;
                    told.tell(at, Kind::Held { reason, code, subcode });
                }
            }
            Now::Done { exit, .. } => {
                told.release(at);
                if told.standing == Standing::Suspended {
                    told.tell(at, Kind::Unsuspended);
                }
                told.tell(at, Kind::Terminated(*exit));
            }
            Now::Removed { reason } => told.tell(at, Kind::Aborted(reason.clone())),
        }
        told.events
    }

    /// Since when the proc stands as it does, if that is known.
    fn since(&self) -> Option<i64> {
        match &self.now {
            Now::Idle { since, .. } | Now::Held { since, .. } => *since,
            Now::Done { at, .. } => *at,
            Now::Running { .. } | Now::Removed { .. } => None,
        }
    }

    /// The event 004 for the end of the run that the log has.
    fn eviction(&self) -> Kind {
        let of = |reason: &Option<String>, code, subcode, requeued| Kind::Evicted {
            reason: reason.clone(),
            code,
            subcode,
            requeued,
        };
        match &self.now {
            Now::Idle { evicted, requeued, .. } => of(evicted, 0, 0, *requeued),
            Now::Held { reason, code, subcode, .. } => of(&Some(reason.clone()), *code, *subcode, None),
            Now::Removed { reason } => of(reason, REMOVED, 0, None),
            Now::Running { .. } | Now::Done { .. } => of(&None, 0, 0, None),
        }
    }

    /// Whether an expression of the job holds the proc: HTCondor writes no event 004 then.
    fn is_held_at_exit(&self) -> bool {
        matches!(self.now, Now::Held { code: JOB_POLICY, .. })
    }
}

/// A hold as a log has it.
fn as_read((reason, code, subcode): &(String, i64, i64)) -> (String, i64, i64) {
    let reason = if reason.is_empty() { "Reason unspecified" } else { reason };
    (super::line(reason).trim().to_owned(), *code, *subcode)
}

/// Events of a proc, and how the proc stands after these events.
struct ProcEvents {
    id: (i64, u32),
    events: Vec<Event>,
    standing: Standing,
    last: i64,
}

impl ProcEvents {
    /// Adds an event, with a time no earlier than the events before have.
    fn tell(&mut self, time: i64, kind: Kind) {
        self.standing = match &kind {
            Kind::Submitted { .. } | Kind::Evicted { .. } | Kind::Released => Standing::Idle,
            Kind::Executing(_) | Kind::Unsuspended => Standing::Running,
            Kind::Suspended => Standing::Suspended,
            Kind::Held { .. } => Standing::Held,
            Kind::Terminated(_) => Standing::Terminated,
            Kind::Aborted(_) => Standing::Aborted,
        };
        self.last = self.last.max(time);
        self.events.push(Event { id: self.id, time: self.last, kind });
    }

    fn release(&mut self, time: i64) {
        if self.standing == Standing::Held {
            self.tell(time, Kind::Released);
        }
    }

    fn runs(&self) -> bool {
        matches!(self.standing, Standing::Running | Standing::Suspended)
    }
}
