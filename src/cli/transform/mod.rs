//! `slotwright transform`: what job transforms and submit requirements make of job ads, without a cluster.
//!
//! | part | is |
//! | --- | --- |
//! | `manifest` | the job ads of HTCJob manifests |

mod manifest;

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::ads::{Ads, LocatedAd};
use crate::circumstances::Circumstances;
use crate::input;
use crate::policy_file;
use crate::stop::{DONE, NO, Stop, status, unusable};
use classad::{Ad, Env, Maps};
use condor_config::user_map;
use condor_config::{Diagnostic, FileError, Host, Reader, Severity, Source};
use transform::{Applied, Requirements, RulesFile, Transforms, Unmet};

/// Apply job transforms and submit requirements to job ads.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 done, 1 a job is refused or its transform fails, 2 unusable input.")]
pub struct TransformArgs {
    /// HTCondor configuration with JOB_TRANSFORM_* and SUBMIT_REQUIREMENT_*, or the manifest of a SubmitPolicy; several
    /// files are read in order, as if they were one; without a policy the ads are printed as they are
    #[arg(short = 'f', long = "file", value_name = "POLICY")]
    policy: Vec<PathBuf>,
    /// The rules of one transform, as condor_transform_ads takes them, instead of a configuration
    #[arg(short, long, value_name = "RULES", conflicts_with = "policy")]
    rules: Option<PathBuf>,
    /// The ad of the schedd, which is MY in submit requirements
    #[arg(long, value_name = "FILE", conflicts_with = "rules")]
    schedd: Option<PathBuf>,
    #[command(flatten)]
    circumstances: Circumstances,
    /// Job ads in either syntax, or HTCJob manifests (.yaml, .yml, .json); - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    jobs: Vec<PathBuf>,
}

/// Runs the command. Returns the exit status: 0 done, 1 a job is refused or its transform fails, 2 unusable input, which
/// `stderr` explains with file, line and column. Fails if the output cannot be written.
pub fn run(
    args: &TransformArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    let outcome = match &args.rules {
        Some(rules) => with_rules(args, rules, stdin, stdout, stderr),
        None => with_policy(args, stdin, stdout, stderr),
    };
    status("transform", outcome, stderr)
}

/// A job, and where it comes from: `jobs.ads, line 7`.
struct Job {
    ad: Ad,
    place: String,
}

fn with_policy(
    args: &TransformArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut env = args.circumstances.env();
    let policy = |path: &PathBuf| {
        policy_file::source(path.display().to_string(), text(path, stdin)?, Some("SubmitPolicy"))
    };
    let sources: Vec<Source> = args.policy.iter().map(policy).collect::<Result<_, Stop>>()?;
    let reading = Reader::new(host(&env)).subsystem("SCHEDD").read(&sources);
    let (config, mut findings) = (Arc::new(reading.config), reading.diagnostics);
    let transforms = Transforms::of(Arc::clone(&config), &mut findings);
    let requirements = Requirements::of(&config, &mut findings);
    env.maps = Maps::new(Arc::new(user_map::Maps::read(&config, &mut findings)));
    tell(&findings, stderr)?;
    let schedd = args.schedd.as_deref().map(|path| one_ad(path, stdin)).transpose()?.unwrap_or_default();
    let mut worst = DONE;
    each_job(args, stdin, |job| {
        let applied = match transforms.apply(job.ad, &env) {
            Ok(applied) => applied,
            Err(error) => {
                worst = NO;
                return Ok(failed(&job.place, &error, stderr)?);
            }
        };
        warn(&applied, stderr)?;
        let verdict = requirements.check(&schedd, &applied.ad, &env);
        for Unmet { name, reason } in &verdict.warnings {
            writeln!(
                stderr,
                "slotwright transform: {}: warning of the submit requirement {name}",
                job.place
            )?;
            writeln!(stderr, "WARNING: {reason}")?;
        }
        if let Some(Unmet { name, reason }) = &verdict.refused {
            worst = NO;
            writeln!(
                stderr,
                "slotwright transform: {}: refused by the submit requirement {name}",
                job.place
            )?;
            writeln!(stderr, "ERROR: {reason}")?;
            return Ok(());
        }
        Ok(print(&applied.ad, stdout)?)
    })?;
    Ok(worst)
}

