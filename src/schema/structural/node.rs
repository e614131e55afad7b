//! The parsed schema tree.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use crate::MAX_DEPTH;
use crate::error::{FieldError, FieldErrorKind};

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ListType {
    /// An apply replaces the list as a whole. This is the default.
    #[default]
    Atomic,
    /// The items are distinct scalars.
    Set,
    /// The items are objects with distinct values of these fields.
    Map(Vec<String>),
}

/// `additionalProperties`: the fields that an object may have in addition to `properties`.
#[derive(Debug, Clone)]
pub(super) enum Additional {
    /// `additionalProperties: true`.
    Any,
    /// `additionalProperties: {...}`.
    Schema(Box<Node>),
}

/// A compiled `pattern` with its source.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) source: String,
    pub(super) regex: Regex,
}

/// The value checks of a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Checks {
    pub(super) choices: Vec<Value>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<String>,
    pub(super) minimum: Option<(f64, bool)>,
    pub(super) maximum: Option<(f64, bool)>,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
}

/// The schema of one value.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are the boolean keywords of the schema language")]
pub(super) struct Node {
    /// `type`; empty if the schema has none.
    pub(super) kind: String,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) preserve_unknown: bool,
    pub(super) embedded_resource: bool,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Additional>,
    pub(super) items: Option<Box<Node>>,
    pub(super) default: Option<Value>,
    pub(super) list_type: ListType,
    pub(super) checks: Box<Checks>,
}

impl Node {
    /// The schema of this field of an object; `None` if the schema does not have the field.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        match (self.properties.get(name), &self.additional) {
            (Some(node), _) => Some(node),
            (None, Some(Additional::Schema(node))) => Some(node),
            _ => None,
        }
    }
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Parses schemas, and collects everything that is wrong with them.
pub(super) struct Parser {
    path: String,
    depth: usize,
    errors: Vec<FieldError>,
    rules: bool,
}

