//! What of a trace was not used, and why.

use std::fmt;
use std::mem::discriminant;

use super::Trace;
use classad::ParseError;

/// A line, or the ad that begins there, that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The line, from 1.
    pub line: usize,
    /// Why.
    pub why: Why,
}

/// Why something of a trace was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The Standard Workload Format has 18 fields to a line.
    Fields {
        /// How many the line has.
        found: usize,
    },
    /// A field is no number.
    NotANumber {
        /// Which, from 1.
        field: usize,
    },
    /// A run of a job that another line is about as a whole.
    PartOf {
        /// The job's number.
        job: i64,
        /// The line that is about all of it.
        line: usize,
    },
    /// The same job was met before.
    Again {
        /// Where, from 1.
        line: usize,
    },
    /// There is no time of submission: a job of a model that follows another job, say.
    NoSubmission,
    /// How long it ran is unknown: it had not ended yet, say.
    NoRunTime,
    /// It was cancelled or removed before it ran.
    NeverRan,
    /// How many CPUs it asked for is unknown.
    NoCpus,
    /// A number that no job can have.
    OutOfRange {
        /// What it is of.
        what: &'static str,
    },
    /// A job of a universe that no slot is matched for.
    Universe {
        /// HTCondor's number of the universe.
        number: i64,
    },
    /// An ad about something else than a whole job: a run of the epoch history, a transfer.
    NotAJob {
        /// What the banner calls it.
        banner: String,
    },
    /// An ad in which an attribute that is needed cannot be read.
    Unreadable(ParseError),
    /// An ad of more than a mebibyte.
    TooLong,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields { found } => write!(f, "has {found} fields, not 18"),
            Self::NotANumber { field } => write!(f, "field {field} is no number"),
            Self::PartOf { job, line } => write!(f, "is a part of job {job}, which line {line} sums up"),
            Self::Again { line } => write!(f, "is the job of line {line} again"),
            Self::NoSubmission => f.write_str("does not say when it was submitted"),
            Self::NoRunTime => f.write_str("does not say how long it ran"),
            Self::NeverRan => f.write_str("never ran"),
            Self::NoCpus => f.write_str("does not say how many CPUs it asked for"),
            Self::OutOfRange { what } => write!(f, "{what} is out of range"),
            Self::Universe { number } => {
                write!(f, "is of universe {number}, whose jobs are not matched with one slot each")
            }
            Self::NotAJob { banner } => write!(f, "is no job but {banner}: give the job history"),
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::TooLong => f.write_str("is longer than 1 MiB"),
        }
    }
}

/// What was skipped for one reason: how much, and the first of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason<'a> {
    /// How many lines or ads.
    pub count: usize,
    /// The first.
    pub first: &'a Skipped,
}

impl Trace {
    /// What was skipped by reasons, the most frequent first.
    pub fn reasons(&self) -> Vec<Reason<'_>> {
        let mut reasons: Vec<Reason<'_>> = Vec::new();
        for skipped in &self.skipped {
            let same =
                |reason: &&mut Reason<'_>| discriminant(&reason.first.why) == discriminant(&skipped.why);
            match reasons.iter_mut().find(same) {
                Some(reason) => reason.count += 1,
                None => reasons.push(Reason { count: 1, first: skipped }),
            }
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        reasons
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}", self.first),
            count => write!(f, "{} (and {} more like it)", self.first, count - 1),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}
