//! `slotwright config value`, `dump` and `manifests`: print what a configuration says, without a cluster.

mod manifests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

use super::input;
use super::policy_file;
use super::stop::{DONE, NO, Stop, UNUSABLE, status, unusable};
use condor_config::{Config, FileError, Host, Origin, Reader, Reading, Severity, Source};
use manifests::ManifestsArgs;

/// Read HTCondor configuration.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the expanded value of each name, a line for each, or say that the name is not defined
    Value(ValueArgs),
    /// Print all names, with their values as they are written
    Dump(DumpArgs),
    /// Print the Slotwright objects that stand for the files of a pool, as YAML
    Manifests(ManifestsArgs),
}

/// Which files to read, and what they may ask of this machine.
#[derive(Debug, Args)]
struct Texts {
    /// A file to read, or a manifest, of which spec.config is read; several are read in order, as if they were one; - is standard input
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Predefine a macro, such as DETECTED_CPUS=64
    #[arg(long, value_name = "NAME=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Let the configuration include files of this machine, and read the files of its user maps; its commands are never run
    #[arg(long)]
    allow_files: bool,
    /// Let the configuration read the environment with $ENV()
    #[arg(long)]
    allow_env: bool,
    /// Let the configuration draw random numbers, from this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Which files to read, and as which daemon.
#[derive(Debug, Args)]
struct Input {
    #[command(flatten)]
    texts: Texts,
    /// The daemon to read for: a value of DAEMON.NAME overrides that of NAME. If a file has several manifests, spec.config of the one
    /// for the daemon is read: NodePolicy for STARTD, SubmitPolicy for SCHEDD, Negotiator for NEGOTIATOR
    #[arg(long, value_name = "DAEMON", default_value = "TOOL")]
    subsystem: String,
    /// The local name to read for: a value of LOCALNAME.NAME overrides that of NAME
    #[arg(long, value_name = "NAME")]
    local_name: Option<String>,
}

#[derive(Debug, Args)]
struct ValueArgs {
    #[command(flatten)]
    input: Input,
    /// Print the values for the slot of this number
    #[arg(long, value_name = "N")]
    slot: Option<u32>,
    /// Print values as they are written
    #[arg(long)]
    raw: bool,
    /// The names to look up
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Debug, Args)]
struct DumpArgs {
    #[command(flatten)]
    input: Input,
    /// Print expanded values
    #[arg(long)]
    expanded: bool,
    /// Print only what the files set, without HTCondor's defaults
    #[arg(long)]
    set: bool,
}

fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Runs the command. Returns the exit status: 0 done, 1 a name is not defined, 2 unusable input, which `stderr`
/// explains with file, line and column. Fails if the output cannot be written.
pub fn run(
    args: &ConfigArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    let outcome = match &args.command {
        Command::Value(args) => value(args, stdin, stdout, stderr),
        Command::Dump(args) => dump(args, stdin, stdout, stderr),
        Command::Manifests(args) => manifests::print(args, stdin, stdout, stderr),
    };
    status("config", outcome, stderr)
}

impl Texts {
    fn host(&self) -> Host {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let environment = || -> BTreeMap<String, String> {
            let pairs = env::vars_os().map(|(name, value)| (name.into_string(), value.into_string()));
            pairs.filter_map(|(name, value)| Some((name.ok()?, value.ok()?))).collect()
        };
        Host {
            predefined: self.define.clone(),
            environment: self.allow_env.then(environment),
            seed: self.seed,
            now: i64::try_from(now).unwrap_or(i64::MAX),
        }
    }

    /// The texts of the files. `kind` is the kind of objects whose texts are read, if a file has manifests of several kinds.
    fn sources(&self, stdin: &mut dyn BufRead, kind: Option<&str>) -> Result<Vec<Source>, Stop> {
        let mut sources = Vec::new();
        for path in &self.files {
            let text = input::text(path, stdin).map_err(|error| unusable(path.display(), error))?;
            sources.push(policy_file::source(path.display().to_string(), text, kind)?);
        }
        Ok(sources)
    }

