//! The scale subresource: reads and writes an object's number of replicas as an `autoscaling/v1` `Scale`.

use std::sync::Arc;

use serde_json::{Value, json};

use kube_schema::{FieldError, FieldErrorKind, merge_patch};

use super::api::{Api, Call};
use super::error::ApiError;
use super::json::{get, meta, set, some_text};
use super::resource::{Resource, ScalePaths};
use super::store::Key;
use super::write::{Part, Source, update};

fn steps(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn paths(res: &Resource) -> Result<&ScalePaths, ApiError> {
    res.scale.as_ref().ok_or_else(ApiError::no_such_resource)
}

/// The `Scale` of an object.
pub(super) fn read(res: &Resource, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(res)?;
    let count = |path: &[String]| get(object, &steps(path)).and_then(Value::as_i64).unwrap_or(0);
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        super::json::copy(&mut metadata, object.get("metadata").unwrap_or(&Value::Null), &[field]);
    }
    let mut status = json!({"replicas": count(&paths.status)});
    if let Some(selector) = paths.selector.as_deref().and_then(|p| some_text(object, &steps(p))) {
        set(&mut status, &["selector"], selector);
    } else if let Some(labels) = get(object, &["spec", "selector", "matchLabels"]).and_then(Value::as_object)
    {
        let pairs: Vec<String> =
            labels.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
        set(&mut status, &["selector"], pairs.join(","));
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": count(&paths.spec)}, "status": status}))
}

/// Writes the `spec.replicas` of a `Scale` into the object, and returns the `Scale` afterwards.
pub(super) fn write(api: &Api, call: &mut Call, key: &Key, source: Source) -> Result<Value, ApiError> {
    let res = Arc::clone(&call.res);
    let spec_path = paths(&res)?.spec.clone();
    let old = api.fetch(&res, key)?;
    let mut scale = read(&res, &old.value)?;
    let mut version = None;
    match source {
        Source::Replace(body) => {
            version = some_text(&body, &["metadata", "resourceVersion"]).map(str::to_owned);
            scale = body;
        }
        Source::JsonPatch(patch) => scale = kube_schema::json_patch(&scale, &patch)?,
        Source::MergePatch(patch) | Source::StrategicPatch(patch) | Source::Apply(patch) => {
            version = some_text(&patch, &["metadata", "resourceVersion"]).map(str::to_owned);
            merge_patch(&mut scale, &patch);
        }
    }
    let replicas = get(&scale, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
    if replicas < 0 {
        let error = FieldError::with_value(
            FieldErrorKind::Invalid,
            "spec.replicas",
            &replicas.into(),
            "must be greater than or equal to 0",
        );
        return Err(ApiError::invalid(&res, meta(&old.value, "name"), &[error]));
    }
    let mut patch = json!({});
    set(&mut patch, &steps(&spec_path), replicas);
    if let Some(version) = version {
        set(&mut patch, &["metadata", "resourceVersion"], version);
    }
    let (object, _) = update(api, call, key, Part::Main, &Source::MergePatch(patch))?;
    read(&res, &object.value)
}
