//! Checks one manifest as the API server and the operator would.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::files::INPUT;
use super::metadata;
use super::nearest::nearest;
use super::place::find;
use super::policy;
use super::report::{Report, Saying, Source};
use super::rules;
use super::schema::{Checked, Kinds};
use super::yaml::{Kind, Node};
use api::{ConcurrencyLimit, GROUP, HTCJob, Submitter, VERSION};
use classad::{Expr, ParseError};
use controller::kinds;
use model::pool::Problem;

/// The longest text that a hint repeats, in bytes.
const LONGEST_STRING: usize = 80;

/// An object of Slotwright's.
pub struct Object<'a> {
    /// The file of the manifest.
    pub source: &'a Source,
    /// The manifest.
    pub node: Node,
    /// The object as the API server would store it.
    pub value: Value,
    /// The object's kind.
    pub kind: String,
    /// The object's namespace, if the kind is namespaced.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl Object<'_> {
    /// The object's title, such as `HTCJob alice/sweep`.
    pub fn title(&self) -> String {
        title(&self.kind, self.namespace.as_deref(), &self.name)
    }

    /// The byte offset of a field's value; if there is no such field, that of the deepest existing field around it.
    pub fn offset(&self, path: &str) -> usize {
        let place = find(&self.node, path);
        if place.found { place.node.start } else { place.key }
    }
}

fn title(kind: &str, namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}"))
}

/// Checks a document of a file: an object, or a list of objects. Objects that are not Slotwright's are skipped.
pub fn document<'a>(
    kinds: &Kinds,
    source: &'a Source,
    node: Node,
    report: &mut Report,
    objects: &mut Vec<Object<'a>>,
) {
    let (api_version, kind) =
        (node.get("apiVersion").and_then(Node::as_str), node.get("kind").and_then(Node::as_str));
    let group = api_version.and_then(|text| text.split_once('/')).map(|(group, _)| group);
    let is_list = kind.is_some_and(|kind| kind == "List" || (group == Some(GROUP) && kind.ends_with("List")));
    if is_list {
        let Kind::Map(entries) = node.kind else { return };
        let items = entries.into_iter().filter(|entry| entry.key == "items").map(|entry| entry.value.kind);
        for item in
            items.filter_map(|items| if let Kind::List(items) = items { Some(items) } else { None }).flatten()
        {
            if !misplaced(source, &item, report) {
                document(kinds, source, item, report, objects);
            }
        }
        return;
    }
    let Some(kind) = kind.map(str::to_owned) else { return };
    if group != Some(GROUP) && kinds.get(&kind).is_none() {
        return;
    }
    let meant = format!("{GROUP}/{VERSION}");
    if api_version != Some(meant.as_str()) {
        let what =
            api_version.map_or_else(|| "is missing".to_owned(), |is| format!("{is} is no version of ours"));
        let saying = Saying::new(format!("apiVersion: {what}")).hint(format!("use {meant}")).about(kind);
        report.add(&rules::UNKNOWN_KIND, source, find(&node, "apiVersion").node.start, saying);
    } else if kinds.get(&kind).is_some() {
        objects.push(object(kinds, source, node, kind, report));
    } else {
        let saying = Saying::new(format!("kind: {GROUP} has no kind {kind}"));
        let saying = match nearest(&kind, kinds.names()) {
            Some(meant) => saying.hint(format!("did you mean {meant}?")),
            None => saying.hint(format!("there are {}", kinds.names().collect::<Vec<_>>().join(", "))),
        };
        report.add(&rules::UNKNOWN_KIND, source, find(&node, "kind").node.start, saying);
    }
}

/// Whether something stands where only an object can. Then a finding says so. Files may hold other maps, such as a chart's values;
/// standard input is what a program printed to be applied.
pub fn misplaced(source: &Source, node: &Node, report: &mut Report) -> bool {
    let manifest = "a manifest has apiVersion, kind and metadata";
    let (message, hint) = match &node.kind {
        Kind::Map(_) if source.path != INPUT || node.get("kind").is_some() => return false,
        Kind::Map(_) => ("this is no object: kind is missing", manifest.to_owned()),
        Kind::List(_) => {
            ("this is a list, and no object", "write kind: List, with the objects under items".to_owned())
        }
        Kind::Scalar(_) => ("this is no object", format!("{manifest}; lint configuration text with -c FILE")),
    };
    report.add(&rules::NO_OBJECT, source, node.start, Saying::new(message).hint(hint));
    true
}

fn object<'a>(
    kinds: &Kinds,
    source: &'a Source,
    node: Node,
    kind: String,
    report: &mut Report,
) -> Object<'a> {
    let metadata =
        |key: &str| node.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Node::as_str);
    let definition = kinds.get(&kind);
    let namespaced = definition.is_some_and(|definition| definition.namespaced);
    let namespace = namespaced.then(|| metadata("namespace").unwrap_or("default").to_owned());
    let name = metadata("name").or_else(|| metadata("generateName")).unwrap_or_default().to_owned();
    let title = title(&kind, namespace.as_deref(), &name);
    metadata::check(source, &node, &title, report);
    if let Some(place) = node.get("status").map(|_| find(&node, "status")) {
        let saying =
            Saying::new("status: the operator writes it; what stands here is dropped").hint("leave it out");
        report.add(&rules::STATUS_IGNORED, source, place.key, saying.about(&title));
    }
    let checked = definition.map(|definition| definition.check(source, &node, &title, report));
    let mut value = checked.as_ref().map(|checked| checked.value.clone()).unwrap_or_default();
    metadata::keep_texts(&mut value);
    let object = Object { source, node, value, kind, namespace, name };
    if let Some(checked) = checked {
        operator(&object, &checked, report);
    }
    object
}

