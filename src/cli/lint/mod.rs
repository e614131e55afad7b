//! `slotwright lint`: checks manifests and configuration text as the API server and the operator would, but needs neither,
//! so that a GitOps pipeline can run it. `docs/reference/lint.md` lists the rules and their ids.
//!
//! | part | does |
//! | --- | --- |
//! | `files` | finds and reads the files |
//! | `yaml` | parses YAML with positions, within bounds |
//! | `object`, `schema` | check one object |
//! | `policy` | checks policies and configuration text |
//! | `references` | checks objects against each other |
//! | `place`, `nearest` | find the place of a field, and the name that was meant |
//! | `rules`, `report`, `output` | the rules, the findings, and how findings are written |

mod files;
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

pub(super) use object::{Object, document};
pub(super) use place::find;
pub(super) use references::check as check_references;
pub(super) use report::{Finding, Report, Saying, Source};
pub(super) use rules::Severity;
pub(super) use schema::Kinds;
pub(super) use yaml::{Entry, Kind, Node, parse};

use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;

use files::{Collected, File, Form};
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
    let mut report = lint(collected.files, args.verbose);
    report.sort();
    output::write(&report, &collected.unusable, args.output, out)?;
    if args.verbose {
        for skipped in &collected.skipped {
            writeln!(err, "slotwright: skipped {skipped}")?;
        }
    }
    for unusable in &collected.unusable {
        writeln!(err, "slotwright: {unusable}")?;
    }
    let wrong = report.count(Severity::Error) > 0 || (args.strict && report.count(Severity::Warning) > 0);
    Ok(if !collected.unusable.is_empty() {
        UNUSABLE
    } else if wrong {
        ERRORS
    } else {
        CLEAN
    })
}

/// Checks all files. With `verbose`, the report also notes files without an object of Slotwright's.
fn lint(files: Vec<File>, verbose: bool) -> Report {
    let mut report = Report { files: files.len(), ..Report::default() };
    let mut manifests = Vec::new();
    for file in files {
        match (file.text, file.form) {
            (Ok(text), Form::Manifest) => manifests.push(Source::new(file.path, text)),
            (Ok(text), Form::Configuration) => policy::text(&Source::new(file.path, text), &mut report),
            (Err(why), form) => {
                let rule = if form == Form::Manifest { &rules::YAML_SYNTAX } else { &rules::CONFIG_SYNTAX };
                report.add(rule, &Source::new(file.path, ""), 0, Saying::new(why));
            }
        }
    }
    let kinds = Kinds::new();
    let mut objects = Vec::new();
    for source in &manifests {
        let (before, faults) = (objects.len(), report.findings.len());
        manifest(&kinds, source, &mut report, &mut objects);
        if verbose && objects.len() == before && report.findings.len() == faults {
            report.add(
                &rules::FILE_SKIPPED,
                source,
                0,
                Saying::new("nothing in it is of the group slotwright.dev"),
            );
        }
    }
    references::check(&objects, &mut report);
    report.objects = objects.len();
    report
}

fn manifest<'a>(
    kinds: &Kinds,
    source: &'a Source,
    report: &mut Report,
    objects: &mut Vec<object::Object<'a>>,
) {
    if let Some(queue) = queue_statement(&source.text) {
        let saying = Saying::new("this is a submit description of HTCondor, and no manifest");
        let saying = saying.hint("slotwright submit makes the HTCJob: docs/how-to/submit-files.md says how");
        report.add(&rules::SUBMIT_DESCRIPTION, source, queue, saying);
        return;
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
    for document in parsed.documents {
        object::document(kinds, source, document, report, objects);
    }
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
