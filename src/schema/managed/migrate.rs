//! The migration from `kubectl apply` to `kubectl apply --server-side`, by the annotation
//! `last-applied-configuration`.

use serde_json::{Map, Value};

use super::{Conflict, Writer, walk};
use crate::shape::Shape;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether the writer is kubectl's default manager, which alone migrates. A user who names another manager keeps the
/// fields of the two separate.
pub(super) fn is_kubectl(writer: &Writer<'_>) -> bool {
    writer.manager == "kubectl"
}

fn last_applied(obj: &Value) -> Option<&str> {
    let annotations = obj.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The conflicts without those about fields of the last configuration of client-side apply, which belong to kubectl.
pub(super) fn not_from_last_applied(shape: &Shape, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let Some(config) = last_applied(live).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return conflicts;
    };
    let mut own = walk::fields(&config, shape.root()).paths();
    own.push(format!(".metadata.annotations.{ANNOTATION}"));
    conflicts.into_iter().filter(|c| !own.contains(&c.field)).collect()
}

/// Updates the annotation if the object has one, so that a later client-side apply finds the configuration of this
/// apply.
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
