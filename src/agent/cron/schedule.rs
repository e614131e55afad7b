//! When cron jobs run. Pure: times are spans since the agent began.
//!
//! Source: the manual, `STARTD_CRON_<JobName>_MODE`, `_PERIOD`, `_KILL`, `_RECONFIG`, `_RECONFIG_RERUN` and `_JOB_LOAD`.

use std::time::Duration;

use api::{NodeCron, NodeCronJob, NodeCronMode};

/// A run of a job that is not to run on for ever is killed after this time, or after the job's period if that is longer.
const LONGEST: Duration = Duration::from_mins(10);
/// By how much the sum of loads may exceed the greatest: ten times 0.01 is more than 0.1.
const ROUNDING: f64 = 1e-6;

/// An action on a job's run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Run the job's program.
    Start(Box<NodeCronJob>),
    /// End the job's run. If the end is a fault, the text says why.
    Kill(String, Option<String>),
    /// Send SIGHUP to the job's program.
    Hup(String),
}

/// The jobs, with their runs.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// In the order of the list. Jobs that were taken off the list, and still run, come last.
    entries: Vec<Entry>,
    max_load: f64,
}

#[derive(Debug)]
struct Entry {
    job: NodeCronJob,
    /// When the next run is due; none if it is not known yet, or if there is none.
    due: Option<Duration>,
    /// When the last run began.
    began: Option<Duration>,
    runs: bool,
    /// The run was told to end.
    ends: bool,
    /// The job was taken off the list.
    gone: bool,
}

impl Schedule {
    /// Replaces the jobs by those that the operator asks for now. Returns what is to be done to runs that are under
    /// way: a run of a job that the operator no longer asks for is ended.
    pub(super) fn replace(&mut self, asked: &NodeCron, now: Duration) -> Vec<Act> {
        self.max_load = asked.max_job_load;
        let mut before = std::mem::take(&mut self.entries);
        let mut acts = Vec::new();
        for job in &asked.jobs {
            let at = before.iter().position(|entry| entry.job.name == job.name);
            let entry = match at.map(|at| before.remove(at)) {
                Some(entry) => entry.changed(job, now, &mut acts),
                None => Entry {
                    job: job.clone(),
                    due: Some(now),
                    began: None,
                    runs: false,
                    ends: false,
                    gone: false,
                },
            };
            self.entries.push(entry);
        }
        for mut entry in before.into_iter().filter(|entry| entry.runs) {
            (entry.due, entry.gone) = (None, true);
            acts.extend(entry.kill(None));
            self.entries.push(entry);
        }
        acts
    }

    /// The actions that are due now.
    pub(super) fn acts(&mut self, now: Duration) -> Vec<Act> {
        let mut acts: Vec<Act> = Vec::new();
        let mut load: f64 = self.entries.iter().filter(|entry| entry.runs).map(|entry| entry.job.load).sum();
        for entry in &mut self.entries {
            if entry.runs {
                acts.extend(entry.overdue(now));
            } else if entry.is_due(now) && load + entry.job.load <= self.max_load + ROUNDING {
                load += entry.job.load;
                acts.push(entry.start(now));
            }
        }
        acts
    }

    /// A run of a job has ended, or could not begin.
    pub(super) fn ended(&mut self, name: &str, now: Duration) {
        for entry in self.entries.iter_mut().filter(|entry| entry.job.name == name) {
            (entry.runs, entry.ends) = (false, false);
            if entry.job.mode == NodeCronMode::WaitForExit && !entry.gone {
                entry.due = Some(now + entry.period());
            }
        }
        self.entries.retain(|entry| entry.runs || !entry.gone);
    }

    /// The next time at which a run has to begin or to end. A beginning does not count if the job's condition is not
    /// true, or if the job's load does not fit beside that of the runs under way.
    pub(super) fn wake(&self) -> Option<Duration> {
        let load: f64 = self.entries.iter().filter(|entry| entry.runs).map(|entry| entry.job.load).sum();
        let of = |entry: &Entry| {
            if entry.runs {
                let due = entry.due.filter(|_| !entry.ends && !entry.job.waits);
                return due.into_iter().chain(entry.limit().filter(|_| !entry.ends)).min();
            }
            let fits = load + entry.job.load <= self.max_load + ROUNDING;
            entry.due.filter(|_| fits && !entry.job.waits)
        };
        self.entries.iter().filter_map(of).min()
    }
}

impl Entry {
    /// Takes the job's definition anew: this job's or another's has changed. A run that is under way goes on, within the limits of the
    /// new definition.
    fn changed(mut self, job: &NodeCronJob, now: Duration, acts: &mut Vec<Act>) -> Self {
        let (mode, period) = (self.job.mode, self.job.period_seconds);
        self.job = job.clone();
        let other = std::mem::take(&mut self.gone) || mode != job.mode;
        if other || (job.mode == NodeCronMode::OneShot && job.reconfig_rerun) {
            self.due = Some(now);
        } else if job.mode == NodeCronMode::Periodic && period != job.period_seconds {
            self.due = Some(self.began.map_or(now, |began| began + self.period()));
        }
        if job.reconfig && self.runs && !self.ends {
            acts.push(Act::Hup(job.name.clone()));
        }
        self
    }

    fn period(&self) -> Duration {
        Duration::from_secs(self.job.period_seconds.max(1).into())
    }

    fn is_due(&self, now: Duration) -> bool {
        !self.job.waits && self.due.is_some_and(|due| due <= now)
    }

    fn start(&mut self, now: Duration) -> Act {
        (self.runs, self.ends, self.began) = (true, false, Some(now));
        self.due = (self.job.mode == NodeCronMode::Periodic).then(|| now + self.period());
        Act::Start(Box::new(self.job.clone()))
    }

    /// When a run has gone on for too long. A job of mode `WaitForExit` may run for ever.
    fn limit(&self) -> Option<Duration> {
        let bounded = self.job.mode != NodeCronMode::WaitForExit;
        self.began.filter(|_| bounded).map(|began| began + LONGEST.max(self.period()))
    }

    /// The action on a run that is overdue: the next run is due, or this run goes on for too long.
    fn overdue(&mut self, now: Duration) -> Option<Act> {
        if self.ends {
            return None;
        }
        if self.limit().is_some_and(|limit| limit <= now) {
            let why = format!("a run took longer than {} s", LONGEST.max(self.period()).as_secs());
            return self.kill(Some(why));
        }
        if !self.is_due(now) {
            return None;
        }
        if self.job.kill {
            return self.kill(None);
        }
        match self.job.mode {
            // The run goes on, and the next is left out.
            NodeCronMode::Periodic => {
                let next = self.due.map(|due| due + self.period()).filter(|due| *due > now);
                self.due = Some(next.unwrap_or_else(|| now + self.period()));
            }
            NodeCronMode::OneShot | NodeCronMode::WaitForExit => self.due = None,
        }
        None
    }

    fn kill(&mut self, why: Option<String>) -> Option<Act> {
        let ends = std::mem::replace(&mut self.ends, true);
        (!ends).then(|| Act::Kill(self.job.name.clone(), why))
    }
}

#[cfg(test)]
mod tests;
