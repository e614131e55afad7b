//! OpenAPI 3.0, which has one document for each group version.

use serde_json::{Map, Value, json};

use super::{ResourceDoc, info, model, paths};

/// The document of the resources of one group version.
pub(super) fn document(resources: &[&ResourceDoc<'_>]) -> Value {
    let mut schemas = Map::new();
    for (name, mut schema) in model::definitions(resources) {
        model::each_schema(&mut schema, &rewrite);
        schemas.insert(name, schema);
    }
    let mut all = Map::new();
    for resource in resources {
        let name = model::name(resource);
        for operation in paths::operations(resource) {
            let body = operation_object(&operation, resource, &name);
            paths::insert(&mut all, &operation, body);
        }
    }
    json!({"openapi": "3.0.0", "info": info(), "paths": all, "components": {"schemas": schemas}})
}

fn operation_object(
    operation: &paths::Operation,
    resource: &ResourceDoc<'_>,
    name: &str,
) -> Map<String, Value> {
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let answer = of(&if operation.list { format!("{name}List") } else { name.to_owned() });
    let mut map = paths::common(operation, resource);
    let in_path = operation.place.iter().map(|name| {
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
    });
    let in_query = operation.query.iter().map(
        |(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}),
    );
    map.insert("parameters".into(), in_path.chain(in_query).collect());
    if !operation.consumes.is_empty() {
        let body = |media: &&str| {
            let schema = if operation.method == "patch" { json!({"type": "object"}) } else { of(name) };
            ((*media).to_owned(), json!({ "schema": schema }))
        };
        let content: Map<String, Value> = operation.consumes.iter().map(body).collect();
        map.insert("requestBody".into(), json!({"content": content, "required": true}));
    }
    let content = json!({"application/json": {"schema": answer}});
    map.insert("responses".into(), json!({"200": {"description": "OK", "content": content}}));
    map
}

/// Rewrites a reference for version 3: it refers to `components`, and is alone in an `allOf` if the schema has other
/// keywords. Expresses int-or-string as a `oneOf`.
fn rewrite(schema: &mut Map<String, Value>) {
    if let Some(name) =
        schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/definitions/"))
    {
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        schema.remove("$ref");
        if schema.is_empty() {
            schema.insert("$ref".into(), reference.get("$ref").cloned().unwrap_or_default());
        } else {
            schema.insert("allOf".into(), json!([reference]));
        }
    }
    let int_or_string = schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true);
    if int_or_string && !schema.contains_key("anyOf") && !schema.contains_key("oneOf") {
        schema.insert("oneOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
    }
}
