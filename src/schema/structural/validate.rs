//! Validates objects, with the order and the words of the real server (the validator of `kube-openapi`, which
//! `apiextensions` uses).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::formats;
use super::node::{Additional, Checks, ListType, Node};
use crate::error::{FieldError, FieldErrorKind};

/// Returns everything that is wrong with a whole object.
pub(super) fn validate(root: &Node, obj: &Value) -> Vec<FieldError> {
    let mut walk = Walk { path: String::new(), errors: Vec::new() };
    walk.value(root, obj, true);
    walk.errors
}

struct Walk {
    path: String,
    errors: Vec<FieldError>,
}

impl Walk {
    fn at(&self) -> String {
        if self.path.is_empty() { "<nil>".to_owned() } else { self.path.clone() }
    }

    /// Adds an error such as `spec.count in body should be ...`.
    fn invalid(&mut self, bad: &Value, detail: &str) {
        let detail = format!("{} in body {detail}", self.path);
        self.errors.push(FieldError::with_value(FieldErrorKind::Invalid, self.at(), bad, &detail));
    }

    fn wrong_type(&mut self, wanted: &str, got: &str) {
        let detail = format!("{} in body must be of type {wanted}: {got:?}", self.path);
        let bad = Value::from(got);
        self.errors.push(FieldError::with_value(FieldErrorKind::TypeInvalid, self.at(), &bad, &detail));
    }

    fn value(&mut self, node: &Node, value: &Value, root: bool) {
        if value.is_null() {
            if !node.nullable && !node.kind.is_empty() {
                self.wrong_type(&node.kind, "null");
            }
            return;
        }
        if !self.has_type(node, value) {
            return;
        }
        self.junctions(&node.checks, value);
        self.choice(&node.checks.choices, value);
        match value {
            Value::String(text) => self.string(&node.checks, text),
            Value::Number(_) => self.number(&node.checks, value),
            Value::Array(list) => self.array(node, list),
            Value::Object(map) => self.object(node, map, root),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn has_type(&mut self, node: &Node, value: &Value) -> bool {
        let got = type_name(value);
        if node.int_or_string {
            if got != "integer" && got != "string" {
                self.wrong_type("integer,string", got);
                return false;
            }
            return true;
        }
        let fits = node.kind.is_empty() || node.kind == got || (node.kind == "number" && got == "integer");
        if !fits {
            self.wrong_type(&node.kind, got);
        }
        fits
    }

    fn choice(&mut self, choices: &[Value], value: &Value) {
        if choices.is_empty() || choices.contains(value) {
            return;
        }
        let texts: Vec<String> = choices
            .iter()
            .map(|c| c.as_str().map_or_else(|| format!("{:?}", c.to_string()), |s| format!("{s:?}")))
            .collect();
        let detail = format!("supported values: {}", texts.join(", "));
        self.errors.push(FieldError::with_value(FieldErrorKind::NotSupported, self.at(), value, &detail));
    }

    fn string(&mut self, checks: &Checks, text: &str) {
        let bad = Value::from(text);
        let length = text.chars().count() as u64;
        if let Some(max) = checks.max_length.filter(|max| length > *max) {
            let unit = if max == 1 { "byte" } else { "bytes" };
            let detail = format!("may not be more than {max} {unit}");
            self.errors.push(FieldError::new(FieldErrorKind::TooLong, self.at(), &detail));
        }
        if let Some(min) = checks.min_length.filter(|min| length < *min) {
            self.invalid(&bad, &format!("should be at least {min} chars long"));
        }
        if let Some(pattern) = checks.pattern.as_ref().filter(|p| !p.regex.is_match(text)) {
            self.invalid(&bad, &format!("should match '{}'", pattern.source));
        }
        if let Some(format) = checks.format.as_ref().filter(|f| !formats::matches(f, text)) {
            let detail = format!("{} in body must be of type {format}: {text:?}", self.path);
            self.errors.push(FieldError::with_value(FieldErrorKind::TypeInvalid, self.at(), &bad, &detail));
        }
    }

    fn number(&mut self, checks: &Checks, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        if let Some((max, exclusive)) = checks.maximum
            && (number > max || (exclusive && number >= max))
        {
            let or_equal = if exclusive { "" } else { " or equal to" };
            self.invalid(value, &format!("should be less than{or_equal} {max}"));
        }
        if let Some((min, exclusive)) = checks.minimum
            && (number < min || (exclusive && number <= min))
        {
            let or_equal = if exclusive { "" } else { " or equal to" };
            self.invalid(value, &format!("should be greater than{or_equal} {min}"));
        }
        if let Some(factor) = checks.multiple_of.filter(|f| *f != 0.0 && (number / f).fract() != 0.0) {
            self.invalid(value, &format!("should be a multiple of {factor}"));
        }
        let fits = match checks.format.as_deref() {
            Some("int32") => value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) || !value.is_i64(),
            Some("int64") => !value.is_u64() || value.is_i64(),
            _ => true,
        };
        if !fits {
            let format = checks.format.clone().unwrap_or_default();
            let detail = format!(
                "{} in body must be of type {format}: {value:?}",
                self.path,
                value = value.to_string()
            );
            self.errors.push(FieldError::with_value(FieldErrorKind::TypeInvalid, self.at(), value, &detail));
        }
    }

    fn array(&mut self, node: &Node, list: &[Value]) {
        let count = list.len() as u64;
        if let Some(min) = node.checks.min_items.filter(|min| count < *min) {
            self.invalid(&Value::from(count), &format!("should have at least {min} items"));
        }
        self.too_many(count, node.checks.max_items);
        if let Some(child) = &node.items {
            for (i, item) in list.iter().enumerate() {
                self.below(&format!("[{i}]"), |walk| walk.value(child, item, false));
            }
        }
        self.duplicates(node, list);
    }

    fn too_many(&mut self, count: u64, max: Option<u64>) {
        let Some(max) = max.filter(|max| count > *max) else { return };
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        self.errors.push(FieldError::with_value(
            FieldErrorKind::TooMany,
            self.at(),
            &Value::from(count),
            &detail,
        ));
    }

    /// Checks that no two items of a set are equal, and no two items of an associative list have the same keys.
    fn duplicates(&mut self, node: &Node, list: &[Value]) {
        let mut seen = BTreeSet::new();
        for (i, item) in list.iter().enumerate() {
            let identity = match &node.list_type {
                ListType::Atomic => return,
                ListType::Set => item.clone(),
                ListType::Map(keys) => {
                    let Some(child) = &node.items else { return };
                    self.identity(i, keys, child, item)
                }
            };
            if !seen.insert(identity.to_string()) {
                let field = format!("{}[{i}]", self.path);
                self.errors.push(FieldError::with_value(FieldErrorKind::Duplicate, field, &identity, ""));
            }
        }
    }

    fn identity(&mut self, index: usize, keys: &[String], child: &Node, item: &Value) -> Value {
        let mut identity = Map::new();
        for key in keys {
            let own = child.properties.get(key);
            match item.get(key).or(own.and_then(|n| n.default.as_ref())) {
                Some(value) => drop(identity.insert(key.clone(), value.clone())),
                None if child.checks.required.contains(key) => {}
                None => {
                    let field = format!("{}[{index}].{key}", self.path);
                    self.errors.push(FieldError::new(FieldErrorKind::Required, field, ""));
                }
            }
        }
        Value::Object(identity)
    }

    fn object(&mut self, node: &Node, map: &Map<String, Value>, root: bool) {
        let count = map.len() as u64;
        if let Some(min) = node.checks.min_properties.filter(|min| count < *min) {
            self.invalid(&Value::from(count), &format!("should have at least {min} properties"));
        }
        self.too_many(count, node.checks.max_properties);
        for name in node.checks.required.iter().filter(|name| !map.contains_key(*name)) {
            let field = self.child_path(name);
            self.errors.push(FieldError::new(FieldErrorKind::Required, field, ""));
        }
        if node.embedded_resource {
            self.embedded(map);
        }
        for (name, field) in map {
            let own = (root || node.embedded_resource) && name == "metadata";
            let declared = node.properties.contains_key(name);
            let Some(child) = node.field(name).filter(|_| !own) else { continue };
            let keyed = !declared && matches!(node.additional, Some(Additional::Schema(_)));
            let below = if keyed || !self.path.is_empty() { format!(".{name}") } else { name.clone() };
            self.below(&below, |walk| walk.value(child, field, false));
        }
    }

    fn embedded(&mut self, map: &Map<String, Value>) {
        for name in ["apiVersion", "kind"] {
            if map.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                let field = self.child_path(name);
                self.errors.push(FieldError::new(FieldErrorKind::Required, field, "must not be empty"));
            }
        }
    }

