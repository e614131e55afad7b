//! The facts that an evaluation may know of the world, and the bounds of its cost.

use std::fmt;

use super::user_maps::Maps;

/// The environment of an evaluation: the time, the time zone, the seed of random numbers, and bounds on the cost.
/// Equal environments give equal answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// The time, in seconds since 1970-01-01T00:00:00Z: what `time()` answers.
    pub now: i64,
    /// The local time zone, in seconds east of Greenwich.
    pub utc_offset: i32,
    /// The seed of `random()`. Every evaluation with the same seed draws the same numbers.
    pub seed: u64,
    /// The bounds of an evaluation.
    pub limits: Limits,
    /// The maps that `userMap()` reads.
    pub maps: Maps,
}

/// Bounds on one evaluation. An evaluation that reaches a bound is `error` as a whole, and
/// [`Evaluation::bound`](super::Evaluation::bound) says which bound it was.
///
/// The defaults are 200,000 steps, 400 levels, strings of 1 MiB and lists of 100,000 elements.
///
/// **Steps stand for time.** An evaluation pays for work before the work is done: for each node, each element of a list,
/// each 16 bytes that are compared and each 32 that are copied, and for regular expressions the bytes of the text times
/// the size of the compiled pattern. A step takes at most about 25 ns of a processor of 2023, so that an evaluation with
/// the default limits takes at most about 5 ms; `cargo bench -p slotwright-classad --bench bounds` measures this with the
/// expressions that are known to cost most. There is no deadline instead: the same input would sometimes be answered and
/// sometimes not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps: what is paid for the work that an evaluation does.
    pub steps: u32,
    /// Nested evaluations. HTCondor's own bound is about the same. A larger value may overflow the stack: the default
    /// fits a thread of 2 MiB in a build without optimization.
    pub depth: u16,
    /// Bytes in one string.
    pub string: usize,
    /// Elements in one list.
    pub list: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 200_000, depth: 400, string: 1 << 20, list: 100_000 }
    }
}

/// One of the bounds of [`Limits`]. It prints as what the evaluation did, such as `the evaluation takes too many
/// steps`.
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
    /// UTC at this time (seconds since 1970-01-01T00:00:00Z), with seed 0, the default limits and no maps.
    pub fn at(now: i64) -> Self {
        Self { now, utc_offset: 0, seed: 0, limits: Limits::default(), maps: Maps::default() }
    }
}
