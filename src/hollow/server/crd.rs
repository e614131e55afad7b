//! `CustomResourceDefinition`: checks, the status that makes it Established, and the resources that it serves.

use jiff::Timestamp;
use serde_json::{Value, json};

use kube_schema::{Columns, FieldError, FieldErrorKind, Shape, StructuralSchema};

use super::json::{get, list, meta, set, set_default, some_text, text};
use super::resource::{Custom, Resource, ScalePaths, StorageId};
use super::selectors::SelectableField;
use super::time::rfc3339;

/// The finalizer that keeps a CRD until all its objects are deleted.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in the defaults that the real server fills in: singular, list kind and conversion.
pub(super) fn default(crd: &mut Value) {
    let kind = text(crd, &["spec", "names", "kind"]).unwrap_or_default().to_owned();
    set_default(crd, &["spec", "names", "singular"], kind.to_lowercase());
    set_default(crd, &["spec", "names", "listKind"], format!("{kind}List"));
    set_default(crd, &["spec", "conversion"], json!({"strategy": "None"}));
}

/// Returns everything that is wrong with a CRD.
pub(super) fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut required = |path: &[&str]| {
        if some_text(crd, path).is_none() {
            errors.push(FieldError::new(FieldErrorKind::Required, path.join("."), ""));
        }
    };
    required(&["spec", "group"]);
    required(&["spec", "names", "plural"]);
    required(&["spec", "names", "kind"]);
    let scope = text(crd, &["spec", "scope"]).unwrap_or_default();
    if !matches!(scope, "Namespaced" | "Cluster") {
        let detail = "supported values: \"Cluster\", \"Namespaced\"";
        errors.push(FieldError::with_value(
            FieldErrorKind::NotSupported,
            "spec.scope",
            &scope.into(),
            detail,
        ));
    }
    let group = text(crd, &["spec", "group"]).unwrap_or_default();
    let wanted = format!("{}.{group}", text(crd, &["spec", "names", "plural"]).unwrap_or_default());
    let name = meta(crd, "name");
    if name != wanted {
        errors.push(FieldError::with_value(
            FieldErrorKind::Invalid,
            "metadata.name",
            &name.into(),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    errors.extend(validate_versions(crd));
    errors
}

fn validate_versions(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = list(crd, &["spec", "versions"]);
    let stored = versions.iter().filter(|v| get(v, &["storage"]) == Some(&Value::Bool(true))).count();
    if stored != 1 {
        errors.push(FieldError::with_value(
            FieldErrorKind::Invalid,
            "spec.versions",
            &json!(versions.iter().filter_map(|v| text(v, &["name"])).collect::<Vec<_>>()),
            "must have exactly one version marked as storage version",
        ));
    }
    for (i, version) in versions.iter().enumerate() {
        if some_text(version, &["name"]).is_none() {
            errors.push(FieldError::new(FieldErrorKind::Required, format!("spec.versions[{i}].name"), ""));
        }
        let path = format!("spec.versions[{i}].schema.openAPIV3Schema");
        match get(version, &["schema", "openAPIV3Schema"]) {
            None => errors.push(FieldError::new(FieldErrorKind::Required, path, "schemas are required")),
            Some(schema) => {
                errors.extend(StructuralSchema::parse(schema, &path).err().unwrap_or_default());
            }
        }
    }
    errors
}

/// Sets the status: the accepted names, the versions that have been stored, and the conditions `NamesAccepted` and
/// `Established`.
pub(super) fn establish(crd: &mut Value, now: Timestamp) {
    let names = get(crd, &["spec", "names"]).cloned().unwrap_or_default();
    set(crd, &["status", "acceptedNames"], names);
    let mut stored: Vec<Value> = list(crd, &["status", "storedVersions"]).to_vec();
    for version in list(crd, &["spec", "versions"]) {
        if get(version, &["storage"]) == Some(&Value::Bool(true))
            && let Some(name) = version.get("name")
            && !stored.contains(name)
        {
            stored.push(name.clone());
        }
    }
    set(crd, &["status", "storedVersions"], stored);
    if list(crd, &["status", "conditions"]).is_empty() {
        let at = rfc3339(now);
        set(
            crd,
            &["status", "conditions"],
            json!([
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": at,
                 "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": at,
                 "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ]),
        );
    }
}

/// The resources that a stored CRD serves, that of the storage version first.
pub(super) fn resources(crd: &Value) -> Vec<Resource> {
    let versions = list(crd, &["spec", "versions"]);
    let is_stored = |v: &Value| get(v, &["storage"]) == Some(&Value::Bool(true));
    let Some(stored) = versions.iter().find(|v| is_stored(v)) else { return Vec::new() };
    let mut served: Vec<&Value> =
        versions.iter().filter(|v| get(v, &["served"]) != Some(&Value::Bool(false))).collect();
    served.sort_by_key(|v| !is_stored(v));
    let group = text(crd, &["spec", "group"]).unwrap_or_default();
    let storage_api_version = format!("{group}/{}", text(stored, &["name"]).unwrap_or_default());
    served.into_iter().map(|version| resource(crd, version, &storage_api_version)).collect()
}

fn resource(crd: &Value, version: &Value, storage_api_version: &str) -> Resource {
    let owned = |path: &[&str]| text(crd, path).unwrap_or_default().to_owned();
    let names = |field: &str| -> Vec<String> {
        let found = list(crd, &["spec", "names", field]).iter();
        found.filter_map(|n| n.as_str().map(str::to_owned)).collect()
    };
    let raw = get(version, &["schema", "openAPIV3Schema"]);
    let schema = raw.and_then(|raw| StructuralSchema::parse(raw, "").ok());
    let group = owned(&["spec", "group"]);
    let plural = owned(&["spec", "names", "plural"]);
    Resource {
        version: text(version, &["name"]).unwrap_or_default().to_owned(),
        kind: owned(&["spec", "names", "kind"]),
        list_kind: owned(&["spec", "names", "listKind"]),
        singular: owned(&["spec", "names", "singular"]),
        short_names: names("shortNames"),
        categories: names("categories"),
        namespaced: text(crd, &["spec", "scope"]) == Some("Namespaced"),
        status: get(version, &["subresources", "status"]).is_some_and(Value::is_object),
        generation: true,
        scale: scale(version),
        storage: StorageId::new(&group, &plural),
        storage_api_version: storage_api_version.to_owned(),
        shape: schema.as_ref().map(Shape::custom).unwrap_or_default(),
        columns: Columns::custom(version),
        selectable: selectable(version),
        custom: Some(Custom { crd: meta(crd, "name").to_owned(), schema, raw_schema: raw.cloned() }),
        normalize: None,
        group,
        plural,
    }
}

fn path(text: &str) -> Vec<String> {
    text.split('.').filter(|p| !p.is_empty()).map(str::to_owned).collect()
}

fn scale(version: &Value) -> Option<ScalePaths> {
    let scale = get(version, &["subresources", "scale"])?;
    Some(ScalePaths {
        spec: path(text(scale, &["specReplicasPath"])?),
        status: path(text(scale, &["statusReplicasPath"])?),
        selector: some_text(scale, &["labelSelectorPath"]).map(path),
    })
}

fn selectable(version: &Value) -> Vec<SelectableField> {
    list(version, &["selectableFields"])
        .iter()
        .filter_map(|field| text(field, &["jsonPath"]))
        .map(|path| SelectableField::plain(path.trim_start_matches('.')))
        .collect()
}
