//! What is special about single built-in kinds, in the shape of the real server's strategies.

use jiff::Timestamp;
use serde_json::{Value, json};

use kube_schema::FieldError;

use super::crd;
use super::json::{finalizers, get, is_deleting, list, meta, set, set_default, text, texts};
use super::pods;
use super::resource::Resource;

/// Fills in the defaults of built-in kinds (those of custom resources are in their schema).
pub(super) fn default(res: &Resource, object: &mut Value) {
    if res.custom.is_some() {
        return;
    }
    match (res.group.as_str(), res.kind.as_str()) {
        ("", "Pod") => pods::default(object),
        ("", "Service") => {
            set_default(object, &["spec", "type"], "ClusterIP");
            set_default(object, &["spec", "sessionAffinity"], "None");
        }
        ("", "Secret") => {
            set_default(object, &["type"], "Opaque");
            merge_string_data(object);
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => {
            set_default(object, &["spec", "replicas"], 1);
            pods::default_template(object);
        }
        ("apps", "DaemonSet") | ("batch", "Job") => pods::default_template(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::default(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            set_default(object, &["preemptionPolicy"], "PreemptLowerPriority");
        }
        _ => {}
    }
}

/// `stringData` of a secret becomes `data`.
fn merge_string_data(secret: &mut Value) {
    let Some(Value::Object(plain)) = super::json::remove(secret, &["stringData"]) else { return };
    for (key, value) in plain {
        let encoded = base64(value.as_str().unwrap_or_default().as_bytes());
        set(secret, &["data", &key], encoded);
    }
}

/// Base64 of RFC 4648 with padding, as `[]byte` fields have it in JSON.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |n, b| (n << 8) | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let sextet = usize::try_from((group >> (18 - 6 * i)) & 63).unwrap_or(0);
            let letter = ALPHABET.get(sextet).copied().unwrap_or(b'=');
            text.push(if i <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Sets what a new object starts with.
pub(super) fn prepare_create(res: &Resource, object: &mut Value, now: Timestamp) {
    if res.custom.is_some() {
        return;
    }
    match (res.group.as_str(), res.kind.as_str()) {
        ("", "Pod") => {
            let class = pods::qos_class(object);
            set(object, &["status"], json!({"phase": "Pending", "qosClass": class}));
        }
        ("", "Namespace") => {
            let name = meta(object, "name").to_owned();
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
            set(object, &["spec", "finalizers"], json!(["kubernetes"]));
            set(object, &["status"], json!({"phase": "Active"}));
        }
        ("", "PersistentVolumeClaim") => set(object, &["status"], json!({"phase": "Pending"})),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            // Custom objects must be gone before their definition is.
            let mut names: Vec<&str> = finalizers(object);
            if !names.contains(&crd::CLEANUP) {
                names.push(crd::CLEANUP);
            }
            let names = texts(&names);
            set(object, &["metadata", "finalizers"], names);
            crd::establish(object, now);
        }
        _ => {}
    }
}

/// Puts right what an update changed and may not, or must change with it.
pub(super) fn prepare_update(res: &Resource, old: &Value, new: &mut Value, now: Timestamp) {
    if res.custom.is_some() {
        return;
    }
    match (res.group.as_str(), res.kind.as_str()) {
        ("", "Pod") => {
            // Client-side apply sends no nodeName for a bound pod: absent means unchanged.
            if text(new, &["spec", "nodeName"]).is_none() {
                super::json::copy(new, old, &["spec", "nodeName"]);
            }
            set_default(new, &["status", "qosClass"], pods::qos_class(new));
        }
        ("", "Namespace") if is_deleting(new) => set(new, &["status", "phase"], "Terminating"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::establish(new, now),
        _ => {}
    }
}

/// What the real server would refuse; `old` is the stored object in an update.
pub(super) fn validate(res: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if res.custom.is_some() {
        return Vec::new();
    }
    match (res.group.as_str(), res.kind.as_str()) {
        ("", "Pod") => match old {
            None => super::pod_rules::validate(object),
            Some(old) => super::pod_rules::validate_update(old, object),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::validate(object),
        ("", "Event") => validate_event(object),
        _ => Vec::new(),
    }
}

/// The one rule that clients trip over: an event lives in the namespace of what it is about (or in `default`).
fn validate_event(event: &Value) -> Vec<FieldError> {
    let about = text(event, &["involvedObject", "namespace"]).unwrap_or_default();
    let namespace = meta(event, "namespace");
    if about == namespace || (about.is_empty() && matches!(namespace, "default" | "kube-system")) {
        return Vec::new();
    }
    let detail = "does not match event.namespace";
    vec![FieldError::with_value(
        kube_schema::FieldErrorKind::Invalid,
        "involvedObject.namespace",
        &about.into(),
        detail,
    )]
}

/// The grace period that a delete of a built-in object really gets; `None` for kinds that are deleted at once.
pub(super) fn grace(res: &Resource, object: &Value, asked: Option<i64>) -> Option<i64> {
    if !res.is_pod() {
        return None;
    }
    let phase = text(object, &["status", "phase"]).unwrap_or_default();
    let unscheduled = super::json::some_text(object, &["spec", "nodeName"]).is_none();
    if unscheduled || matches!(phase, "Succeeded" | "Failed") {
        return Some(0);
    }
    let own = get(object, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let seconds = asked.or(own).unwrap_or(0);
    Some(if seconds < 0 { 1 } else { seconds })
}

/// True while a namespace has finalizers of its own (`spec.finalizers`).
pub(super) fn namespace_held(namespace: &Value) -> bool {
    !list(namespace, &["spec", "finalizers"]).is_empty()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
