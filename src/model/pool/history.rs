//! The history of a proc that has run, or was held, and is not done: the counts and times that the job's expressions read.

use super::Pool;
use super::event::{LifeFacts, PodFacts};
use super::job::{End, Job};
use super::time::Time;
use classad::Ad;

/// How a proc's program last ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// By itself: `ExitCode`.
    Code(i32),
    /// By a signal: `ExitSignal`.
    Signal(i32),
}

/// The highest signal of Linux.
const MOST_SIGNAL: i32 = 64;

impl Exit {
    /// The end that a container's exit code means: 129 to 192 stand for the signals 1 to 64, as HTCondor reads the codes of Docker's
    /// containers. Linux has no other signals, so that 193 to 255 are codes of the program's own, such as the 255 of `exit(-1)`.
    pub fn of_code(code: i32) -> Self {
        match code.checked_sub(128) {
            Some(signal @ 1..=MOST_SIGNAL) => Self::Signal(signal),
            _ => Self::Code(code),
        }
    }

    /// Puts `ExitBySignal` into an ad, with `ExitCode` or `ExitSignal`.
    pub fn set_in(self, ad: &mut Ad) {
        match self {
            Self::Code(code) => {
                ad.set("ExitBySignal", false);
                ad.set("ExitCode", i64::from(code));
            }
            Self::Signal(signal) => {
                ad.set("ExitBySignal", true);
                ad.set("ExitSignal", i64::from(signal));
            }
        }
    }
}

/// The counts and times that the pool keeps of a proc that is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct History {
    /// `NumJobCompletions`: how often the program ended by itself.
    pub completions: u32,
    /// `NumJobStarts`: how many runs have ended. A pod that runs is one more.
    pub starts: u32,
    /// `NumHolds`.
    pub holds: u32,
    /// How the program last ended by itself; `None` if it never has.
    pub exit: Option<Exit>,
    /// `EnteredCurrentStatus`: since when the proc is idle or held.
    pub since: Time,
    /// `RemoteWallClockTime`: how many seconds the programs of the runs that have ended took.
    pub wall: u64,
    /// `CumulativeSuspensionTime`: for how many of these seconds the program stood still.
    pub suspended: u64,
    /// `JobStartDate`: when the program first started.
    pub first_start: Option<Time>,
    /// `LastVacateTime`: when a run last ended that did not end by itself.
    pub last_vacate: Option<Time>,
}

/// The times of a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    /// When the program started.
    pub(super) started: Time,
    /// How many seconds the program took.
    pub(super) wall: u64,
    /// For how many of these the program stood still.
    pub(super) suspended: u64,
}

impl History {
    /// Puts into a proc's ad what is kept of the proc: `EnteredCurrentStatus`, `NumJobStarts`, `NumShadowStarts`,
    /// `JobRunCount`, `NumJobMatches`, `NumJobCompletions`, `NumHolds`, `RemoteWallClockTime`,
    /// `CumulativeSuspensionTime`; `JobStartDate` and `LastVacateTime` if there are such times; and `ExitBySignal` with
    /// `ExitCode` or `ExitSignal` if the program has ended by itself before. `runs` says whether the program has
    /// started once more since.
    pub fn set_in(&self, ad: &mut Ad, runs: bool) {
        let starts = i64::from(self.starts) + i64::from(runs);
        ad.set("EnteredCurrentStatus", self.since.secs());
        ad.set("NumJobStarts", starts);
        ad.set("NumShadowStarts", starts);
        ad.set("JobRunCount", starts);
        // Matches that led to no run are not counted.
        ad.set("NumJobMatches", starts);
        ad.set("NumJobCompletions", i64::from(self.completions));
        ad.set("NumHolds", i64::from(self.holds));
        #[allow(clippy::cast_precision_loss, reason = "HTCondor has a real here")]
        ad.set("RemoteWallClockTime", self.wall as f64);
        ad.set("CumulativeSuspensionTime", i64::try_from(self.suspended).unwrap_or(i64::MAX));
        for (name, time) in [("JobStartDate", self.first_start), ("LastVacateTime", self.last_vacate)] {
            if let Some(time) = time {
                ad.set(name, time.secs());
            }
        }
        if let Some(exit) = &self.exit {
            exit.set_in(ad);
        }
    }

