//! `slotwright simulate`: a policy tried on a workload, in virtual time, by the operator's own logic.
//!
//! | part | does |
//! | --- | --- |
//! | `file` | the scenario as it is written |
//! | `amount` | spans, sizes and distributions in it |
//! | `manifests` | the objects in it, checked and read as everywhere else |
//! | `machines`, `submitters` | what they are and do |
//! | `read` | from the file to a [`Scenario`], or to everything that is wrong with it |
//! | `traces` | jobs as they were submitted elsewhere |
//! | `output` | CSV files, plots, and the summary for people |
//! | `compare` | the same of two policies, and what changes from one to the other |

mod amount;
mod compare;
mod file;
mod machines;
mod manifests;
mod output;
mod read;
mod submitters;
mod traces;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::print::json;
use super::stop::{DONE, NO, UNUSABLE};
use sim::compare::Comparison;
use sim::{Refused, Report, Scenario, simulate};

/// Try a policy on a workload in virtual time.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit status: 0 done, 1 workloads that differ or jobs that were refused, 2 a scenario that cannot be used."
)]
pub struct SimulateArgs {
    /// The scenario: machines, manifests, submitters
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// Another scenario: what changes from it to the first, over the same workload
    #[arg(long, value_name = "OTHER.yaml")]
    against: Option<PathBuf>,
    /// For how long, such as 30d; as the scenario says where unset
    #[arg(long, value_name = "T", value_parser = amount::seconds)]
    until: Option<f64>,
    /// Where chance starts; as the scenario says where unset
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write tables as CSV, plots as SVG, and the summary, to this directory
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
    let Some(scenario) = args.read(&args.scenario, err)? else { return Ok(UNUSABLE) };
    match &args.against {
        None => args.one(&scenario, out, err),
        Some(path) => match args.read(path, err)? {
            Some(against) => args.two(scenario, against, out, err),
            None => Ok(UNUSABLE),
        },
    }
}

impl SimulateArgs {
    /// The scenario of a file as the command line changes it; none where it cannot be used.
    fn read(&self, path: &Path, err: &mut dyn Write) -> io::Result<Option<Scenario>> {
        let (mut scenario, notes) = match read::scenario(path) {
            Ok(read) => read,
            Err(problems) => {
                problems.tell(err)?;
                return Ok(None);
            }
        };
        for note in notes {
            writeln!(err, "slotwright: {note}")?;
        }
        if let Some(seconds) = self.until {
            scenario.length = sim::span(seconds);
        }
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        Ok(Some(scenario))
    }

    fn one(&self, scenario: &Scenario, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
        let report = simulate(scenario, &mut |_| true);
        if let Some(directory) = &self.out {
            output::write_files(&report, directory)?;
        }
        match self.output {
            Format::Text => output::text(&report, out)?,
            Format::Json => json(&report.summary, out)?,
        }
        tell_refused(&report, err)
    }

    fn two(
        &self,
        mut this: Scenario,
        mut against: Scenario,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<u8> {
        if this.name == against.name {
            "this".clone_into(&mut this.name);
            "against".clone_into(&mut against.name);
        }
        let (this, against) = both(&this, &against);
        let comparison = Comparison::new(&this, &against);
        if let Some(directory) = &self.out {
            output::write_files(&this, directory)?;
            output::write_files(&against, &directory.join("against"))?;
            compare::write_files(&comparison, directory)?;
        }
        match self.output {
            Format::Text => {
                output::text(&this, out)?;
                writeln!(out)?;
                output::text(&against, out)?;
                compare::text(&comparison, out)?;
            }
            Format::Json => {
                let answer = serde_json::json!({
                    "this": this.summary,
                    "against": against.summary,
                    "comparison": comparison,
                });
                json(&answer, out)?;
            }
        }
        let refused = tell_refused(&this, err)?.max(tell_refused(&against, err)?);
        let Some(difference) = &comparison.differs else { return Ok(refused) };
        writeln!(err, "slotwright: the workloads differ, not the policies alone: {difference}")?;
        Ok(NO)
    }
}

/// Tells of jobs that nobody took: what is reported is then less than what the scenario says. The answer is the exit status.
fn tell_refused(report: &Report, err: &mut dyn Write) -> io::Result<u8> {
    let Some(Refused { jobs, first }) = &report.refused else { return Ok(DONE) };
    writeln!(
        err,
        "slotwright: {}: {jobs} jobs were refused and are not counted; the first is {first}",
        report.name
    )?;
    Ok(NO)
}

/// Both reports, each simulated in a thread of its own: they know nothing of each other.
fn both(this: &Scenario, against: &Scenario) -> (Report, Report) {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| simulate(against, &mut |_| true));
        let report = simulate(this, &mut |_| true);
        // It panics only where the other one would have.
        (report, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
