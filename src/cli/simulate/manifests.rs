//! Reads the manifests of a scenario. They are checked as `slotwright lint` checks them, and read as the operator
//! reads them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lint::{
    Finding, Kind, Kinds, Node, Object, Report, Severity, Source, check_references, document, find, parse,
};
use crate::problems::Problems;
use api::HTCJob;
use controller::kinds;
use model::pool::{Event, Time};
use model::schedd::Submission;

/// Reads the manifests in a scenario and in the files that it names. Returns the events that the operator's shell
/// would make of them, in the shell's order.
pub fn objects(source: &Source, root: &Node, directory: &Path, problems: &mut Problems) -> Vec<Event> {
    let place = find(root, "manifests");
    let Kind::List(items) = &place.node.kind else { return Vec::new() };
    let items = if place.found { items.as_slice() } else { &[] };
    let files: Vec<Option<Source>> =
        items.iter().map(|item| file(source, item, directory, problems)).collect();
    let mut objects = Vec::new();
    for (item, file) in items.iter().zip(&files) {
        match file {
            Some(file) => {
                let parsed = parse(&file.text);
                for fault in &parsed.faults {
                    problems.at(file, fault.at, &fault.message);
                }
                for node in parsed.documents {
                    objects.extend(ours(file, node, problems));
                }
            }
            None if item.as_str().is_none() => objects.extend(ours(source, item.clone(), problems)),
            None => {}
        }
    }
    tell_references(&objects, problems);
    let mut ranked: Vec<(u8, Event)> = objects.iter().filter_map(|object| event(object, problems)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, event)| event).collect()
}

/// The file that an item names; `None` if the item is an object, or the file cannot be read.
fn file(source: &Source, item: &Node, directory: &Path, problems: &mut Problems) -> Option<Source> {
    let name = item.as_str()?;
    let path = directory.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Some(Source::new(path.display().to_string(), text)),
        Err(error) => {
            problems.at(source, item.start, &format!("manifests: {name} cannot be read: {error}"));
            None
        }
    }
}

/// The objects of one document. A document without an object of Slotwright's is a problem.
fn ours<'s>(source: &'s Source, node: Node, problems: &mut Problems) -> Vec<Object<'s>> {
    let (start, kind) = (node.start, node.get("kind").and_then(Node::as_str).map(str::to_owned));
    let objects = checked(source, node, problems);
    if objects.is_empty() {
        let kind = kind.unwrap_or_else(|| "nothing".to_owned());
        problems.at(source, start, &format!("manifests: {kind} is no object of ours; {KINDS}"));
    }
    objects
}

/// Adds what lint finds wrong between objects, such as two that declare the same group.
fn tell_references(objects: &[Object<'_>], problems: &mut Problems) {
    let mut report = Report::default();
    check_references(objects, &mut report);
    extend(report, problems);
}

/// Warnings that say nothing about a simulation: its machines tell what an agent would.
const ABOUT_AGENTS: [&str; 2] = ["config-not-reported", "config-needs-agent"];

/// Adds the errors of a report to the problems, and its warnings, in the order of their places.
fn extend(mut report: Report, problems: &mut Problems) {
    report.sort();
    let (errors, others): (Vec<_>, Vec<_>) =
        report.findings.into_iter().partition(|finding| finding.severity == Severity::Error);
    problems.extend(errors.into_iter());
    let is_warning =
        |finding: &Finding| finding.severity == Severity::Warning && !ABOUT_AGENTS.contains(&finding.rule.id);
    problems.warn(others.into_iter().filter(is_warning));
}

const KINDS: &str = "give NodePolicy, SubmitPolicy, GroupQuota, ConcurrencyLimit, Submitter or Negotiator";

fn event(object: &Object<'_>, problems: &mut Problems) -> Option<(u8, Event)> {
    let value = object.value.clone();
    match object.kind.as_str() {
        "Negotiator" => {
            let negotiator = serde_json::from_value(value).ok()?;
            Some((0, Event::Negotiator(kinds::negotiator::facts(&negotiator))))
        }
        "NodePolicy" => {
            Some((1, Event::Policy(kinds::node_policy::facts(&serde_json::from_value(value).ok()?))))
        }
        "SubmitPolicy" => {
            Some((1, Event::SubmitPolicy(kinds::submit_policy::facts(&serde_json::from_value(value).ok()?))))
        }
        "GroupQuota" => {
            Some((2, Event::Group(kinds::group_quota::facts(&serde_json::from_value(value).ok()?))))
        }
        "ConcurrencyLimit" => {
            Some((2, Event::Limit(kinds::concurrency_limit::facts(&serde_json::from_value(value).ok()?))))
        }
        "Submitter" => {
            Some((3, Event::Submitter(kinds::submitter::facts(&serde_json::from_value(value).ok()?)?)))
        }
        kind => {
            let say = format!("manifests: {kind} has no place here; {KINDS}, and jobs as submitters[].job");
            problems.at(object.source, object.offset("kind"), &say);
            None
        }
    }
}

/// The objects of a document. Everything that lint finds wrong is added to the problems.
fn checked<'s>(source: &'s Source, node: Node, problems: &mut Problems) -> Vec<Object<'s>> {
    let (mut report, mut objects) = (Report::default(), Vec::new());
    document(&Kinds::new(), source, node, &mut report, &mut objects);
    extend(report, problems);
    objects
}

/// The submission of a manifest's HTCJob, which the submitter `owner` submits again and again. Its namespace is the
/// submitter's.
pub fn job(source: &Source, node: &Node, owner: &str, problems: &mut Problems) -> Option<Submission> {
    let before = problems.count();
    let objects = checked(source, node.clone(), problems);
    let Some(object) = objects.into_iter().find(|object| object.kind == "HTCJob") else {
        problems.at(source, node.start, "job: is no HTCJob; give one as it would be applied");
        return None;
    };
    if problems.count() > before {
        return None;
    }
    let mut value = object.value;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), json!(owner));
    }
    let job: HTCJob = serde_json::from_value(value).ok()?;
    Some(kinds::job::submission(&job, Time::default()).0)
}
