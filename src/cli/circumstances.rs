//! What expressions are evaluated in, as command lines say it.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use classad::Env;

/// The time and chance.
#[derive(Clone, Copy, Debug, Args)]
pub struct Circumstances {
    /// The current time, in seconds since 1970 [default: the clock's]
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
    /// Where random numbers in expressions start [default: 0]
    // No default of clap's: it would stand above what an earlier part of the command line says.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Circumstances {
    /// The environment of evaluation.
    pub fn env(&self) -> Env {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = self.now.unwrap_or_else(|| i64::try_from(clock()).unwrap_or(i64::MAX));
        Env { seed: self.seed.unwrap_or(0), ..Env::at(now) }
    }
}
