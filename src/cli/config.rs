//! `slotwright config value` and `slotwright config dump`: print what a configuration says, without a cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

use super::policy_file;
use super::stop::{DONE, NO, Stop, UNUSABLE, status};
use condor_config::{Config, FileError, Host, Origin, Reader, Severity, Source};

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
}

/// Which files to read, and as which daemon.
#[derive(Debug, Args)]
struct Input {
    /// A file to read, or a manifest, of which spec.config is read; several are read in order, as if they were one; - is standard input
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The daemon to read for: a value of DAEMON.NAME overrides that of NAME
    #[arg(long, value_name = "DAEMON", default_value = "TOOL")]
    subsystem: String,
    /// The local name to read for: a value of LOCALNAME.NAME overrides that of NAME
    #[arg(long, value_name = "NAME")]
    local_name: Option<String>,
    /// Predefine a macro, such as DETECTED_CPUS=64
    #[arg(long, value_name = "NAME=VALUE", value_parser = definition)]
    define: Vec<(String, String)>,
    /// Let the configuration include files of this machine; its commands are never run
    #[arg(long)]
    allow_files: bool,
    /// Let the configuration read the environment with $ENV()
    #[arg(long)]
    allow_env: bool,
    /// Let the configuration draw random numbers, from this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
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
    };
    status("config", outcome, stderr)
}

impl Input {
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

    fn sources(&self, stdin: &mut dyn BufRead) -> Result<Vec<Source>, Stop> {
        let mut sources = Vec::new();
        for path in &self.files {
            let mut text = String::new();
            let read = if path == Path::new("-") {
                stdin.read_to_string(&mut text).map(drop)
            } else {
                fs::read_to_string(path).map(|content| text = content)
            };
            read.map_err(|error| Stop::Unusable(format!("{}: {error}", path.display())))?;
            sources.push(policy_file::source(path.display().to_string(), text)?);
        }
        Ok(sources)
    }

