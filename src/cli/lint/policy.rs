//! Checks NodePolicies, SubmitPolicies, Negotiators and DrainRequests, and configuration text, in one of these objects or in a file.

use super::object::{Object, decode};
use super::place::find;
use super::report::{Report, Saying, Source};
use super::rules::{self, Rule};
use super::yaml::{Kind, Node, Style};
use api::{DrainRequest, Negotiator, NodePolicy, SubmitPolicy};
use std::collections::BTreeSet;

use controller::kinds;
use model::mistakes;
use model::pool::Problem;
use model::schedd;
use model::startd::config::{Remark, Severity, of_file, sort, understand, understand_beside};

/// The field of configuration text.
const TEXT: &str = "spec.config";

/// Checks a NodePolicy as the operator does. Problems of the configuration text are reported here, at their place in
/// the text; all others are returned.
pub fn node_policy(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    let attributes = object.value.pointer("/spec/attributes").and_then(serde_json::Value::as_object);
    let attributes: Vec<&str> =
        attributes.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
    of_text(object, |text| understand_beside(&attributes, text).remarks, report);
    let policy = decode::<NodePolicy>(object, report, object.value.clone());
    let facts = policy.map(|policy| kinds::node_policy::facts(&policy));
    let (problems, warnings) = facts.map(|facts| (facts.config.err(), facts.warnings)).unwrap_or_default();
    others([problems, warnings])
}

/// Checks a SubmitPolicy, as [`node_policy`] does.
pub fn submit_policy(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    of_text(object, |text| schedd::policy::understand(text).1, report);
    let policy = decode::<SubmitPolicy>(object, report, object.value.clone());
    others([policy.and_then(|policy| kinds::submit_policy::facts(&policy).config.err())])
}

/// Checks a Negotiator, as [`node_policy`] does.
pub fn negotiator(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    of_text(object, |text| kinds::negotiator::understand_text(text).1, report);
    let negotiator = decode::<Negotiator>(object, report, object.value.clone());
    let facts = negotiator.map(|negotiator| kinds::negotiator::facts(&negotiator));
    let (problems, warnings) = facts.map(|facts| (facts.config.err(), facts.warnings)).unwrap_or_default();
    others([problems, warnings])
}

/// The problems of a DrainRequest.
pub fn drain_request(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    let Some(drain) = decode::<DrainRequest>(object, report, object.value.clone()) else { return Vec::new() };
    let fields = [("spec.check", drain.spec.check.as_deref()), ("spec.start", drain.spec.start.as_deref())];
    let mistaken = mistakes::of_fields(fields, |_| false);
    let wrong = kinds::drain_request::facts(&drain).spec.err();
    wrong.into_iter().flatten().chain(mistaken).collect()
}

fn of_text(object: &Object<'_>, remarks: impl Fn(&str) -> Vec<Remark>, report: &mut Report) {
    let place = find(&object.node, TEXT);
    let Some(text) = place.node.as_str().filter(|_| place.found) else { return };
    if is_joined(place.node, &object.source.text) {
        let saying = Saying::new(format!("{TEXT}: YAML has joined the lines")).hint("write config: |");
        report.add(&rules::CONFIG_SYNTAX, object.source, place.node.start, saying.about(object.title()));
        return;
    }
    let config = Source::new(TEXT, text);
    for remark in remarks(text) {
        let (line, column) = (remark.line.max(1) as usize, remark.column.max(1) as usize);
        let offset = place.node.inside(&object.source.text, line, column);
        report.add(
            rule(&remark),
            object.source,
            offset,
            saying(&remark, &config, TEXT).about(object.title()),
        );
    }
}

/// Whether YAML has joined lines of a configuration text, as the style `>` and texts without style do: lines of the file define names,
/// and the text has fewer lines that do. `file` is the text of the file.
fn is_joined(node: &Node, file: &str) -> bool {
    let Kind::Scalar(scalar) = &node.kind else { return false };
    let written = file.get(node.start..node.end).unwrap_or_default();
    let definitions = |text: &str| text.lines().filter(|line| is_definition(line)).count();
    scalar.style != Style::Literal && definitions(written) > definitions(&scalar.text)
}