fn with_rules(
    args: &TransformArgs,
    path: &Path,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let (env, mut findings) = (args.circumstances.env(), Vec::new());
    let files = |path: &str| {
        fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::Missing,
            io::ErrorKind::IsADirectory => FileError::Directory,
            _ => FileError::Unreadable(error.to_string()),
        })
    };
    let source = Source::new(path.display().to_string(), text(path, stdin)?);
    let rules = RulesFile::read(&source, host(&env), Some(&files), &mut findings);
    tell(&findings, stderr)?;
    let mut worst = DONE;
    each_job(args, stdin, |job| {
        let (done, error) = match rules.apply(&job.ad, &env) {
            Ok(done) => (done, None),
            Err((done, error)) => (done, Some(error)),
        };
        for applied in &done {
            warn(applied, stderr)?;
            print(&applied.ad, stdout)?;
        }
        if let Some(error) = error {
            worst = NO;
            failed(&job.place, &error, stderr)?;
        }
        Ok(())
    })?;
    Ok(worst)
}

/// The facts about the machine that the rules may know: the time, and random numbers from the seed.
fn host(env: &Env) -> Host {
    Host { seed: Some(env.seed), now: env.now, ..Host::none() }
}

fn text(path: &Path, stdin: &mut dyn BufRead) -> Result<String, Stop> {
    input::text(path, stdin).map_err(|error| unusable(path.display(), error))
}

fn one_ad(path: &Path, stdin: &mut dyn BufRead) -> Result<Ad, Stop> {
    Ad::parse_any(&text(path, stdin)?).map_err(|error| unusable(path.display(), error))
}

/// Calls `each` with every job of the files.
fn each_job(
    args: &TransformArgs,
    stdin: &mut dyn BufRead,
    mut each: impl FnMut(Job) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for path in &args.jobs {
        let shown = path.display().to_string();
        if is_manifest(path) {
            for ad in manifest::jobs(&shown, text(path, stdin)?, args.circumstances.env().now)? {
                each(Job { ad, place: shown.clone() })?;
            }
            continue;
        }
        let mut ads = Ads::open(path, stdin)?;
        while let Some(LocatedAd { ad, line }) = ads.next_ad()? {
            each(Job { ad, place: format!("{shown}, line {line}") })?;
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// Prints what is wrong with the policy or the rules.
///
/// # Errors
/// When there are errors, which make the policy unusable.
fn tell(findings: &[Diagnostic], stderr: &mut dyn Write) -> Result<(), Stop> {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        findings.iter().partition(|finding| finding.severity == Severity::Error);
    for finding in warnings {
        writeln!(stderr, "slotwright transform: {finding}")?;
    }
    if errors.is_empty() {
        return Ok(());
    }
    let errors: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.position, error.message)).collect();
    Err(Stop::Unusable(errors.join("\nslotwright transform: ")))
}

fn warn(applied: &Applied, stderr: &mut dyn Write) -> io::Result<()> {
    applied.warnings.iter().try_for_each(|warning| writeln!(stderr, "slotwright transform: {warning}"))
}

fn failed(place: &str, error: &Diagnostic, stderr: &mut dyn Write) -> io::Result<()> {
    writeln!(
        stderr,
        "slotwright transform: {place}: the transform fails: {}: {}",
        error.position, error.message
    )
}

fn print(ad: &Ad, stdout: &mut dyn Write) -> io::Result<()> {
    writeln!(stdout, "{}", ad.to_long())
}

#[cfg(test)]
mod tests;
