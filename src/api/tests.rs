//! The definitions as a whole.

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
        assert!(
            size < 40_000,
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