    /// The text of a file of this machine, if the configuration may have it.
    fn file(&self, path: &str) -> Result<String, FileError> {
        if !self.allow_files {
            return Err(FileError::Refused("; or allow it with --allow-files"));
        }
        fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::Missing,
            io::ErrorKind::IsADirectory => FileError::Directory,
            _ => FileError::Unreadable(error.to_string()),
        })
    }

    /// Reads texts as one daemon. Reading stops at the first error, as HTCondor's does.
    fn read_as(&self, sources: &[Source], subsystem: &str, local_name: Option<&str>) -> Reading {
        let files = |path: &str| self.file(path);
        let reader = Reader::new(self.host())
            .subsystem(subsystem)
            .local_name(local_name.map(str::to_owned))
            .files(&files)
            .first_error_only();
        reader.read(sources)
    }
}

impl Input {
    /// Reads the files. Warnings go to `stderr`.
    fn read(&self, stdin: &mut dyn BufRead, stderr: &mut dyn Write) -> Result<Config, Stop> {
        let sources = self.texts.sources(stdin, policy_file::kind_of(&self.subsystem))?;
        configuration(self.texts.read_as(&sources, &self.subsystem, self.local_name.as_deref()), stderr)
    }
}

/// The configuration that was read, if nothing in it is an error. Warnings go to `stderr`.
fn configuration(reading: Reading, stderr: &mut dyn Write) -> Result<Config, Stop> {
    for finding in &reading.diagnostics {
        if finding.severity == Severity::Warning {
            writeln!(stderr, "slotwright config: {finding}")?;
        }
    }
    reading.into_config().map_err(|error| Stop::Unusable(error.to_string()))
}

fn value(
    args: &ValueArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let config = args.input.read(stdin, stderr)?;
    let mut status = DONE;
    for name in &args.names {
        let value = match args.slot {
            Some(slot) if args.raw => config.slot_raw(slot, name).map(|raw| raw.map(Cow::into_owned)),
            None if args.raw => Ok(config.raw(name).map(Cow::into_owned)),
            Some(slot) => {
                config.slot_text(slot, name).map(|text| text.map(|text| text.as_str().into_owned()))
            }
            None => config.value(name),
        };
        match value {
            Ok(Some(value)) => writeln!(stdout, "{value}")?,
            Ok(None) => {
                writeln!(stderr, "Not defined: {name}")?;
                status = status.max(NO);
            }
            Err(error) => {
                writeln!(stderr, "slotwright config: {name}: {error}")?;
                status = UNUSABLE;
            }
        }
    }
    Ok(status)
}

fn dump(
    args: &DumpArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let config = args.input.read(stdin, stderr)?;
    let mut status = DONE;
    for name in config.names() {
        // The value of exactly this name, even if a daemon's own value would override it.
        let definition = config.definition(name);
        if args.set && definition.is_none_or(|definition| definition.origin == Origin::Predefined) {
            continue;
        }
        let value = match definition {
            Some(definition) if args.expanded => config.value_of(definition),
            Some(definition) => Ok(definition.raw().into_owned()),
            None if args.expanded => config.value(name).map(Option::unwrap_or_default),
            None => Ok(config.raw(name).unwrap_or_default().into_owned()),
        };
        match value {
            Ok(value) if can_be_read(&value) => writeln!(stdout, "{}", assignment(name, &value))?,
            Ok(value) => {
                let message = "the value is printed as a comment, because a line of it ends in a backslash and would take in \
                               the next line: end the line otherwise";
                writeln!(stderr, "slotwright config: warning: {name}: {message}")?;
                writeln!(stdout, "# {}", assignment(name, &value).replace('\n', "\n# "))?;
            }
            Err(error) => {
                writeln!(stderr, "slotwright config: {name}: {error}")?;
                status = UNUSABLE;
            }
        }
    }
    Ok(status)
}

/// Whether a file can give a name this value and go on.
fn can_be_read(value: &str) -> bool {
    value.split('\n').all(|line| !line.trim_end().ends_with('\\'))
}

/// The lines of a file that give a name this value: several lines are a block, whose tag is none of them.
fn assignment(name: &str, value: &str) -> String {
    if !value.contains('\n') {
        return format!("{name} = {value}");
    }
    let mut tag = "end".to_owned();
    while value.split('\n').any(|line| line.trim().strip_prefix('@') == Some(&tag)) {
        tag.push('_');
    }
    format!("{name} @={tag}\n{value}\n@{tag}")
}