    /// Whether the job's status tells of the proc: the proc has run or was held.
    pub fn is_told(&self) -> bool {
        self.starts > 0 || self.holds > 0
    }
}

impl Job {
    /// The history of a proc.
    pub fn history_of(&self, proc: u32) -> History {
        let new = History { since: self.submitted, ..History::default() };
        self.history.get(&proc).copied().unwrap_or(new)
    }

    /// Changes what is kept of a proc.
    pub(super) fn note_history(&mut self, proc: u32, note: impl FnOnce(&mut History)) {
        let mut history = self.history_of(proc);
        note(&mut history);
        self.history.insert(proc, history);
        self.idle.note_late(proc, self.course.is_too_late(history.since));
    }

    /// Whether the end of this pod is booked: the pod is of a run before the proc's next one. An earlier leader may have booked
    /// the end, and may have died before it took the pod's finalizer off.
    pub(super) fn is_booked(&self, facts: &PodFacts) -> bool {
        facts.run.is_some_and(|run| run < self.history_of(facts.proc).starts)
    }

    /// Takes note of the number of a pod's run. An earlier leader may have died before it recorded the runs before.
    pub(super) fn learn_run(&mut self, facts: &PodFacts) {
        let known = self.history_of(facts.proc).starts;
        if let Some(run) = facts.run.filter(|run| *run > known && !self.is_done(facts.proc)) {
            self.note_history(facts.proc, |history| history.starts = run);
        }
    }

    /// Counts the end of a run in which containers ran.
    pub(super) fn count_run(&mut self, facts: &PodFacts) {
        self.note_history(facts.proc, |history| history.starts = history.starts.saturating_add(1));
    }

    /// Adds the times of a run whose start was counted before. `vacated` is the time of the run's end, if the program did not end
    /// by itself.
    pub(super) fn count_spent(&mut self, proc: u32, spent: Spent, vacated: Option<Time>) {
        if self.history.contains_key(&proc) {
            self.note_history(proc, |history| {
                history.wall = history.wall.saturating_add(spent.wall);
                history.suspended = history.suspended.saturating_add(spent.suspended);
                history.first_start.get_or_insert(spent.started);
                history.last_vacate = vacated.or(history.last_vacate);
            });
        }
    }

    /// Counts that the program of a proc ended by itself, which has not made the proc done.
    pub(super) fn count_completion(&mut self, proc: u32, end: &End) {
        self.note_history(proc, |history| {
            history.completions = history.completions.saturating_add(1);
            history.exit = end.code().map(Exit::of_code);
        });
    }
}

impl Pool {
    /// The life of the procs of a job, as a status that is written now records it, on an object with these acts.
    pub fn life_of(&self, job: &Job, acts: LifeFacts) -> LifeFacts {
        let told = job.history.iter().filter(|(_, history)| history.is_told());
        LifeFacts {
            removed: self.recordable_removals(job),
            history: told.map(|(proc, history)| (*proc, *history)).collect(),
            last_act: self.recordable_act(job),
            changes: job.changes_of_procs(),
            ..acts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docker_proc.cpp`: a status above 128 is a signal, if there is such a signal.
    #[test]
    fn exit_codes_above_128_are_signals() {
        for (code, exit) in [
            (0, Exit::Code(0)),
            (7, Exit::Code(7)),
            (128, Exit::Code(128)),
            (137, Exit::Signal(9)),
            (192, Exit::Signal(64)),
            (193, Exit::Code(193)),
            (255, Exit::Code(255)),
            (-1, Exit::Code(-1)),
        ] {
            assert_eq!(Exit::of_code(code), exit, "{code}");
        }
    }
}
