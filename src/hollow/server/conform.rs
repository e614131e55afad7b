//! Makes an object conform to its type: drops unknown fields and fills in the defaults of the schema.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::error::ApiError;
use super::json::{remove, set};
use super::resource::Resource;

/// Prunes `object` and fills in the defaults of its schema. Returns the paths of the fields that were dropped.
pub(super) fn conform(res: &Resource, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let misfit = |error: String| {
        let (kind, version) = (&res.kind, &res.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    };
    // An API server in Go takes times in them that the types here do not have.
    let managed = remove(object, &["metadata", "managedFields"]);
    let mut unknown = Vec::new();
    if let Some(normalize) = res.normalize {
        let typed = normalize(object).map_err(misfit)?;
        dropped_fields(object, &typed, "", &mut unknown);
        *object = typed;
    } else {
        let before = object.get("metadata").cloned().unwrap_or_default();
        let typed = ObjectMeta::deserialize(&before).map_err(|e| misfit(e.to_string()))?;
        let typed = serde_json::to_value(&typed).map_err(|e| misfit(e.to_string()))?;
        dropped_fields(&before, &typed, "metadata", &mut unknown);
        set(object, &["metadata"], typed);
    }
    if let Some(managed) = managed {
        set(object, &["metadata", "managedFields"], managed);
    }
    if let Some(schema) = res.custom.as_ref().and_then(|c| c.schema.as_ref()) {
        unknown.extend(schema.prune(object));
        schema.default(object);
    }
    drop_empty(object);
    Ok(unknown)
}

/// Removes empty lists, maps and texts from `metadata`, because the real server does not store them.
fn drop_empty(object: &mut Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName"] {
        let path = ["metadata", field];
        let empty = match super::json::get(object, &path) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            _ => false,
        };
        if empty {
            remove(object, &path);
        }
    }
}

/// Collects the paths that `given` has and `kept` does not have.
fn dropped_fields(given: &Value, kept: &Value, path: &str, unknown: &mut Vec<String>) {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            for (key, value) in given.iter().filter(|(_, v)| !v.is_null()) {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match kept.get(key) {
                    Some(other) => dropped_fields(value, other, &at, unknown),
                    None => unknown.push(at),
                }
            }
        }
        (Value::Array(given), Value::Array(kept)) => {
            for (i, (value, other)) in given.iter().zip(kept).enumerate() {
                dropped_fields(value, other, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn built_in_objects_lose_what_their_type_does_not_know() {
        let pods = super::super::builtin::resources().into_iter().find(Resource::is_pod).unwrap();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"name": "c", "imagee": "x", "image": null}], "foo": 1}});
        let unknown = conform(&pods, &mut pod).unwrap();
        assert_eq!(unknown, ["spec.containers[0].imagee", "spec.foo"]);
        assert_eq!(
            pod,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c"}]}})
        );
        let mut bad = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": 3}});
        let error = conform(&pods, &mut bad).unwrap_err();
        assert!(error.message.starts_with("Pod in version \"v1\" cannot be handled as a Pod: "), "{error}");
    }
}
