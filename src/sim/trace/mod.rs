//! Workloads of the past: reads the jobs of a trace, which the simulator submits again.
//!
//! Two formats are understood: the Standard Workload Format of the Parallel Workloads Archive (version 2.2, in
//! `swf`), and HTCondor's job history, as the schedd keeps it and as `condor_history -l` prints it (in `history`).
//! The first line decides which format a text has.
//!
//! Lines and ads that cannot be used are skipped; [`Trace::skipped`] says which and why. The caller gives one line at
//! a time, so that the text of a trace need not fit into memory. Reading takes time linear in the text's length.

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

/// The most jobs of a trace; so many take about a gigabyte of memory.
pub const MOST_JOBS: usize = 10_000_000;

/// The largest number of seconds or amount that a trace may have: a thousand years.
const LONGEST: f64 = 3.2e10;

/// A workload, ordered by submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// When the first job was submitted, in seconds since 1970, if the trace says so.
    pub began: Option<i64>,
    /// How many processors the traced machine had, if the trace says so.
    pub processors: Option<u64>,
    /// The jobs in the order of submission; jobs of the same second are in the order of the trace.
    pub jobs: Vec<TraceJob>,
    /// The lines and ads that were not used, in the order of lines.
    pub skipped: Vec<Skipped>,
}

/// A job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Seconds from the first submission of the trace.
    pub submitted: u64,
    /// How many seconds the job ran, without suspensions and lost runs.
    pub runtime: u64,
    /// The CPUs that the job asked for; at least 1.
    pub cpus: u64,
    /// The memory that the job asked for, over all its CPUs, in MiB, if the trace says so.
    pub memory_mib: Option<u64>,
    /// The disk that the job asked for, in KiB, if the trace says so.
    pub disk_kib: Option<u64>,
    /// The GPUs that the job asked for.
    pub gpus: u64,
    /// Who submitted the job: the name that fair share counts by.
    pub owner: Arc<str>,
    /// The accounting group, if the job has one.
    pub group: Option<Arc<str>>,
    /// The job's priority among its owner's jobs; higher goes first.
    pub priority: i64,
    /// Whether the job ended by itself and succeeded, as far as is known. A job that failed, was killed or was
    /// removed did not; its runtime is how long it ran until then.
    pub completed: bool,
}

/// Reads a trace that is in memory. [`Reading`] reads one line by line.
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
    collected: Collected,
}

/// The format of the text; unknown until the first line that is not blank.
#[derive(Debug, Default)]
enum Form {
    #[default]
    Unknown,
    Swf(swf::Reader),
    History(history::Reader),
}

impl Reading {
    /// A reader that has not read a line yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next line, given without its line break. Fails if the text is no trace, or has more than
    /// [`MOST_JOBS`] jobs.
    pub fn line(&mut self, line: &str) -> Result<(), TraceError> {
        self.lines += 1;
        // A byte order mark is not part of the text.
        let line = if self.lines == 1 { line.trim_start_matches('\u{feff}') } else { line };
        if let Form::Unknown = self.form {
            self.form = form_of(line, self.lines)?;
        }
        match &mut self.form {
            Form::Unknown => {}
            Form::Swf(reader) => reader.line(line, self.lines, &mut self.collected),
            Form::History(reader) => reader.line(line, self.lines, &mut self.collected),
        }
        if self.collected.jobs.len() > MOST_JOBS {
            return Err(TraceError::TooManyJobs { line: self.lines, most: MOST_JOBS });
        }
        Ok(())
    }

    /// Ends the reading, and returns the trace. Fails if all lines were blank.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        match self.form {
            Form::Unknown => return Err(TraceError::Empty { lines: self.lines }),
            Form::Swf(reader) => reader.finish(&mut self.collected),
            Form::History(reader) => reader.finish(&mut self.collected),
        }
        Ok(self.collected.into_trace())
    }
}

/// The format that a line, which may be blank, reveals.
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

/// The jobs that the readers of both formats have read so far.
#[derive(Debug, Default)]
struct Collected {
    /// The time of submission in the trace's own seconds, and the job, whose `submitted` is not yet set.
    jobs: Vec<(i64, TraceJob)>,
    skipped: Vec<Skipped>,
    names: Names,
    /// The trace's second 0, in seconds since 1970.
    epoch: Option<i64>,
    processors: Option<u64>,
}

impl Collected {
    fn skip(&mut self, line: usize, why: Why) {
        self.skipped.push(Skipped { line, why });
    }

    fn into_trace(mut self) -> Trace {
        self.jobs.sort_by_key(|(submitted, _)| *submitted);
        // Some lines are skipped only when a later line or the end of the trace is read.
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

/// Rounds a span or an amount to a whole number; `None` if it is negative or above [`LONGEST`].
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range: checked")]
fn whole(number: f64) -> Option<u64> {
    (0.0..=LONGEST).contains(&number).then(|| number.round() as u64)
}

/// Rounds a moment to whole seconds; `None` if it is beyond [`LONGEST`] on either side.
#[allow(clippy::cast_possible_truncation, reason = "in range: checked")]
fn second(number: f64) -> Option<i64> {
    (number.abs() <= LONGEST).then(|| number.round() as i64)
}