    fn child_path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn below(&mut self, suffix: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(suffix);
        visit(self);
        self.path.truncate(length);
    }

    /// The errors of `value` under another schema. They are not added to the errors of this walk.
    fn probe(&mut self, node: &Node, value: &Value) -> Vec<FieldError> {
        let outer = std::mem::take(&mut self.errors);
        self.value(node, value, false);
        std::mem::replace(&mut self.errors, outer)
    }

    fn junctions(&mut self, checks: &Checks, value: &Value) {
        self.any_of(&checks.any_of, value);
        self.one_of(&checks.one_of, value);
        self.all_of(&checks.all_of, value);
        if let Some(node) = &checks.not
            && self.probe(node, value).is_empty()
        {
            self.junction("must not validate the schema (not)");
        }
    }

    /// Adds an error about `allOf`, `anyOf`, `oneOf` or `not`. As in the real server, its field is the root, and the
    /// message has the path.
    fn junction(&mut self, detail: &str) {
        let detail = format!("{:?} {detail}", self.path);
        let error = FieldError::with_value(FieldErrorKind::Invalid, "<nil>", &Value::from(""), &detail);
        self.errors.push(error);
    }

    fn any_of(&mut self, nodes: &[Node], value: &Value) {
        let mut best: Option<Vec<FieldError>> = None;
        for node in nodes {
            let errors = self.probe(node, value);
            if errors.is_empty() {
                return;
            }
            best = best.or(Some(errors));
        }
        let Some(best) = best else { return };
        self.junction("must validate at least one schema (anyOf)");
        self.errors.extend(best);
    }

    fn one_of(&mut self, nodes: &[Node], value: &Value) {
        if nodes.is_empty() {
            return;
        }
        let results: Vec<Vec<FieldError>> = nodes.iter().map(|node| self.probe(node, value)).collect();
        let valid = results.iter().filter(|errors| errors.is_empty()).count();
        let found = match valid {
            1 => return,
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        self.junction(&format!("must validate one and only one schema (oneOf). {found}"));
        if let (0, Some(first)) = (valid, results.into_iter().next()) {
            self.errors.extend(first);
        }
    }

    fn all_of(&mut self, nodes: &[Node], value: &Value) {
        let mut valid = 0;
        let mut all = Vec::new();
        for node in nodes {
            let errors = self.probe(node, value);
            valid += usize::from(errors.is_empty());
            all.extend(errors);
        }
        if valid < nodes.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.errors.extend(all);
            self.junction(&format!("must validate all the schemas (allOf){none}"));
        }
    }
}

/// The JSON schema type of a value. As in Kubernetes, a number without a fraction is an integer.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(n) if n.as_f64().is_some_and(|f| f.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
