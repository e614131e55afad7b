use serde_json::{Value, json};

use super::*;

fn custom_schema() -> Value {
    json!({"type": "object", "description": "A job.", "properties": {
        "spec": {"type": "object", "description": "What to run.", "required": ["count"], "properties": {
            "count": {"type": "integer", "description": "How many."},
            "port": {"x-kubernetes-int-or-string": true},
            "note": {"type": "string", "nullable": true, "anyOf": [{"minLength": 1}]},
            "properties": {"type": "object", "properties": {"items": {"type": "string"}}},
        }},
        "status": {"type": "object"}}})
}

fn resources(schema: &Value) -> Vec<ResourceDoc<'_>> {
    let built_in = |group, kind, plural, namespaced| ResourceDoc {
        group,
        version: "v1",
        kind,
        plural,
        namespaced,
        subresources: &["status"],
        schema: None,
    };
    vec![
        built_in("", "Pod", "pods", true),
        built_in("", "Node", "nodes", false),
        built_in("apps", "Deployment", "deployments", true),
        ResourceDoc { schema: Some(schema), ..built_in("htc.example.com", "HTCJob", "htcjobs", true) },
    ]
}

/// Collects all `$ref`s of a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|v| references(v, found));
        }
        Value::Array(list) => list.iter().for_each(|v| references(v, found)),
        _ => {}
    }
}

fn dangling(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    references(document, &mut found);
    found.retain(|r| document.pointer(r.trim_start_matches('#')).is_none());
    found
}

#[test]
fn the_index_lists_group_versions_with_a_hash_of_their_content() {
    let schema = custom_schema();
    let index = openapi_v3_index(&resources(&schema));
    let paths: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["api/v1", "apis/apps/v1", "apis/htc.example.com/v1"]);
    let mut changed = custom_schema();
    changed["description"] = json!("Another.");
    let other = openapi_v3_index(&resources(&changed));
    assert_eq!(index["paths"]["api/v1"], other["paths"]["api/v1"]);
    assert_ne!(index["paths"]["apis/htc.example.com/v1"], other["paths"]["apis/htc.example.com/v1"]);
}

#[test]
fn explain_finds_kind_and_fields() {
    let schema = custom_schema();
    let document = openapi_v3("htc.example.com", "v1", &resources(&schema));
    assert_eq!(dangling(&document), Vec::<String>::new());
    let gvk = json!({"group": "htc.example.com", "kind": "HTCJob", "version": "v1"});
    let path = &document["paths"]["/apis/htc.example.com/v1/namespaces/{namespace}/htcjobs"];
    assert_eq!(path["post"]["x-kubernetes-group-version-kind"], gvk);
    let model = &document["components"]["schemas"]["com.example.htc.v1.HTCJob"];
    assert_eq!(model["x-kubernetes-group-version-kind"], json!([gvk]));
    assert_eq!(model["properties"]["spec"]["properties"]["count"]["description"], "How many.");
    assert_eq!(
        model["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    // A field may have the name of a keyword.
    assert_eq!(
        model["properties"]["spec"]["properties"]["properties"]["properties"]["items"]["type"],
        "string"
    );
}

#[test]
fn validation_is_left_to_the_server() {
    let schema = custom_schema();
    for (group, path) in [
        ("", "/api/v1/namespaces/{namespace}/pods/{name}"),
        ("", "/api/v1/nodes/{name}"),
        ("htc.example.com", "/apis/htc.example.com/v1/namespaces/{namespace}/htcjobs/{name}"),
    ] {
        let document = openapi_v3(group, "v1", &resources(&schema));
        let patch = &document["paths"][path]["patch"];
        let names: Vec<&Value> = patch["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
        assert!(names.contains(&&json!("fieldValidation")) && names.contains(&&json!("dryRun")), "{path}");
        let strategic =
            patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some();
        assert_eq!(strategic, group.is_empty());
    }
}

#[test]
fn client_side_apply_finds_merge_keys() {
    let schema = custom_schema();
    let document = openapi_v3("", "v1", &resources(&schema));
    assert_eq!(dangling(&document), Vec::<String>::new());
    let containers =
        &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["items"]["$ref"], "#/components/schemas/io.k8s.api.core.v1.Container");
}

#[test]
fn version_two_is_complete_and_has_no_unknown_keywords() {
    let schema = custom_schema();
    let document = openapi_v2(&resources(&schema));
    assert_eq!(dangling(&document), Vec::<String>::new());
    let spec = &document["definitions"]["com.example.htc.v1.HTCJob"]["properties"]["spec"]["properties"];
    assert_eq!(spec["note"], json!({}));
    assert_eq!(spec["port"]["type"], "string");
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    assert!(patch["consumes"].as_array().unwrap().contains(&json!("application/strategic-merge-patch+json")));
}
