//! `slotwright knobs`: says what a knob does here, and writes the page about all knobs.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use condor_config::knobs::{self, Class, Knob, Support};

/// Say what HTCondor's configuration variables do in Slotwright. Without names, print the table of all, which is
/// docs/reference/knobs.md.
#[derive(Args, Debug)]
pub struct KnobsArgs {
    /// Names to look up, as they are written in configuration: `START`, `STARTD.START`, `SLOT_TYPE_2_START`.
    names: Vec<String>,
    /// Write the table to this file instead of printing it.
    #[arg(long, conflicts_with = "names")]
    file: Option<PathBuf>,
    /// Write nothing; exit with 1 if --file differs from what would be written.
    #[arg(long, requires = "file")]
    check: bool,
}

/// Runs the command. The exit status is 1 if a name is not a parameter of HTCondor's, or the checked file is not
/// current.
///
/// # Errors
/// When the file or the output cannot be written.
pub fn run(args: &KnobsArgs, out: &mut dyn Write) -> io::Result<ExitCode> {
    let mut good = true;
    for name in &args.names {
        good &= look_up(name, out)?;
    }
    match &args.file {
        Some(path) if args.check => {
            if fs::read_to_string(path).is_ok_and(|found| found == knobs::markdown()) {
                return Ok(ExitCode::SUCCESS);
            }
            writeln!(out, "{}: not current; run `make knobs` and commit the result", path.display())?;
            good = false;
        }
        Some(path) => fs::write(path, knobs::markdown())?,
        None if args.names.is_empty() => write!(out, "{}", knobs::markdown())?,
        None => {}
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn look_up(name: &str, out: &mut dyn Write) -> io::Result<bool> {
    match knobs::classify(name) {
        Class::Knob(knob) => describe(name, knob, out).map(|()| true),
        Class::Parameter => {
            let default = knobs::default_of(None, name).unwrap_or_default();
            writeln!(out, "{name}: a parameter of HTCondor's that has no effect here\n  default: {default}")?;
            Ok(true)
        }
        Class::Unknown { nearest } => {
            let meant = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
            writeln!(out, "{name}: not a parameter of HTCondor's{meant}")?;
            Ok(false)
        }
    }
}

fn describe(name: &str, knob: &Knob, out: &mut dyn Write) -> io::Result<()> {
    let known_as =
        if name.eq_ignore_ascii_case(knob.name) { String::new() } else { format!(" ({})", knob.name) };
    writeln!(out, "{name}{known_as}: {}", knob.doc)?;
    let readers: Vec<&str> = knob.readers.iter().map(|reader| reader.described()).collect();
    writeln!(out, "  read by: {}", readers.join(", "))?;
    let unit = if knob.unit.is_empty() { String::new() } else { format!(", {}", knob.unit) };
    writeln!(out, "  type:    {}{unit}", knob.kind.described())?;
    let ours = match knob.ours {
        None => String::new(),
        Some("") => "; here none".to_owned(),
        Some(ours) => format!("; here {ours}"),
    };
    writeln!(out, "  default: {}{ours}", knob.default().unwrap_or("none"))?;
    match knob.support {
        Support::Honored => writeln!(out, "  here:    in force"),
        Support::Planned => writeln!(out, "  here:    understood, but nothing acts on it yet"),
        Support::MappedTo(what) => writeln!(out, "  here:    no effect; use {what}"),
        Support::Meaningless(why) => writeln!(out, "  here:    no effect: {why}"),
    }?;
    if knob.section.is_empty() { Ok(()) } else { writeln!(out, "  manual:  {}", knob.section) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(names: &[&str]) -> KnobsArgs {
        KnobsArgs { names: names.iter().map(|name| (*name).to_owned()).collect(), file: None, check: false }
    }

    fn output(args: &KnobsArgs) -> (String, ExitCode) {
        let mut out = Vec::new();
        let code = run(args, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), code)
    }

    #[test]
    fn names_are_looked_up() {
        let (text, code) = output(&args(&["STARTD.start", "ENABLE_BACKFILL", "SCHEDD_NAME"]));
        insta::assert_snapshot!(text);
        assert_eq!(code, ExitCode::SUCCESS);
    }

    #[test]
    fn a_name_that_is_not_known_fails() {
        let (text, code) = output(&args(&["STRAT"]));
        assert_eq!(text, "STRAT: not a parameter of HTCondor's; did you mean START?\n");
        assert_eq!(code, ExitCode::from(1));
    }

    #[test]
    fn the_page_is_checked_and_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("knobs.md");
        let with = |check| KnobsArgs { names: Vec::new(), file: Some(path.clone()), check };
        assert_eq!(output(&with(true)).1, ExitCode::from(1));
        assert_eq!(output(&with(false)), (String::new(), ExitCode::SUCCESS));
        assert_eq!(output(&with(true)), (String::new(), ExitCode::SUCCESS));
        assert_eq!(fs::read_to_string(&path).unwrap(), output(&args(&[])).0);
    }
}
