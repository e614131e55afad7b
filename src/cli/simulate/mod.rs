//! `slotwright simulate`: tries a policy on a workload in virtual time, with the operator's own deciders.
//!
//! | part | does |
//! | --- | --- |
//! | `file` | the scenario's file, as it is written |
//! | `amount` | reads spans, sizes and distributions |
//! | `manifests` | checks the scenario's objects as `lint` does, and reads them as the operator does |
//! | `machines`, `submitters` | read the machines with their owners, and the submitters |
//! | `read` | turns the file into a [`Scenario`], or says everything that is wrong with it |
//! | `traces` | reads submitters whose jobs are those of a trace |
//! | `output` | writes CSV files and plots, and prints the summary |
//! | `compare` | prints and plots what changes from one policy to another |

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

use clap::Args;

use super::print::{Format, json};
use super::stop::{DONE, NO, UNUSABLE};
use model::pool::units::counted;
use sim::compare::Comparison;
use sim::{Refused, Report, Scenario, simulate};

/// Try a policy on a workload in virtual time.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit status: 0 done, 1 workloads that differ or jobs that were refused, 2 a scenario that cannot be used."
)]
pub struct SimulateArgs {
    /// The file of the scenario: machines, manifests, submitters
    #[arg(value_name = "SCENARIO.yaml")]
    scenario: PathBuf,
    /// The file of another scenario with the same workload; print what changes from it to the first
    #[arg(long, value_name = "OTHER.yaml")]
    against: Option<PathBuf>,
    /// How much time to simulate, such as 30d [default: the scenario's length]
    #[arg(long, value_name = "T", value_parser = amount::seconds)]
    until: Option<f64>,
    /// The seed of random numbers [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write tables as CSV, plots as SVG, and the summary to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How the summary is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Runs the command, and returns the exit status.
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
    /// The scenario of a file, with the changes of the command line; `None` if it cannot be used, which `err`
    /// explains.
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
        Ok(tell_refused(&report, err)?.max(tell_unfit(&report, err)?))
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
        let mut told = DONE;
        for report in [&this, &against] {
            told = told.max(tell_refused(report, err)?).max(tell_unfit(report, err)?);
        }
        let Some(difference) = &comparison.differs else { return Ok(told) };
        writeln!(err, "slotwright: the workloads differ, not the policies alone: {difference}")?;
        Ok(NO)
    }
}

/// Warns of refused jobs: the report then covers less than the scenario says. Returns the exit status.
fn tell_refused(report: &Report, err: &mut dyn Write) -> io::Result<u8> {
    let Some(Refused { jobs, first }) = &report.refused else { return Ok(DONE) };
    writeln!(
        err,
        "slotwright: {}: {jobs} jobs were refused and are not counted; the first is {first}",
        report.name
    )?;
    Ok(NO)
}

/// Warns of machines that cannot be divided as their policies say: they are not as the scenario means them. Returns the exit
/// status.
fn tell_unfit(report: &Report, err: &mut dyn Write) -> io::Result<u8> {
    let Some(first) = report.unfit.first() else { return Ok(DONE) };
    let machines = counted(u64::try_from(report.unfit.len()).unwrap_or(u64::MAX), "machine");
    writeln!(
        err,
        "slotwright: {}: {machines} cannot be divided as the policy says; the first is {first}",
        report.name
    )?;
    Ok(NO)
}

/// Simulates both scenarios, each in a thread of its own.
fn both(this: &Scenario, against: &Scenario) -> (Report, Report) {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| simulate(against, &mut |_| true));
        let report = simulate(this, &mut |_| true);
        // A panic of the other thread goes on here.
        (report, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
