//! From `kubectl apply` to `kubectl apply --server-side`: the `last-applied-configuration` annotation.

use serde_json::{Map, Value};

use super::{Conflict, Writer, walk};
use crate::shape::Shape;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Only kubectl's own default manager migrates; users who name another have decided otherwise.
pub(super) fn is_kubectl(writer: &Writer<'_>) -> bool {
    writer.manager == "kubectl"
}

fn last_applied(obj: &Value) -> Option<&str> {
    let annotations = obj.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The conflicts that client-side apply has not set itself: fields of its last configuration are kubectl's own.
pub(super) fn not_from_last_applied(shape: &Shape, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let Some(config) = last_applied(live).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return conflicts;
    };
    let mut own = walk::fields(&config, shape.root()).paths();
    own.push(format!(".metadata.annotations.{ANNOTATION}"));
    conflicts.into_iter().filter(|c| !own.contains(&c.field)).collect()
}

/// Keeps the annotation current where there is one, so that a return to client-side apply finds the truth.
pub(super) fn refresh_last_applied(obj: &mut Value, applied: &Value) {
    if last_applied(obj).is_none() {
        return;
    }
    let mut config = applied.clone();
    let annotations = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(meta) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            meta.remove("annotations");
        }
    }
    let text = Value::from(format!("{config}\n"));
    let annotations: Option<&mut Map<String, Value>> =
        obj.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.insert(ANNOTATION.into(), text);
    }
}
