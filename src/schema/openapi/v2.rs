//! OpenAPI 2.0 (Swagger), which describes the whole API in one document.

use serde_json::{Map, Value, json};

use super::{ResourceDoc, info, model, paths};

/// The keywords that version 2 does not have.
const UNKNOWN: [&str; 5] = ["oneOf", "anyOf", "allOf", "not", "nullable"];

/// The document of all resources.
pub(super) fn document(resources: &[&ResourceDoc<'_>]) -> Value {
    let mut definitions = Map::new();
    for (name, mut schema) in model::definitions(resources) {
        model::each_schema(&mut schema, &simplify);
        definitions.insert(name, schema);
    }
    let mut all = Map::new();
    for resource in resources {
        let name = model::name(resource);
        for operation in paths::operations(resource) {
            let body = operation_object(&operation, resource, &name);
            paths::insert(&mut all, &operation, body);
        }
    }
    json!({"swagger": "2.0", "info": info(), "paths": all, "definitions": definitions})
}

fn operation_object(
    operation: &paths::Operation,
    resource: &ResourceDoc<'_>,
    name: &str,
) -> Map<String, Value> {
    let of = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
    let answer = of(&if operation.list { format!("{name}List") } else { name.to_owned() });
    let mut map = paths::common(operation, resource);
    let in_path = operation
        .place
        .iter()
        .map(|name| json!({"name": name, "in": "path", "required": true, "type": "string"}));
    let in_query =
        operation.query.iter().map(|(name, kind)| json!({"name": name, "in": "query", "type": kind}));
    let mut parameters: Vec<Value> = in_path.chain(in_query).collect();
    if !operation.consumes.is_empty() {
        let schema = if operation.method == "patch" { json!({"type": "object"}) } else { of(name) };
        parameters.push(json!({"name": "body", "in": "body", "required": true, "schema": schema}));
        map.insert("consumes".into(), json!(operation.consumes));
    }
    map.insert("parameters".into(), Value::Array(parameters));
    map.insert("produces".into(), json!(["application/json"]));
    map.insert("schemes".into(), json!(["https"]));
    map.insert("responses".into(), json!({"200": {"description": "OK", "schema": answer}}));
    map
}

/// Removes from a schema what version 2 cannot express, as the real server does when it publishes CRDs.
fn simplify(schema: &mut Map<String, Value>) {
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    let (nullable, preserve) = (flag("nullable"), flag("x-kubernetes-preserve-unknown-fields"));
    let int_or_string = flag("x-kubernetes-int-or-string");
    for key in UNKNOWN {
        schema.remove(key);
    }
    if nullable || preserve {
        for key in ["type", "items", "properties"] {
            schema.remove(key);
        }
    }
    if preserve && schema.get("x-kubernetes-group-version-kind").is_some() {
        schema.insert("type".into(), "object".into());
    }
    if int_or_string {
        schema.insert("type".into(), "string".into());
        schema.insert("format".into(), "int-or-string".into());
    }
}
