//! Lines and ads of a trace that were not used, and why.

use std::fmt;
use std::mem::discriminant;

use super::Trace;
use classad::ParseError;

/// A line that was not used, or the first line of an ad that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The line, from 1.
    pub line: usize,
    /// Why the line or the ad was not used.
    pub why: Why,
}

/// Why a line or an ad of a trace was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The line does not have the 18 fields of the Standard Workload Format.
    Fields {
        /// How many fields the line has.
        found: usize,
    },
    /// A field is not a number.
    NotANumber {
        /// The field, from 1.
        field: usize,
    },
    /// The line is about one run of a job, and another line sums up the job.
    PartOf {
        /// The job's number.
        job: i64,
        /// The line that sums up the job, from 1.
        line: usize,
    },
    /// The job was read before.
    Again {
        /// The line where it was read, from 1.
        line: usize,
    },
    /// The job has no time of submission, as a job of a workload model that follows another job.
    NoSubmission,
    /// The job's run time is unknown, for example because it had not ended yet.
    NoRunTime,
    /// The job was canceled or removed before it ran.
    NeverRan,
    /// The number of CPUs that the job asked for is unknown.
    NoCpus,
    /// A number is too large for any job.
    OutOfRange {
        /// The quantity that the number measures.
        what: &'static str,
    },
    /// The job is of a universe whose jobs are not matched with one slot each.
    Universe {
        /// HTCondor's number of the universe.
        number: i64,
    },
    /// The ad is not about a whole job, but about a run (the epoch history) or a transfer.
    NotAJob {
        /// The kind of the ad, as its banner calls it.
        banner: String,
    },
    /// The ad has a needed attribute that cannot be parsed.
    Unreadable(ParseError),
    /// The ad is longer than a mebibyte.
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

/// The lines and ads that were skipped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason<'a> {
    /// How many lines or ads were skipped.
    pub count: usize,
    /// The first of them.
    pub first: &'a Skipped,
}

impl Trace {
    /// The skipped lines and ads by reason, the most frequent reason first.
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
