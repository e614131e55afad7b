//! The options that set the time and the random seed of evaluations.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use classad::Env;

/// The time and the random seed of evaluations.
#[derive(Clone, Copy, Debug, Args)]
pub struct Circumstances {
    /// The current time, in seconds since 1970 [default: the clock's]
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
    /// The seed of random numbers in expressions [default: 0]
    // clap must not know the default: `classad eval` parses options in two passes, and a default of the second pass
    // would overwrite a value of the first.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Circumstances {
    /// The environment in which expressions are evaluated.
    pub fn env(&self) -> Env {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = self.now.unwrap_or_else(|| i64::try_from(clock()).unwrap_or(i64::MAX));
        Env { seed: self.seed.unwrap_or(0), ..Env::at(now) }
    }
}
