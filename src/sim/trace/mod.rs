//! Workloads that were: the jobs of a trace, for the simulator to submit again.
//!
//! Two forms are read: the Standard Workload Format of the Parallel Workloads Archive (version 2.2, in `swf`), and
//! HTCondor's job history, as the schedd keeps it and as `condor_history -l` prints it (in `history`). Which one a
//! text is, its first line tells.
//!
//! What cannot be used is skipped, and [`Trace::skipped`] says which line and why. Lines come one at a time, so that
//! a trace need not fit into memory; what they cost is linear in their length.

mod error;
mod history;
mod names;
mod select;
mod skipped;
mod swf;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::TraceError;
use names::Names;
pub use select::{OTHERS, Person, Selection, SelectionError};
pub use skipped::{Reason, Skipped, Why};

/// More jobs than this no trace may have: about a gigabyte of them.
pub const MOST_JOBS: usize = 10_000_000;

/// No time in a trace is further from its beginning than this, in seconds: a thousand years.
const LONGEST: f64 = 3.2e10;

/// A workload, ordered by submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// When the first job was submitted, in seconds since 1970, where the trace says so.
    pub began: Option<i64>,
    /// How many processors the machine had that the trace is from, where the trace says so.
    pub processors: Option<u64>,
    /// The jobs, by submission; jobs of the same second in the order of the trace.
    pub jobs: Vec<TraceJob>,
    /// What was not used, by line.
    pub skipped: Vec<Skipped>,
}

/// A job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Seconds from the first submission of the trace.
    pub submitted: u64,
    /// For how many seconds it ran, suspensions and runs that were lost apart.
    pub runtime: u64,
    /// CPUs that it asked for: at least 1.
    pub cpus: u64,
    /// Memory that it asked for in all, in MiB, where the trace says so.
    pub memory_mib: Option<u64>,
    /// Disk that it asked for, in KiB, where the trace says so.
    pub disk_kib: Option<u64>,
    /// GPUs that it asked for.
    pub gpus: u64,
    /// Who submitted it: what fair share is reckoned by.
    pub owner: Arc<str>,
    /// The accounting group, where there is one.
    pub group: Option<Arc<str>>,
    /// Its priority among the owner's jobs: higher goes first.
    pub priority: i64,
    /// Whether it ended by itself and well, as far as is known. What failed, was killed or was removed did not; its
    /// runtime is how far it came.
    pub completed: bool,
}

/// Reads a trace that is in memory: see [`Reading`].
pub fn read(text: &str) -> Result<Trace, TraceError> {
    let mut reading = Reading::new();
    for line in text.lines() {
        reading.line(line)?;
    }
    reading.finish()
}

/// Reads a trace line by line.
///
/// ```
/// use sim::trace::Reading;
///
/// let mut reading = Reading::new();
/// for line in ["; MaxProcs: 64", "1 0 5 60 4 -1 -1 4 -1 1024 1 7 2 -1 1 -1 -1 -1"] {
///     reading.line(line)?;
/// }
/// let trace = reading.finish()?;
/// assert_eq!((trace.jobs.len(), &*trace.jobs[0].owner), (1, "user7"));
/// # Ok::<(), sim::trace::TraceError>(())
/// ```
#[derive(Debug, Default)]
pub struct Reading {
    lines: usize,
    form: Form,
    gathered: Gathered,
}

/// Which form the text has, as far as it was read.
#[derive(Debug, Default)]
enum Form {
    #[default]
    Unknown,
    Swf(swf::Reader),
    History(history::Reader),
}

impl Reading {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, without its end. Fails where the text is no trace, or too large a one.
    pub fn line(&mut self, line: &str) -> Result<(), TraceError> {
        self.lines += 1;
        // A byte order mark is not of the text.
        let line = if self.lines == 1 { line.trim_start_matches('\u{feff}') } else { line };
        if let Form::Unknown = self.form {
            self.form = form_of(line, self.lines)?;
        }
        match &mut self.form {
            Form::Unknown => {}
            Form::Swf(reader) => reader.line(line, self.lines, &mut self.gathered),
            Form::History(reader) => reader.line(line, self.lines, &mut self.gathered),
        }
        if self.gathered.jobs.len() > MOST_JOBS {
            return Err(TraceError::TooManyJobs { line: self.lines, most: MOST_JOBS });
        }
        Ok(())
    }

    /// The trace, when there are no more lines. Fails where there was no line of a trace at all.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        match self.form {
            Form::Unknown => return Err(TraceError::Empty { lines: self.lines }),
            Form::Swf(reader) => reader.finish(&mut self.gathered),
            Form::History(reader) => reader.finish(&mut self.gathered),
        }
        Ok(self.gathered.into_trace())
    }
}

/// Which form a text has that has this line, the first that is not blank.
fn form_of(line: &str, number: usize) -> Result<Form, TraceError> {
    let trimmed = line.trim_start();
    let named = |line: &str| {
        line.split_once('=').is_some_and(|(name, _)| {
            let name = name.trim_end();
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    match trimmed.chars().next() {
        None | Some('#') => Ok(Form::Unknown),
        Some(';' | '0'..='9' | '-' | '+' | '.') => Ok(Form::Swf(swf::Reader::default())),
        Some(_) if trimmed.starts_with("***") || named(trimmed) => {
            Ok(Form::History(history::Reader::default()))
        }
        Some(_) => {
            let column = line.chars().count() - trimmed.chars().count() + 1;
            Err(TraceError::neither(number, column, trimmed))
        }
    }
}

/// What the readers of both forms fill.
#[derive(Debug, Default)]
struct Gathered {
    /// Submission in the trace's own seconds, and the job with `submitted` still open.
    jobs: Vec<(i64, TraceJob)>,
    skipped: Vec<Skipped>,
    names: Names,
    /// The trace's second 0, in seconds since 1970.
    epoch: Option<i64>,
    processors: Option<u64>,
}

impl Gathered {
    fn skip(&mut self, line: usize, why: Why) {
        self.skipped.push(Skipped { line, why });
    }

    fn into_trace(mut self) -> Trace {
        self.jobs.sort_by_key(|(submitted, _)| *submitted);
        // A summary's parts and an ad that goes on are known later than what stands after them.
        self.skipped.sort_by_key(|skipped| skipped.line);
        let first = self.jobs.first().map(|(submitted, _)| *submitted);
        let since = |submitted: i64| submitted.saturating_sub(first.unwrap_or(submitted));
        Trace {
            began: self.epoch.zip(first).map(|(epoch, first)| epoch.saturating_add(first)),
            processors: self.processors,
            jobs: self
                .jobs
                .into_iter()
                .map(|(submitted, job)| TraceJob {
                    submitted: u64::try_from(since(submitted)).unwrap_or(0),
                    ..job
                })
                .collect(),
            skipped: self.skipped,
        }
    }
}

/// A span or an amount as a whole number, rounded; `None` where it is negative or beyond reason.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range: checked")]
fn whole(number: f64) -> Option<u64> {
    (0.0..=LONGEST).contains(&number).then(|| number.round() as u64)
}

/// A moment in whole seconds; `None` beyond reason.
#[allow(clippy::cast_possible_truncation, reason = "in range: checked")]
fn second(number: f64) -> Option<i64> {
    (number.abs() <= LONGEST).then(|| number.round() as i64)
}
