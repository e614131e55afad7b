//! The definitions as a whole.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::definitions;

#[test]
fn every_field_is_documented() {
    for crd in definitions() {
        let name = crd.spec.names.kind.clone();
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let mut missing = Vec::new();
        undocumented(&schema["openAPIV3Schema"], &name, &mut missing);
        assert!(missing.is_empty(), "no description: {missing:#?}");
    }
}

fn undocumented(schema: &serde_json::Value, path: &str, missing: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        // Kubernetes documents its own.
        if name == "template" {
            continue;
        }
        if property["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
            missing.push(path.clone());
        }
        undocumented(property, &path, missing);
        undocumented(&property["items"], &path, missing);
        undocumented(&property["additionalProperties"], &path, missing);
    }
}

#[test]
fn definitions_stay_small() {
    for crd in definitions() {
        let size = serde_json::to_string(&crd).unwrap().len();
        // kubectl apply keeps a copy in an annotation, which has at most 262,144 bytes.
        let bound = if matches!(&*crd.spec.names.kind, "HTCJob" | "NodePolicy") { 100_000 } else { 40_000 };
        assert!(
            size < bound,
            "{}: {size} bytes; the cost of each write grows with the schema",
            crd.spec.names.kind
        );
    }
}

#[test]
fn every_kind_has_status_category_and_columns() {
    for crd in definitions() {
        let version = &crd.spec.versions[0];
        assert!(version.subresources.as_ref().is_some_and(|s| s.status.is_some()), "{}", crd.spec.names.kind);
        assert_eq!(crd.spec.names.categories.as_deref(), Some(&["slotwright".to_owned()][..]));
        assert!(version.additional_printer_columns.as_ref().is_some_and(|columns| columns.len() >= 4));
    }
}

#[test]
fn old_servers_take_every_definition() {
    for crd in definitions() {
        let text = serde_json::to_string(&crd).unwrap();
        assert!(!text.contains(r#""default":"""#), "{}: an empty default", crd.spec.names.kind);
        assert!(!text.contains(",null]"), "{}: a null in an enum", crd.spec.names.kind);
    }
}

/// An API server of 1.34 or later warns of each other format when a definition is applied.
#[test]
fn the_api_server_knows_all_formats() {
    for crd in definitions() {
        let kind = crd.spec.names.kind.clone();
        let text = serde_json::to_string(&crd).unwrap();
        for format in text.split(r#""format":""#).skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(["date-time", "double", "int32", "int64"].contains(&format), "{kind}: {format}");
        }
    }
}

/// The specs of slots are left out: the operator alone writes them, of what nodes have.
#[test]
fn specs_are_bounded_everywhere() {
    for crd in definitions() {
        let kind = crd.spec.names.kind.clone();
        if matches!(&*kind, "Slot" | "PartitionableSlot") {
            continue;
        }
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let mut open = Vec::new();
        unbounded(&schema["openAPIV3Schema"]["properties"]["spec"], &format!("{kind}.spec"), &mut open);
        assert!(open.is_empty(), "without a bound: {open:#?}");
    }
}

fn unbounded(node: &serde_json::Value, path: &str, open: &mut Vec<String>) {
    let has = |key: &str| !node[key].is_null();
    let bounded = match node["type"].as_str() {
        None => has("maxLength"),
        Some("string") => has("maxLength") || has("enum") || node["format"] == "date-time",
        Some("array") => has("maxItems"),
        Some("object") => has("maxProperties") || !has("additionalProperties"),
        Some(_) => true,
    };
    if !bounded {
        open.push(path.to_owned());
    }
    // The schemas of templates have a test of their own.
    let fields = node["properties"].as_object().into_iter().flatten();
    for (name, field) in fields.filter(|(name, _)| *name != "template") {
        unbounded(field, &format!("{path}.{name}"), open);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if has(key) {
            unbounded(&node[key], &format!("{path}{mark}"), open);
        }
    }
}

/// The schemas of pod templates.
fn templates() -> Vec<serde_json::Value> {
    let template = |crd: CustomResourceDefinition| {
        let crd = serde_json::to_value(crd).unwrap();
        let spec =
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let of = [&spec["template"], &spec["backfill"]["properties"]["template"]];
        of.into_iter().find(|template| template.is_object()).cloned()
    };
    definitions().into_iter().filter_map(template).collect()
}

#[test]
fn templates_are_closed_and_bounded_everywhere() {
    let templates = templates();
    assert_eq!(templates.len(), 2);
    for template in templates {
        let mut nodes = 0;
        closed_and_bounded(&template, "template", &mut nodes);
        assert!(nodes > 900, "{nodes} nodes: less than a pod has");
    }
}

fn closed_and_bounded(node: &serde_json::Value, path: &str, nodes: &mut usize) {
    *nodes += 1;
    let keys: Vec<&str> = node.as_object().unwrap().keys().map(String::as_str).collect();
    for key in keys {
        let known = [
            "type",
            "format",
            "nullable",
            "required",
            "properties",
            "additionalProperties",
            "items",
            "maxItems",
            "maxLength",
            "maxProperties",
            "description",
            "x-kubernetes-int-or-string",
        ];
        assert!(known.contains(&key), "{path}: {key}");
    }
    let bounded = |key: &str| assert!(node[key].is_u64(), "{path}: no {key}");
    match node["type"].as_str() {
        None => {
            assert_eq!(node["x-kubernetes-int-or-string"], true, "{path}");
            bounded("maxLength");
        }
        Some("string") => bounded("maxLength"),
        Some("array") => {
            bounded("maxItems");
            closed_and_bounded(&node["items"], &format!("{path}[]"), nodes);
        }
        Some("object") if node["additionalProperties"].is_object() => {
            bounded("maxProperties");
            closed_and_bounded(&node["additionalProperties"], &format!("{path}{{}}"), nodes);
        }
        Some("object") => {
            for (name, field) in node["properties"].as_object().unwrap_or_else(|| panic!("{path}: open")) {
                closed_and_bounded(field, &format!("{path}.{name}"), nodes);
            }
        }
        Some(other) => assert!(["integer", "number", "boolean"].contains(&other), "{path}: {other}"),
    }
}
