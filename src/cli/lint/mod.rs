//! `slotwright lint`: checks manifests and configuration text as the API server and the operator would, but needs neither,
//! so that a GitOps pipeline can run it. `docs/reference/lint.md` lists the rules and their ids.
//!
//! | part | does |
//! | --- | --- |
//! | `files` | finds and reads the files |
//! | `yaml` | parses YAML with positions, within bounds |
//! | `object`, `metadata`, `schema`, `hints` | check one object |
//! | `policy` | checks policies and configuration text |
//! | `references` | checks objects against each other |
//! | `place`, `nearest` | find the place of a field, and the name that was meant |
//! | `rules`, `report`, `output` | the rules, the findings, and how findings are written |

mod files;
mod hints;
mod metadata;
mod nearest;
mod object;
mod output;
mod place;
mod policy;
mod references;
mod report;
mod rules;
mod schema;
mod yaml;

pub(super) use nearest::nearest;
pub(super) use object::{Object, document};
pub(super) use place::find;
pub(super) use references::check as check_references;
pub(super) use report::{Finding, Report, Saying, Source};
pub(super) use rules::Severity;
pub(super) use schema::Kinds;
pub(super) use yaml::{Kind, Node, parse};

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;

use files::{Collected, Form, INPUT};
use output::Format;
use yaml::FaultKind;

/// The exit status if nothing is wrong.
const CLEAN: u8 = 0;
/// The exit status if there are errors.
const ERRORS: u8 = 1;
/// The exit status if a path cannot be used.
const UNUSABLE: u8 = 2;

/// Check manifests and configuration text, as the API server and the operator would.
#[derive(Args, Debug)]
#[command(after_help = "Exit status: 0 no errors, 1 errors, 2 a path that cannot be read.")]
pub struct LintArgs {
    /// Files, directories, or - for standard input. In directories, files ending in .yaml, .yml and .json are read as
    /// manifests, and files ending in .config, .conf and .htcondor as configuration text
    #[arg(value_name = "PATH", required_unless_present = "config")]
    paths: Vec<PathBuf>,
    /// A file to read as HTCondor configuration text, whatever its name
    #[arg(short = 'c', long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// How to print findings
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Count warnings as errors
    #[arg(long)]
    strict: bool,
    /// Say also which files and directories were skipped
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the command, and returns the exit status.
///
/// # Errors
/// When the output cannot be written.
pub fn run(
    args: &LintArgs,
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut collected = Collected::default();
    for path in &args.paths {
        collected.add(path, None, input);
    }
    for path in &args.config {
        collected.add(path, Some(Form::Configuration), input);
    }
    let (skipped, unusable) =
        (std::mem::take(&mut collected.skipped), std::mem::take(&mut collected.unusable));
    let mut report = lint(collected, args.verbose);
    report.sort();
    output::write(&report, &unusable, args.output, out)?;
    if args.verbose {
        for skipped in &skipped {
            writeln!(err, "slotwright: skipped {skipped}")?;
        }
    }
    for unusable in &unusable {
        writeln!(err, "slotwright: {unusable}")?;
    }
    let wrong = report.count(Severity::Error) > 0 || (args.strict && report.count(Severity::Warning) > 0);
    Ok(if !unusable.is_empty() {
        UNUSABLE
    } else if wrong {
        ERRORS
    } else {
        CLEAN
    })
}

/// Checks all files. With `verbose`, the report also notes files without an object of Slotwright's.
fn lint(collected: Collected, verbose: bool) -> Report {
    let mut report = Report { files: collected.files.len(), ..Report::default() };
    let (mut manifests, mut empty) = (Vec::new(), BTreeSet::new());
    for (place, file) in collected.files.into_iter().enumerate() {
        match (file.text, file.form) {
            (Ok(text), Form::Manifest) => manifests.push((place, Source::new(file.path, text))),
            (Ok(text), Form::Configuration) => policy::text(&Source::new(file.path, text), &mut report),
            (Err(why), form) => {
                let rule = if form == Form::Manifest { &rules::YAML_SYNTAX } else { &rules::CONFIG_SYNTAX };
                report.add(rule, &Source::new(file.path, ""), 0, Saying::new(why));
            }
        }
    }
    let kinds = Kinds::new();
    let mut objects = Vec::new();
    for (place, source) in &manifests {
        let (before, faults) = (objects.len(), report.findings.len());
        let found = manifest(&kinds, source, &mut report, &mut objects);
        let is_silent = objects.len() == before && report.findings.len() == faults;
        if is_silent && found == 0 {
            empty.insert(*place);
        }
        if verbose && is_silent {
            report.add(
                &rules::FILE_SKIPPED,
                source,
                0,
                Saying::new("nothing in it is of the group slotwright.dev"),
            );
        }
    }
    for path in collected.given.iter().filter(|given| given.files.iter().all(|file| empty.contains(file))) {
        nothing(&path.path, &mut report);
    }
    references::check(&objects, &mut report);
    report.objects = objects.len();
    report
}

/// Reports a path from the command line that leads to nothing.
fn nothing(path: &str, report: &mut Report) {
    let (rule, saying) = if path == INPUT {
        let saying = Saying::new("standard input has no document");
        (
            &rules::NO_OBJECT,
            saying.hint("the command before | may have failed: set -o pipefail makes the pipeline fail too"),
        )
    } else {
        let saying = Saying::new("nothing here is a manifest or configuration text");
        (
            &rules::NOTHING_FOUND,
            saying.hint(
                "name the files, or a directory of .yaml, .yml, .json, .config, .conf or .htcondor files",
            ),
        )
    };
    report.add(rule, &Source::new(path, ""), 0, saying);
}

/// Checks a file of manifests. Returns the number of its objects, those of other groups included.
fn manifest<'a>(
    kinds: &Kinds,
    source: &'a Source,
    report: &mut Report,
    objects: &mut Vec<object::Object<'a>>,
) -> usize {
    if let Some(queue) = queue_statement(&source.text) {
        let saying = Saying::new("this is a submit description of HTCondor, and no manifest");
        let saying = saying.hint("slotwright submit makes the HTCJob: docs/how-to/submit-files.md says how");
        report.add(&rules::SUBMIT_DESCRIPTION, source, queue, saying);
        return 0;
    }
    let parsed = yaml::parse(&source.text);
    for fault in parsed.faults {
        let rule = match fault.kind {
            FaultKind::Syntax => &rules::YAML_SYNTAX,
            FaultKind::DuplicateKey => &rules::YAML_DUPLICATE_KEY,
            FaultKind::Limit => &rules::YAML_LIMIT,
        };
        let mut saying = Saying::new(fault.message);
        if fault.kind == FaultKind::Syntax && source.text.contains("{{") {
            saying = saying.hint(
                "if this is a template, lint what it renders to: helm template ... | slotwright lint -",
            );
        }
        report.add(rule, source, fault.at, saying);
    }
    let mut found = 0;
    for document in parsed.documents {
        if !object::misplaced(source, &document, report) {
            found += usize::from(document.get("kind").is_some());
            object::document(kinds, source, document, report, objects);
        }
    }
    found
}

/// The byte offset of the statement `queue` of a submit description; none in a manifest.
fn queue_statement(text: &str) -> Option<usize> {
    let lines = text.split_inclusive('\n').scan(0_usize, |offset, line| {
        let start = *offset;
        *offset = start.saturating_add(line.len());
        Some((start, line))
    });
    let word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let mut queue = None;
    for (start, line) in lines {
        match word(line).as_str() {
            "queue" => queue = queue.or(Some(start)),
            "apiversion:" | "kind:" => return None,
            _ => {}
        }
    }
    queue
}
