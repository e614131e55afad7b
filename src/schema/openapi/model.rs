//! The definitions of a set of resources. References have the form of version 2, `#/definitions/<name>`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ResourceDoc;
use crate::MAX_DEPTH;
use crate::builtin::{BUILT_INS, LIST_META};
use crate::shape::with_object_meta;

const PREFIX: &str = "#/definitions/";

/// The name of the definition of a resource's kind.
pub(super) fn name(resource: &ResourceDoc<'_>) -> String {
    let known = BUILT_INS.name(resource.group, resource.version, resource.kind);
    if let (None, Some(name)) = (resource.schema, known) {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = resource.group.split('.').filter(|p| !p.is_empty()).collect();
    parts.reverse();
    parts.extend([resource.version, resource.kind]);
    parts.join(".")
}

/// The definitions of the resources, of their lists, and of all types to which they refer.
pub(super) fn definitions(resources: &[&ResourceDoc<'_>]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for resource in resources {
        let name = name(resource);
        let mut schema = match (resource.schema, BUILT_INS.definitions.get(&name)) {
            (Some(custom), _) => custom_schema(custom),
            (None, Some(known)) => known.clone(),
            (None, None) => json!({"type": "object"}),
        };
        tag(&mut schema, resource.gvk());
        all.insert(format!("{name}List"), list(resource, &name));
        all.insert(name, schema);
    }
    let mut open: Vec<String> = all.values().flat_map(references).collect();
    while let Some(name) = open.pop() {
        if let Some(schema) = BUILT_INS.definitions.get(&name).filter(|_| !all.contains_key(&name)) {
            open.extend(references(schema));
            all.insert(name, schema.clone());
        }
    }
    all
}

fn tag(schema: &mut Value, gvk: Value) {
    if let Value::Object(map) = schema {
        map.insert("x-kubernetes-group-version-kind".into(), Value::Array(vec![gvk]));
    }
}

/// The schema of a CRD, with the fields that every object has and their descriptions.
fn custom_schema(schema: &Value) -> Value {
    let mut schema = with_object_meta(schema);
    let described = [
        ("apiVersion", "APIVersion defines the versioned schema of this representation of an object."),
        ("kind", "Kind is a string value representing the REST resource this object represents."),
        ("metadata", "Standard object's metadata."),
    ];
    for (field, text) in described {
        if let Some(Value::Object(field)) = schema.pointer_mut(&format!("/properties/{field}")) {
            field.entry("description").or_insert_with(|| text.into());
        }
    }
    schema
}

fn list(resource: &ResourceDoc<'_>, name: &str) -> Value {
    let gvk = json!({"group": resource.group, "kind": format!("{}List", resource.kind), "version": resource.version});
    json!({
        "description": format!("{}List is a list of {}", resource.kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": format!("{PREFIX}{LIST_META}")},
            "items": {"type": "array", "items": {"$ref": format!("{PREFIX}{name}")}},
        },
        "x-kubernetes-group-version-kind": [gvk],
    })
}

/// The names of the definitions to which a schema refers.
fn references(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    visit(schema, 0, &mut |map| {
        let name = map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(PREFIX));
        names.extend(name.map(str::to_owned));
    });
    names
}

fn visit(value: &Value, depth: usize, see: &mut impl FnMut(&Map<String, Value>)) {
    if depth > 2 * MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|child| visit(child, depth + 1, see));
        }
        Value::Array(list) => list.iter().for_each(|child| visit(child, depth + 1, see)),
        _ => {}
    }
}

/// Applies `change` to a schema and to every schema in it, the innermost first. The values of `default`, `enum` and
/// `example` are data, not schemas.
pub(super) fn each_schema(schema: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    each(schema, 0, change);
}

fn each(schema: &mut Value, depth: usize, change: &impl Fn(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    if depth > MAX_DEPTH {
        return;
    }
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(fields)) => {
                fields.values_mut().for_each(|field| each(field, depth + 1, change));
            }
            ("items" | "additionalProperties" | "not", child) => each(child, depth + 1, change),
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                for child in list {
                    each(child, depth + 1, change);
                }
            }
            _ => {}
        }
    }
    change(map);
}
