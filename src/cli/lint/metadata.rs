//! Checks the metadata of an object, of which a definition says nothing: fields, names, labels and annotations.

use serde_json::Value;

use super::nearest::nearest;
use super::place::find;
use super::report::{Report, Saying, Source};
use super::rules::{self, Rule};
use super::yaml::{Kind, Node};
use api::names::{is_dns_label, is_label_key, is_label_name, is_subdomain};

/// The fields of Kubernetes' ObjectMeta.
const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The longest name of an object, and of a namespace.
const LONGEST: (usize, usize) = (253, 63);

/// Checks an object's metadata, and reports everything that is wrong.
pub fn check(source: &Source, node: &Node, title: &str, report: &mut Report) {
    let mut checker = Checker { source, node, title, report };
    checker.fields();
    checker.names();
    checker.labels();
    checker.annotations();
}

/// Takes what is no text out of an object's labels and annotations, so that the object can be read.
pub fn keep_texts(object: &mut Value) {
    for field in ["labels", "annotations"] {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        match metadata.get_mut(field) {
            Some(Value::Object(texts)) => texts.retain(|_, text| text.is_string()),
            Some(_) => drop(metadata.remove(field)),
            None => {}
        }
    }
}

struct Checker<'a, 'r> {
    source: &'a Source,
    node: &'a Node,
    title: &'a str,
    report: &'r mut Report,
}

impl Checker<'_, '_> {
    /// Reports at the value of a field, or at its key with `at_key`.
    fn say(&mut self, rule: &'static Rule, path: &str, at_key: bool, saying: Saying) {
        let place = find(self.node, path);
        let offset = if place.found && !at_key { place.node.start } else { place.key };
        let saying = Saying { message: format!("{path}: {}", saying.message), ..saying };
        self.report.add(rule, self.source, offset, saying.about(self.title));
    }

    fn fields(&mut self) {
        let Some(Kind::Map(entries)) = self.node.get("metadata").map(|metadata| &metadata.kind) else {
            return;
        };
        for entry in entries.iter().filter(|entry| !FIELDS.contains(&entry.key.as_str())) {
            let saying = Saying::new("there is no such field");
            let saying = match nearest(&entry.key, FIELDS) {
                Some(meant) => saying.hint(format!("did you mean {meant}?")),
                None => saying.hint("known here: name, generateName, namespace, labels, annotations"),
            };
            self.say(&rules::SCHEMA_UNKNOWN_FIELD, &format!("metadata.{}", entry.key), true, saying);
        }
    }

    fn names(&mut self) {
        let is_name = |name: &str| name.len() <= LONGEST.0 && is_subdomain(name);
        for field in ["name", "generateName", "namespace"] {
            let path = format!("metadata.{field}");
            let place = find(self.node, &path);
            if !place.found {
                continue;
            }
            let saying = match (place.node.as_str(), field) {
                (None, _) => Saying::new("must be text").hint("quote it"),
                (Some(name), "namespace") if !(name.len() <= LONGEST.1 && is_dns_label(name)) => {
                    Saying::new(format!("{name:?} is not a namespace's name")).hint(
                        "use small letters, digits and -, with a letter or digit at both ends, and at most 63 characters",
                    )
                }
                (Some(name), "name") if !is_name(name) => no_name(name),
                (Some(name), "generateName") if !is_name(name.trim_end_matches('-')) => no_name(name),
                _ => continue,
            };
            self.say(&rules::METADATA, &path, false, saying);
        }
        if !find(self.node, "metadata.name").found && !find(self.node, "metadata.generateName").found {
            let saying = Saying::new("is missing").hint("give the object a name");
            self.say(&rules::METADATA, "metadata.name", false, saying);
        }
    }

    fn labels(&mut self) {
        for (key, value) in self.texts("labels") {
            let path = format!("metadata.labels[{key}]");
            if !is_label_key(&key) {
                let saying = Saying::new("is no key of a label").hint(KEY);
                self.say(&rules::METADATA, &path, true, saying);
            }
            if value.as_deref().is_some_and(|value| !value.is_empty() && !is_label_name(value)) {
                let saying = Saying::new("is no value of a label").hint(
                    "use at most 63 letters, digits, -, _ and ., with a letter or digit at either end, or put the text into an annotation",
                );
                self.say(&rules::METADATA, &path, false, saying);
            }
        }
    }

    fn annotations(&mut self) {
        for (key, _) in self.texts("annotations") {
            // Kubernetes lets the domain of an annotation have capitals.
            if !is_label_key(&key.to_ascii_lowercase()) {
                let saying = Saying::new("is no key of an annotation").hint(KEY);
                self.say(&rules::METADATA, &format!("metadata.annotations[{key}]"), true, saying);
            }
        }
    }

    /// The keys and values of a map of texts. What is no map, and what is no text, is reported; the value is then missing.
    fn texts(&mut self, field: &str) -> Vec<(String, Option<String>)> {
        let Some(map) = self.node.get("metadata").and_then(|metadata| metadata.get(field)) else {
            return Vec::new();
        };
        let is_null = |node: &Node| matches!(&node.kind, Kind::Scalar(scalar) if scalar.value.is_null());
        let Kind::Map(entries) = &map.kind else {
            if !is_null(map) {
                let saying = Saying::new("must be a map").hint("write NAME: TEXT, one a line");
                self.say(&rules::METADATA, &format!("metadata.{field}"), false, saying);
            }
            return Vec::new();
        };
        let mut texts = Vec::new();
        let mut wrong = Vec::new();
        for entry in entries {
            let text = entry.value.as_str().map(str::to_owned);
            if text.is_none() && !is_null(&entry.value) {
                let quoted = match &entry.value.kind {
                    Kind::Scalar(scalar) => format!("quote it: {:?}", scalar.text),
                    _ => "write a text".to_owned(),
                };
                wrong.push((entry.key.clone(), quoted));
            }
            texts.push((entry.key.clone(), text));
        }
        for (key, hint) in wrong {
            let saying = Saying::new("must be text").hint(hint);
            self.say(&rules::METADATA, &format!("metadata.{field}[{key}]"), false, saying);
        }
        texts
    }
}

/// The hint about keys of labels and annotations.
const KEY: &str = "use at most 63 letters, digits, -, _ and ., if need be with a domain and / before them";

fn no_name(name: &str) -> Saying {
    Saying::new(format!("{name:?} is not an object's name")).hint(
        "use small letters, digits, - and ., with a letter or digit at both ends, and at most 253 characters",
    )
}
