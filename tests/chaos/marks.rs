//! The marks that the operator put on a pod when the operator made the pod. People may take marks off; the store remembers
//! them where operators do not look, so that the checks know whose pod it is.

use api::labels;
use serde_json::{Map, Value, json};

/// Remembers the marks of a pod that is being made.
pub fn remember(pod: &mut Value) {
    let metadata = &pod["metadata"];
    if metadata["labels"][labels::JOB_UID].is_string() || metadata["labels"][labels::BACKFILL].is_string() {
        pod["spec"]["made"] = json!({"labels": metadata["labels"], "annotations": metadata["annotations"]});
    }
}

/// The labels and annotations with which a pod was made.
fn made(pod: &Value) -> &Value {
    let made = &pod["spec"]["made"];
    if made.is_object() { made } else { &pod["metadata"] }
}

/// A label that the pod was made with.
pub fn label<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    made(pod)["labels"][name].as_str()
}

/// An annotation that the pod was made with.
pub fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    made(pod)["annotations"][name].as_str()
}

/// Whether a pod has a label of the pool still.
pub fn has_labels(pod: &Value) -> bool {
    let labels = pod["metadata"]["labels"].as_object();
    labels.is_some_and(|labels| labels.keys().any(|name| name.starts_with(PREFIX)))
}

/// Takes all marks of the pool off: labels, annotations, or both.
pub fn take_off(pod: &mut Value, labels: bool, annotations: bool) {
    for (field, wanted) in [("labels", labels), ("annotations", annotations)] {
        if wanted && let Some(all) = pod["metadata"][field].as_object_mut() {
            let kept: Map<_, _> = all
                .iter()
                .filter(|(name, _)| !name.starts_with(PREFIX))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            *all = kept;
        }
    }
}

const PREFIX: &str = "slotwright.dev/";