/// Checks an object as the operator does. Problems of fields that the schema has already refused are dropped.
fn operator(object: &Object<'_>, checked: &Checked, report: &mut Report) {
    let problems = match object.kind.as_str() {
        "HTCJob" => job(object, report),
        "NodePolicy" => policy::node_policy(object, report),
        "SubmitPolicy" => policy::submit_policy(object, report),
        "Negotiator" => policy::negotiator(object, report),
        "DrainRequest" => policy::drain_request(object, report),
        "ConcurrencyLimit" => decode::<ConcurrencyLimit>(object, report, object.value.clone())
            .map(|limit| kinds::concurrency_limit::facts(&limit).problems)
            .unwrap_or_default(),
        "Submitter" => decode::<Submitter>(object, report, object.value.clone())
            .and_then(|submitter| kinds::submitter::facts(&submitter)?.misnamed)
            .into_iter()
            .collect(),
        "Slot" | "PartitionableSlot" => {
            let saying = Saying::new(format!("the operator itself makes and removes every {}", object.kind));
            let saying = saying.hint("leave it out of what is applied").about(object.title());
            report.add(&rules::OPERATORS_KIND, object.source, object.offset("kind"), saying);
            Vec::new()
        }
        _ => Vec::new(),
    };
    for problem in problems {
        let said = checked.wrong.iter().any(|wrong| problem.field.starts_with(wrong.as_str()));
        if !said {
            tell(object, &problem, report);
        }
    }
}

/// Decodes an object as its type. A failure is reported, unless there is already a finding about the object.
pub fn decode<T: DeserializeOwned>(object: &Object<'_>, report: &mut Report, value: Value) -> Option<T> {
    match serde_json::from_value(value) {
        Ok(read) => Some(read),
        Err(error) => {
            let before = report
                .findings
                .iter()
                .any(|f| f.object.as_deref() == Some(&object.title()) && f.path == object.source.path);
            if !before {
                let saying = Saying::new(format!("cannot be read: {error}")).about(object.title());
                report.add(&rules::SCHEMA_TYPE, object.source, object.offset("spec"), saying);
            }
            None
        }
    }
}

fn job(object: &Object<'_>, report: &mut Report) -> Vec<Problem> {
    let mut value = object.value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), json!("lint"));
        metadata.insert("namespace".to_owned(), json!(object.namespace));
        metadata
            .retain(|key, _| matches!(key.as_str(), "uid" | "namespace" | "name" | "labels" | "annotations"));
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("template").or_insert_with(|| json!({}));
    }
    decode::<HTCJob>(object, report, value)
        .and_then(|job| Some((kinds::job::facts(&job)?.spec.err(), kinds::job::warnings(&job))))
        .map(|(problems, warnings)| problems.into_iter().flatten().chain(warnings).collect())
        .unwrap_or_default()
}

/// Reports a problem that the operator would find, at the place of the field; for a broken expression, at the place
/// within the expression where it breaks.
pub fn tell(object: &Object<'_>, problem: &Problem, report: &mut Report) {
    let rule = rules::of_reason(problem.reason);
    let place = find(&object.node, &problem.field);
    if std::ptr::eq(rule, &raw const rules::EXPRESSION_SYNTAX)
        && let Some(text) = place.node.as_str()
        && let Err(error) = Expr::parse(text)
    {
        let offset = place.node.inside(&object.source.text, error.line(), error.column());
        let message = format!(
            "{}: not a ClassAd expression: expected {}, found {}",
            problem.field,
            error.expected(),
            error.found()
        );
        let hint = error.hint().map(str::to_owned).or_else(|| string_hint(&problem.field, text, &error));
        let saying = Saying { message, hint, object: Some(object.title()) };
        report.add(rule, object.source, offset, saying);
        return;
    }
    let is_about_name = matches!(
        problem.reason,
        "InvalidAttribute" | "ProtectedAttribute" | "SecureAttribute" | "ImmutableAttribute"
    );
    let offset = if place.found && !is_about_name { place.node.start } else { place.key };
    report.add(rule, object.source, offset, Saying::of(problem).about(object.title()));
}

/// The hint for an attribute whose text is plain words, as an author writes a string who does not know that each value is an expression.
fn string_hint(field: &str, text: &str, error: &ParseError) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || " */,.:_-@%'".contains(c);
    let is_cut_off = error.found() == "end of input";
    let is_likely = field.starts_with("spec.attributes[") && text.chars().all(is_plain) && !is_cut_off;
    (is_likely && text.len() <= LONGEST_STRING)
        .then(|| format!("a string has its own quotes: '\"{}\"'", text.replace('\'', "''")))
}
