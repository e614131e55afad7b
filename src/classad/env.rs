//! What an evaluation may know of the world, and how much it may cost.

use std::fmt;

/// The circumstances of an evaluation: the time, the time zone, randomness, and the bounds that keep a
/// hostile expression from costing more than a little. Equal circumstances give equal answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// The time, in seconds since 1970-01-01T00:00:00Z: what `time()` answers.
    pub now: i64,
    /// The local time zone, in seconds east of Greenwich.
    pub utc_offset: i32,
    /// Where `random()` starts. Every evaluation with the same seed draws the same numbers.
    pub seed: u64,
    /// What an evaluation may cost.
    pub limits: Limits,
}

/// Bounds on one evaluation. Reaching one makes the whole result `error`, and the
/// [`Evaluation`](super::Evaluation) says which it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes visited, list elements touched and 64-byte pieces of text made.
    pub steps: u32,
    /// Evaluations within evaluations. HTCondor's own bound is about the same. What is safe depends on the
    /// stack: the default fits a thread of 2 MiB in a build without optimization.
    pub depth: u16,
    /// Bytes of one string.
    pub string: usize,
    /// Elements of one list.
    pub list: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 200_000, depth: 400, string: 1 << 20, list: 100_000 }
    }
}

/// A bound of [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::string`].
    StringSize,
    /// [`Limits::list`].
    ListSize,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "the evaluation takes too many steps",
            Self::Depth => "the evaluation nests too deeply",
            Self::StringSize => "the evaluation makes too long a string",
            Self::ListSize => "the evaluation makes too long a list",
        })
    }
}

impl Env {
    /// UTC at this time (seconds since 1970), seed 0, default limits.
    pub fn at(now: i64) -> Self {
        Self { now, utc_offset: 0, seed: 0, limits: Limits::default() }
    }
}
