//! Checks an object as the API server does, by Slotwright's own definitions: unknown fields, types, ranges, rules.

use std::collections::BTreeMap;

use serde_json::Value;

use super::hints::{remove, type_hint, wants_text};
use super::nearest::nearest;
use super::place::find;
use super::report::{Report, Saying, Source};
use super::rules::{self, Rule};
use super::yaml::{Kind, Node};
use kube_schema::{FieldError, FieldErrorKind, StructuralSchema};

/// The kinds of the API group slotwright.dev.
pub struct Kinds(BTreeMap<String, Definition>);

/// The definition of a kind.
pub struct Definition {
    schema: StructuralSchema,
    source: Value,
    /// Whether objects of the kind are in namespaces.
    pub namespaced: bool,
}

impl Kinds {
    /// All kinds, by the definitions made of the Rust types.
    pub fn new() -> Self {
        let kinds = api::definitions().into_iter().filter_map(|crd| {
            let crd = serde_json::to_value(crd).ok()?;
            let source = crd.pointer("/spec/versions/0/schema/openAPIV3Schema")?.clone();
            let schema = StructuralSchema::parse(&source, "openAPIV3Schema").ok()?;
            let kind = crd.pointer("/spec/names/kind")?.as_str()?.to_owned();
            let namespaced = crd.pointer("/spec/scope")?.as_str()? == "Namespaced";
            Some((kind, Definition { schema, source, namespaced }))
        });
        Self(kinds.collect())
    }

    /// The definition of a kind, if there is such a kind.
    pub fn get(&self, kind: &str) -> Option<&Definition> {
        self.0.get(kind)
    }

    /// The names of all kinds.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// An object as the API server would store it, and the fields that the API server would refuse.
pub struct Checked {
    /// The object without unknown fields and with defaults. Fields of a wrong type are left out.
    pub value: Value,
    /// The paths of fields that are wrong or missing.
    pub wrong: Vec<String>,
}

impl Definition {
    /// Checks an object, and reports everything that is wrong.
    pub fn check(&self, source: &Source, node: &Node, title: &str, report: &mut Report) -> Checked {
        let mut value = node.json();
        if let Some(object) = value.as_object_mut() {
            object.remove("status");
        }
        for path in self.schema.prune(&mut value) {
            let rule = if in_template(&path) {
                &rules::TEMPLATE_UNKNOWN_FIELD
            } else {
                &rules::SCHEMA_UNKNOWN_FIELD
            };
            report.add(rule, source, find(node, &path).key, self.unknown(&path, node).about(title));
        }
        self.schema.default(&mut value);
        let errors = self.schema.validate(&value, None);
        for error in &errors {
            let place = find(node, &error.field);
            let offset = if place.found { place.node.start } else { place.key };
            let hint = place.found.then(|| type_hint(error, place.node)).flatten();
            report.add(
                rule(error),
                source,
                offset,
                Saying { message: shown(error), hint, object: Some(title.to_owned()) },
            );
        }
        let unreadable = [FieldErrorKind::TypeInvalid, FieldErrorKind::NotSupported];
        // The items behind a removed item would move: the last is removed first.
        for error in errors.iter().rev().filter(|error| unreadable.contains(&error.kind)) {
            let instead = wants_text(error).then(|| Value::from(""));
            remove(&mut value, &error.field, instead.as_ref());
        }
        // A field whose wrong value was removed gets its default, so that the object can be decoded.
        self.schema.default(&mut value);
        Checked { value, wrong: errors.into_iter().map(|error| error.field).collect() }
    }

    fn unknown(&self, path: &str, object: &Node) -> Saying {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let what = if in_template(path) {
            "pods have no such field: kubectl refuses the manifest"
        } else {
            "there is no such field"
        };
        let saying = Saying::new(format!("{path}: {what}"));
        if let Some(around) = self.around(parent, name, object) {
            return saying.hint(format!("{name} is a field of {around}: indent it"));
        }
        let known = fields(&self.source, parent);
        if let Some((_, instead)) = OF_JOBS.iter().find(|(field, _)| *field == path)
            && known.contains(&"podRetention")
        {
            return saying.hint(*instead);
        }
        match nearest(name, known.iter().copied()) {
            Some(meant) => saying.hint(format!("did you mean {meant}?")),
            None if known.is_empty() => saying,
            None => saying.hint(format!("known here: {}", known.join(", "))),
        }
    }