impl Parser {
    pub(super) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), depth: 0, errors: Vec::new(), rules: false }
    }

    /// Returns the errors, and whether a schema has CEL rules.
    pub(super) fn finish(self) -> (Vec<FieldError>, bool) {
        (self.errors, self.rules)
    }

    /// Parses the schema of a whole object, which must have `type: object`.
    pub(super) fn root(&mut self, schema: &Value) -> Node {
        let Some(map) = schema.as_object() else {
            self.error(FieldErrorKind::Required, "", "schemas are required");
            return Node::default();
        };
        match map.get("type").and_then(Value::as_str) {
            None => self.error(FieldErrorKind::Required, ".type", "must not be empty at the root"),
            Some("object") => {}
            Some(other) => self.errors.push(FieldError::with_value(
                FieldErrorKind::Invalid,
                format!("{}.type", self.path),
                &Value::from(other),
                "must be object at the root",
            )),
        }
        self.node(map, None)
    }

    fn error(&mut self, kind: FieldErrorKind, below: &str, detail: &str) {
        self.errors.push(FieldError::new(kind, format!("{}{below}", self.path), detail));
    }

    /// Parses the schema at `below`, a path relative to the current one. If the schema must have a type, `what` says of
    /// what it is the schema.
    fn child(&mut self, schema: &Value, below: &str, what: Option<&str>) -> Node {
        let length = self.path.len();
        self.path.push_str(below);
        self.depth += 1;
        let node = match schema.as_object() {
            // No real schema is so deep. The rest counts as opaque, so that no walk over the tree can overflow the stack.
            Some(_) if self.depth > MAX_DEPTH => Node { preserve_unknown: true, ..Node::default() },
            Some(map) => self.node(map, what),
            None => {
                self.error(FieldErrorKind::Invalid, "", "a schema must be an object");
                Node::default()
            }
        };
        self.depth -= 1;
        self.path.truncate(length);
        node
    }

    fn node(&mut self, map: &Map<String, Value>, what: Option<&str>) -> Node {
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let node = Node {
            kind: text(map, "type"),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string") || is_int_or_string_pattern(map),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            properties: self.properties(map),
            additional: self.additional(map),
            items: map.get("items").map(|s| Box::new(self.child(s, ".items", Some("array items")))),
            default: map.get("default").cloned(),
            list_type: self.list_type(map),
            checks: Box::new(self.checks(map)),
        };
        self.rules |= map.contains_key("x-kubernetes-validations");
        self.structural(&node, what);
        if flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.error(FieldErrorKind::Forbidden, ".uniqueItems", detail);
        }
        node
    }

    /// Checks the rules for structural schemas on which the rest of this module relies.
    fn structural(&mut self, node: &Node, what: Option<&str>) {
        if node.kind.is_empty() {
            if let Some(what) = what.filter(|_| !node.int_or_string && !node.preserve_unknown) {
                let detail = format!("must not be empty for specified {what}");
                self.error(FieldErrorKind::Required, ".type", &detail);
            }
        } else if !TYPES.contains(&node.kind.as_str()) {
            let supported = TYPES.map(|t| format!("{t:?}")).join(", ");
            self.errors.push(FieldError::with_value(
                FieldErrorKind::NotSupported,
                format!("{}.type", self.path),
                &Value::from(node.kind.as_str()),
                &format!("supported values: {supported}"),
            ));
        }
        if node.kind == "array" && node.items.is_none() {
            self.error(FieldErrorKind::Required, ".items", "must be specified");
        }
        if !node.properties.is_empty() && node.additional.is_some() {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.error(FieldErrorKind::Forbidden, ".additionalProperties", detail);
        }
    }

    fn properties(&mut self, map: &Map<String, Value>) -> BTreeMap<String, Node> {
        let Some(fields) = map.get("properties").and_then(Value::as_object) else { return BTreeMap::new() };
        let mut nodes = BTreeMap::new();
        for (name, schema) in fields {
            let node = self.child(schema, &format!(".properties[{name}]"), Some("object fields"));
            nodes.insert(name.clone(), node);
        }
        nodes
    }

    fn additional(&mut self, map: &Map<String, Value>) -> Option<Additional> {
        match map.get("additionalProperties")? {
            Value::Bool(true) => Some(Additional::Any),
            Value::Bool(false) | Value::Null => None,
            schema => {
                let node = self.child(schema, ".additionalProperties", Some("object fields"));
                Some(Additional::Schema(Box::new(node)))
            }
        }
    }

    fn list_type(&mut self, map: &Map<String, Value>) -> ListType {
        match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListType::Set,
            Some("map") => {
                let keys = strings(map, "x-kubernetes-list-map-keys");
                if keys.is_empty() {
                    let detail = "must not be empty if x-kubernetes-list-type is map";
                    self.error(FieldErrorKind::Required, ".x-kubernetes-list-map-keys", detail);
                }
                ListType::Map(keys)
            }
            _ => ListType::Atomic,
        }
    }

    fn checks(&mut self, map: &Map<String, Value>) -> Checks {
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        let number = |key: &str| map.get(key).and_then(Value::as_f64);
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        Checks {
            choices: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            pattern: self.pattern(map),
            format: map.get("format").and_then(Value::as_str).map(str::to_owned),
            minimum: number("minimum").map(|n| (n, flag("exclusiveMinimum"))),
            maximum: number("maximum").map(|n| (n, flag("exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            required: strings(map, "required"),
            all_of: self.junction(map, "allOf"),
            any_of: if is_int_or_string_pattern(map) { Vec::new() } else { self.junction(map, "anyOf") },
            one_of: self.junction(map, "oneOf"),
            not: map.get("not").map(|s| Box::new(self.child(s, ".not", None))),
        }
    }

    fn junction(&mut self, map: &Map<String, Value>, key: &str) -> Vec<Node> {
        let schemas = map.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        schemas.iter().enumerate().map(|(i, s)| self.child(s, &format!(".{key}[{i}]"), None)).collect()
    }

    fn pattern(&mut self, map: &Map<String, Value>) -> Option<Pattern> {
        let source = map.get("pattern").and_then(Value::as_str)?;
        match Regex::new(source) {
            Ok(regex) => Some(Pattern { source: source.to_owned(), regex }),
            Err(error) => {
                self.errors.push(FieldError::with_value(
                    FieldErrorKind::Invalid,
                    format!("{}.pattern", self.path),
                    &Value::from(source),
                    &format!("must be a valid regular expression, but isn't: {error}"),
                ));
                None
            }
        }
    }
}

/// Whether the schema has both `x-kubernetes-int-or-string` and the same in long form: `anyOf: [{type: integer}, {type:
/// string}]`.
fn is_int_or_string_pattern(map: &Map<String, Value>) -> bool {
    let Some([first, second]) = map.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) else {
        return false;
    };
    let is = |value: &Value, kind: &str| value.get("type").and_then(Value::as_str) == Some(kind);
    map.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true)
        && is(first, "integer")
        && is(second, "string")
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn strings(map: &Map<String, Value>, key: &str) -> Vec<String> {
    let list = map.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