    /// Reads the files. Warnings go to `stderr`. Reading stops at the first error, as HTCondor's does.
    fn read(&self, stdin: &mut dyn BufRead, stderr: &mut dyn Write) -> Result<Config, Stop> {
        let sources = self.sources(stdin)?;
        let files = |path: &str| {
            if !self.allow_files {
                return Err(FileError::Refused("; or allow it with --allow-files"));
            }
            fs::read_to_string(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => FileError::Missing,
                _ => FileError::Unreadable(error.to_string()),
            })
        };
        let reader = Reader::new(self.host())
            .subsystem(&self.subsystem)
            .local_name(self.local_name.clone())
            .files(&files)
            .first_error_only();
        let reading = reader.read(&sources);
        for finding in &reading.diagnostics {
            if finding.severity == Severity::Warning {
                writeln!(stderr, "slotwright config: {finding}")?;
            }
        }
        reading.into_config().map_err(|error| Stop::Unusable(error.to_string()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
        crate::outcome::outcome("config", args, input, run)
    }

    #[track_caller]
    fn prints(args: &[&str], input: &str, expected: &str) {
        assert_eq!(outcome(args, input), (DONE, expected.to_owned(), String::new()));
    }

    #[test]
    fn values_are_printed_a_line_each() {
        prints(&["value", "-f", "-", "A", "b"], "A = $(B)x\nB = 1\n", "1x\n1\n");
        prints(&["value", "-f", "-", "--raw", "A"], "A = $(B)x\n", "$(B)x\n");
        prints(&["value", "SLOT_WEIGHT"], "", "Cpus\n");
        let undefined = outcome(&["value", "-f", "-", "A", "NOPE"], "A = 1\n");
        assert_eq!(undefined, (NO, "1\n".to_owned(), "Not defined: NOPE\n".to_owned()));
    }

    #[test]
    fn daemons_and_slots_see_their_own() {
        let text = "A = 1\nSTARTD.A = 2\nLN.A = 3\nSLOT1_A = 4\n";
        prints(&["value", "-f", "-", "A"], text, "1\n");
        prints(&["value", "-f", "-", "--subsystem", "STARTD", "A"], text, "2\n");
        prints(&["value", "-f", "-", "--local-name", "LN", "A"], text, "3\n");
        prints(&["value", "-f", "-", "--slot", "1", "A"], text, "4\n");
        prints(&["value", "-f", "-", "--slot", "2", "A"], text, "1\n");
    }

    /// If a value has nothing to expand, `--raw` prints the same for a slot as the expanded value.
    #[test]
    fn what_a_slot_sees_can_be_told_as_it_is_written() {
        let text = "A = $(B)\nB = b\nSTARTD.A = 2\nLN.A = 3\nLN.LN.A = 4\nSLOT1_A = 5\nSTARTD.SLOT3_A = 6\nSLOT_TYPE_1_A = 7\n\
                    NUM_SLOTS_TYPE_1 = 2\nSLOT1_START = no\nSLOT_TYPE_1_START = $(B) > 1\nSTART = true\nSLOT2_C = x\nC = y\n\
                    SLOT_TYPE_1_D =\nD = z\n";
        let raw = |more: &[&str], name: &str, text: &str| {
            outcome(&[&["value", "-f", "-", "--raw"], more, &[name]].concat(), text)
        };
        prints(&["value", "-f", "-", "--slot", "1", "--raw", "START"], text, "$(B) > 1\n");
        prints(&["value", "-f", "-", "--slot", "9", "--raw", "A"], text, "$(B)\n");
        prints(&["value", "-f", "-", "--slot", "1", "--raw", "D"], text, "\n");
        let named = "STARTD_RESOURCE_PREFIX = unit\nunit1_A = $(B)\nSLOT1_A = 1\n";
        prints(&["value", "-f", "-", "--slot", "1", "--raw", "A"], named, "$(B)\n");
        assert_eq!(raw(&["--slot", "1"], "NOPE", text).0, NO);
        let plain = text.replace("$(B)", "b");
        for daemon in [&[][..], &["--subsystem", "STARTD"], &["--local-name", "LN"]] {
            for slot in ["1", "2", "3", "9"] {
                for name in ["A", "START", "C", "SLOT_WEIGHT"] {
                    let args = [&["value", "-f", "-", "--slot", slot], daemon, &[name]].concat();
                    let expanded = outcome(&args, &plain);
                    let written = raw(&[&["--slot", slot], daemon].concat(), name, &plain);
                    assert_eq!(written, expanded, "{daemon:?}, slot {slot}: {name}");
                }
            }
        }
    }

    #[test]
    fn files_are_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = directory.path().join(name).display().to_string();
            fs::write(&path, text).unwrap();
            path
        };
        let (one, two) = (path("one", "A = 1\n"), path("two", "A = $(A)2\n"));
        prints(&["value", "-f", &one, "-f", &two, "A"], "", "12\n");
        let include = format!("include : {one}\n");
        let refused = outcome(&["value", "-f", "-", "A"], &include);
        assert_eq!(refused.0, UNUSABLE);
        assert!(
            refused.2.contains("line 1, column 1") && refused.2.contains("--allow-files"),
            "{}",
            refused.2
        );
        prints(&["value", "-f", "-", "--allow-files", "A"], &include, "1\n");
        let missing = outcome(&["value", "-f", "/nope/nope", "A"], "");
        assert!(missing.0 == UNUSABLE && missing.2.contains("/nope/nope"), "{}", missing.2);
    }

    #[test]
    fn unusable_input_is_told_with_file_line_and_column() {
        let broken = outcome(&["value", "-f", "-", "A"], "A = 1\nword\nX-Y = 2\n");
        let message = "slotwright config: -, line 2, column 1: expected NAME = value: there is no operator\n";
        assert_eq!(broken, (UNUSABLE, String::new(), message.to_owned()));
        let cycle = outcome(&["value", "-f", "-", "C", "A"], "A = $(B)\nB = $(A)\nC = 1\n");
        assert_eq!((cycle.0, cycle.1.as_str()), (UNUSABLE, "1\n"));
        assert!(cycle.2.contains("A -> B -> A"), "{}", cycle.2);
        let warned = outcome(&["value", "-f", "-", "A"], "A : 1\n");
        assert_eq!((warned.0, warned.1.as_str()), (DONE, "1\n"));
        assert!(warned.2.contains("warning: -, line 1, column 1"), "{}", warned.2);
    }

    #[test]
    fn the_host_is_asked_where_it_is_allowed() {
        let text = "A = $RANDOM_INTEGER(3, 3)\nB = $(DETECTED_CPUS)\n";
        assert_eq!(outcome(&["value", "-f", "-", "A"], text).0, UNUSABLE);
        prints(
            &["value", "-f", "-", "--seed", "1", "--define", "DETECTED_CPUS=64", "A", "B"],
            text,
            "3\n64\n",
        );
        assert_eq!(outcome(&["value", "-f", "-", "A"], "A = $ENV(PATH)\n").0, UNUSABLE);
        assert_eq!(outcome(&["value", "-f", "-", "--allow-env", "A"], "A = $ENV(PATH)\n").0, DONE);
    }

    #[test]
    fn a_dump_has_all_that_is_defined() {
        let text = "B = $(A)\nA = 1\nSTART =\n";
        prints(&["dump", "-f", "-", "--set"], text, "A = 1\nB = $(A)\nSTART = \n");
        prints(&["dump", "-f", "-", "--set", "--expanded"], text, "A = 1\nB = 1\nSTART = \n");
        let (_, all, _) = outcome(&["dump", "-f", "-"], text);
        assert!(all.contains("\nB = $(A)\n") && all.contains("\nSLOT_WEIGHT = Cpus\n"), "{all}");
        assert!(all.contains("\nSTART = \n") && !all.contains("\nSTART = True\n"), "{all}");
    }

    #[test]
    fn a_dump_can_be_read_back() {
        let text = "A @=end\n  x = 1\n\n  # why\n  y @=z\n@end\nB @=other\n@end\n@end_\nif\n@other\nC @=end\none\n@end\n\
                    D = # 1\nE =\nuse POLICY : Hold_If_Memory_Exceeded\n";
        for args in [&["dump", "-f", "-", "--set"][..], &["dump", "-f", "-"]] {
            let (status, dumped, _) = outcome(args, text);
            assert_eq!(status, DONE);
            prints(args, &dumped, &dumped);
        }
        let dumped = "A @=end\nx = 1\ny @=z\n@end\nB @=end__\n@end\n@end_\nif\n@end__\nC = one\n";
        let (_, all, _) = outcome(&["dump", "-f", "-", "--set"], text);
        assert!(all.starts_with(dumped), "{all}");
        let last = outcome(&["dump", "-f", "-", "--set"], "B = 1\nA = x\\");
        let message = "slotwright config: warning: A: the value is printed as a comment, because a line of it ends in a \
                       backslash and would take in the next line: end the line otherwise\n";
        assert_eq!(last, (DONE, "# A = x\\\nB = 1\n".to_owned(), message.to_owned()));
    }
}
