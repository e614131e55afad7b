//! `slotwright config manifests`: the objects of Slotwright that stand for the files of an HTCondor pool.
//!
//! | part | makes |
//! | --- | --- |
//! | `groups` | GroupQuotas of GROUP_NAMES and the knobs of each group |
//! | `limits` | ConcurrencyLimits |
//! | `policies` | the Negotiator, the NodePolicy and the SubmitPolicy, with the knobs that their texts take |
//! | `maps` | the lines of user maps that are in files |
//! | `accounts`, `submitters` | Submitters of what condor_userprio prints |
//! | `leftovers` | warnings about settings that are in no object |
//! | `defaults` | warnings about knobs that are not set, and whose defaults differ |
//! | `names`, `notes`, `object` | names of objects; all warnings; an object as YAML |

mod accounts;
mod defaults;
mod groups;
mod leftovers;
mod limits;
mod maps;
mod names;
mod notes;
mod object;
mod policies;
mod submitters;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::{Texts, configuration};
use crate::lint;
use crate::named_groups::named_groups;
use crate::problems::Problems;
use crate::stop::{DONE, NO, Stop};
use groups::Groups;
use model::negotiator;
use notes::Notes;

#[derive(Debug, Args)]
#[command(
    after_help = "Warnings name what is in no object, with its place. Exit status: 0 done, 1 an object has an error, which \
                        standard error tells, 2 unusable input."
)]
pub(super) struct ManifestsArgs {
    #[command(flatten)]
    texts: Texts,
    /// The output of condor_userprio -allusers -long: factors, ceilings, floors and usage become Submitters, and who charged a group
    /// may charge it; - is standard input
    #[arg(long, value_name = "FILE")]
    userprio: Option<PathBuf>,
    /// Let every owner of jobs charge every group, as HTCondor does
    #[arg(long)]
    open_groups: bool,
    /// Print only the objects of this kind, such as NodePolicy for the file of an execute node; may be given several times
    #[arg(long, value_name = "KIND", value_parser = KINDS, ignore_case = true)]
    only: Vec<String>,
}

/// The kinds of objects that the command makes.
const KINDS: [&str; 6] =
    ["GroupQuota", "ConcurrencyLimit", "Negotiator", "NodePolicy", "SubmitPolicy", "Submitter"];

impl ManifestsArgs {
    /// Whether objects of a kind are printed.
    fn prints(&self, kind: &str) -> bool {
        self.only.is_empty() || self.wants(kind)
    }

    /// Whether the command line names a kind of objects.
    fn wants(&self, kind: &str) -> bool {
        self.only.iter().any(|only| only.eq_ignore_ascii_case(kind))
    }
}

/// The names that objects stand for, in small letters.
type Taken = BTreeSet<String>;

/// Prints the objects to `stdout`, and warnings to `stderr`.
pub(super) fn print(
    args: &ManifestsArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Stop> {
    let sources = args.texts.sources(stdin, None)?;
    let central = configuration(args.texts.read_as(&sources, "NEGOTIATOR", None), stderr)?;
    let named = named_groups(&central).map_err(|faults| Stop::of_values(&faults))?;
    let (mut notes, mut unsaid, mut taken) = (Notes::default(), Notes::default(), Taken::new());
    let mut policies = Vec::new();
    for policy in policies::ALL {
        let reading = args.texts.read_as(&sources, policy.subsystem, None);
        let config = reading.into_config().map_err(|error| Stop::Unusable(error.to_string()))?;
        let notes = if args.prints(policy.kind) { &mut notes } else { &mut unsaid };
        let maps = if policy.kind == "SubmitPolicy" {
            maps::lines(&config, &|path| args.texts.file(path), &mut taken, notes)
        } else {
            Vec::new()
        };
        let object = policy.object(&config, maps, args.wants(policy.kind), &mut taken, notes);
        let has_groups = policy.kind == policies::NEGOTIATOR.kind && !named.is_empty();
        if object.is_some() || has_groups {
            defaults::note(policy, &config, &sources, notes);
        }
        policies.extend(object);
    }
    let knobs = knobs(&policies);
    let of_groups = if args.prints("GroupQuota") { &mut notes } else { &mut unsaid };
    let mut groups = Groups::new(&central, named, &knobs, of_groups);
    let accounts = match &args.userprio {
        Some(path) => accounts::read(path, stdin, &groups, &mut notes)?,
        None => Vec::new(),
    };
    if args.open_groups {
        groups.open();
    } else {
        groups.open_to(&accounts);
        groups.note_closed(&central, if args.prints("GroupQuota") { &mut notes } else { &mut unsaid });
    }
    let mut objects = groups.objects();
    objects.extend(limits::objects(&central, &mut taken, &mut notes));
    for fault in negotiator::Config::read(&central).err().into_iter().flatten() {
        notes.at_once(fault.position().clone(), notes::without_place(&fault));
    }
    objects.extend(policies);
    objects.extend(submitters::objects(&accounts, &knobs, &groups));
    leftovers::note(&central, &groups, &taken, &mut notes);
    objects.retain(|object| object.get("kind").and_then(Value::as_str).is_some_and(|kind| args.prints(kind)));
    let text = yaml(&objects)?;
    stdout.write_all(text.as_bytes())?;
    notes.tell(stderr)?;
    let problems = wrong(text);
    problems.tell(stderr)?;
    Ok(if problems.is_empty() { DONE } else { NO })
}

/// The knobs as the operator reads them in the Negotiator. If there is none, or if a value cannot be used, these are HTCondor's
/// defaults.
fn knobs(policies: &[Value]) -> negotiator::Config {
    let config = policies::NEGOTIATOR.of_objects(policies);
    config.and_then(|config| negotiator::Config::read(&config).ok()).unwrap_or_default()
}

fn yaml(objects: &[Value]) -> Result<String, Stop> {
    let mut text = String::new();
    for object in objects {
        let one = serde_saphyr::to_string(object).map_err(|error| Stop::Unusable(error.to_string()))?;
        text.push_str("---\n");
        text.push_str(&one);
    }
    Ok(text)
}

/// The errors that `slotwright lint` finds in the objects.
fn wrong(text: String) -> Problems {
    let source = lint::Source::new("the objects", text);
    let (mut problems, mut report, mut objects) = (Problems::default(), lint::Report::default(), Vec::new());
    let (kinds, parsed) = (lint::Kinds::new(), lint::parse(&source.text));
    for fault in &parsed.faults {
        problems.at(&source, fault.at, &fault.message);
    }
    for node in parsed.documents {
        lint::document(&kinds, &source, node, &mut report, &mut objects);
    }
    lint::check_references(&objects, &mut report);
    report.sort();
    problems.extend(report.findings.into_iter().filter(|found| found.severity == lint::Severity::Error));
    problems
}