    /// The path of the field in which an unknown field belongs, if its author forgot to indent it: a field beside it that is empty or
    /// a map, and has a field of this name.
    fn around(&self, parent: &str, name: &str, object: &Node) -> Option<String> {
        let Kind::Map(beside) = &find(object, parent).node.kind else { return None };
        let empty = |node: &Node| matches!(&node.kind, Kind::Scalar(scalar) if scalar.value.is_null());
        let maps =
            beside.iter().filter(|entry| empty(&entry.value) || matches!(entry.value.kind, Kind::Map(_)));
        let paths = maps.map(|entry| {
            let path = if parent.is_empty() { entry.key.clone() } else { format!("{parent}.{}", entry.key) };
            (empty(&entry.value), path)
        });
        let mut around: Vec<(bool, String)> =
            paths.filter(|(_, path)| fields(&self.source, path).contains(&name)).collect();
        // An empty field is likelier to have lost its fields than another.
        around.sort_by_key(|(is_empty, _)| !is_empty);
        around.into_iter().next().map(|(_, path)| path)
    }
}

/// Fields of a Job of Kubernetes that an HTCJob lacks, each with what to write.
const OF_JOBS: [(&str, &str); 7] = [
    ("spec.activeDeadlineSeconds", "use the attribute AllowedJobDuration"),
    (
        "spec.backoffLimit",
        "use the attributes JobMaxRetries and OnExitRemove, or max_retries of a submit file",
    ),
    ("spec.completionMode", "leave it out: each proc has a number, and items give each its own texts"),
    ("spec.completions", "use count"),
    ("spec.parallelism", "use the attribute JobMaterializeLimit, or a ConcurrencyLimit"),
    ("spec.suspend", "use hold"),
    ("spec.ttlSecondsAfterFinished", "use podRetention; the job stays until it is deleted"),
];

/// Whether a path leads into a pod template.
fn in_template(path: &str) -> bool {
    ["spec.template.", "spec.backfill.template."].iter().any(|template| path.starts_with(template))
}

/// The fields that a schema knows at a path.
fn fields<'a>(schema: &'a Value, path: &str) -> Vec<&'a str> {
    let mut at = schema;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (name, indexed) = part.split_once('[').map_or((part, false), |(name, _)| (name, true));
        let inside = at.get("properties").and_then(|properties| properties.get(name));
        let Some(next) = inside.or_else(|| at.get("additionalProperties")) else { return Vec::new() };
        at = if indexed { next.get("items").unwrap_or(next) } else { next };
    }
    let properties = at.get("properties").and_then(Value::as_object);
    properties.map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn rule(error: &FieldError) -> &'static Rule {
    match error.kind {
        FieldErrorKind::Required => &rules::SCHEMA_REQUIRED,
        FieldErrorKind::TypeInvalid => &rules::SCHEMA_TYPE,
        FieldErrorKind::Invalid if !error.message.contains(" in body ") => &rules::SCHEMA_RULE,
        FieldErrorKind::Forbidden => &rules::SCHEMA_RULE,
        _ => &rules::SCHEMA_VALUE,
    }
}

/// The API server's message, with the field named only once.
fn shown(error: &FieldError) -> String {
    let mut message = error.message.replace(&format!("{} in body ", error.field), "");
    if let Some((wanted, is)) =
        message.split_once("must be of type ").and_then(|(_, types)| types.split_once(": "))
    {
        message = format!("must be of type {wanted}, and is {}", is.trim_matches('"'));
    }
    if error.field == "<nil>" { message } else { format!("{}: {message}", error.field) }
}