/// Whether a line gives a name a value: `START = TRUE`. A quote before the name is YAML's.
fn is_definition(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['"', '\'']);
    let is_name = |name: &str| {
        let name = name.trim_end();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    };
    line.split_once('=').is_some_and(|(name, value)| is_name(name) && !value.starts_with(['=', '?', '!']))
}

/// The problems that are not remarks about the configuration text.
fn others(problems: impl IntoIterator<Item = Option<Vec<Problem>>>) -> Vec<Problem> {
    let is_other = |problem: &Problem| problem.field != TEXT || problem.reason == "BackfillNotEnabled";
    problems.into_iter().flatten().flatten().filter(is_other).collect()
}

/// Checks a file of configuration text: what any daemon would say of it, and what the object that takes the text would refuse.
pub fn text(source: &Source, report: &mut Report) {
    let mut remarks = of_file(&source.text);
    let lines = |severity: Severity| -> BTreeSet<u32> {
        remarks.iter().filter(|remark| remark.severity >= severity).map(|remark| remark.line).collect()
    };
    let (remarked, refused) = (lines(Severity::Warning), lines(Severity::Error));
    let of_objects = [
        understand(&source.text).remarks,
        schedd::policy::understand(&source.text).1,
        kinds::negotiator::understand_text(&source.text).1,
    ];
    // The text may be meant for several objects. That a knob has no effect in one of them is no mistake.
    let counts = |remark: &Remark| {
        remark.severity == Severity::Error
            || matches!(remark.reason, "AttributeNotReported" | "KillNeedsAgent")
    };
    // A line is told once; that an object refuses it counts more than what else is to be said.
    let is_told = |remark: &Remark| {
        let told = if remark.severity == Severity::Error { &refused } else { &remarked };
        told.contains(&remark.line)
    };
    let added: Vec<Remark> =
        of_objects.into_iter().flatten().filter(|remark| counts(remark) && !is_told(remark)).collect();
    let now_refused: BTreeSet<u32> =
        added.iter().filter(|remark| remark.severity == Severity::Error).map(|remark| remark.line).collect();
    remarks.retain(|remark| !now_refused.contains(&remark.line));
    remarks.extend(added);
    sort(&mut remarks);
    for remark in remarks {
        let offset = source.offset(remark.line as usize, remark.column as usize);
        report.add(rule(&remark), source, offset, saying(&remark, source, ""));
    }
}

fn rule(remark: &Remark) -> &'static Rule {
    match remark.reason {
        "InvalidExpression" => &rules::CONFIG_VALUE,
        reason => rules::of_reason(reason),
    }
}

/// The message of a remark about a configuration text, with its last part as the hint: what follows the last semicolon, or the last
/// colon before "did you mean" or "remove it". The hint for an expression that breaks is that of the place where the expression breaks.
fn saying(remark: &Remark, config: &Source, field: &str) -> Saying {
    if remark.reason == "InvalidExpression" {
        let offset = config.offset(remark.line.max(1) as usize, remark.column.max(1) as usize);
        let hint = classad::hint_at(&config.text, offset);
        let said =
            hint.iter().find_map(|hint| remark.message.strip_suffix(hint.as_str())?.strip_suffix("; "));
        let message = of_field(field, said.unwrap_or(&remark.message));
        return Saying { message, hint, object: None };
    }
    let (what, hint) = match remark.message.rsplit_once("; ") {
        Some((what, hint)) => (what, Some(hint)),
        None => match remark.message.rsplit_once(": ") {
            Some((what, hint)) if hint.starts_with("did you mean") || hint.starts_with("remove it") => {
                (what, Some(hint))
            }
            _ => (remark.message.as_str(), None),
        },
    };
    Saying { message: of_field(field, what), hint: hint.map(str::to_owned), object: None }
}

/// A message that names its field, if the text is a field's.
fn of_field(field: &str, message: &str) -> String {
    if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") }
}
