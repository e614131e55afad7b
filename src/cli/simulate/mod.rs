//! `slotwright simulate`: a policy tried on a workload, in virtual time, by the operator's own logic.
//!
//! | part | does |
//! | --- | --- |
//! | `file` | the scenario as it is written |
//! | `amount` | spans, sizes and distributions in it |
//! | `manifests` | the objects in it, checked and read as everywhere else |
//! | `read` | from the file to a [`Scenario`], or to everything that is wrong with it |
//! | `output` | CSV files, and the summary for people |

mod amount;
mod file;
mod manifests;
mod output;
mod read;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::sim::{Scenario, simulate};

/// Everything was done.
const DONE: u8 = 0;
/// The scenario cannot be used.
const UNUSABLE: u8 = 2;

/// Try a policy on a workload in virtual time.
#[derive(Args, Debug)]
#[command(after_help = "Exit status: 0 done, 2 a scenario that cannot be used.")]
pub struct SimulateArgs {
    /// The scenario: machines, manifests, submitters
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// For how long, such as 30d; as the scenario says where unset
    #[arg(long, value_name = "T", value_parser = amount::seconds)]
    until: Option<f64>,
    /// Where chance starts; as the scenario says where unset
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write tables as CSV, and the summary, to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How the summary is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// How the summary is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Runs the command; the answer is the exit status.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &SimulateArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let scenario = match read::scenario(&args.scenario) {
        Ok(scenario) => args.apply(scenario),
        Err(problems) => {
            for problem in problems.to_string().lines() {
                writeln!(err, "slotwright: {problem}")?;
            }
            return Ok(UNUSABLE);
        }
    };
    let report = simulate(&scenario, &mut |_| true);
    if let Some(directory) = &args.out {
        output::write_files(&report, directory)?;
    }
    match args.output {
        Format::Text => output::text(&report, out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &report.summary)?;
            writeln!(out)?;
        }
    }
    Ok(DONE)
}

impl SimulateArgs {
    fn apply(&self, mut scenario: Scenario) -> Scenario {
        if let Some(seconds) = self.until {
            scenario.length = crate::sim::span(seconds);
        }
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        scenario
    }
}
