//! The rules of single built-in kinds: defaults, preparation and validation, divided as in the real server's
//! strategies.

use jiff::Timestamp;
use serde_json::{Value, json};

use kube_schema::FieldError;

use super::crd;
use super::json::{finalizers, get, is_deleting, list, meta, set, set_default, text, texts};
use super::pods;
use super::resource::Resource;

/// Fills in the defaults of a built-in kind. The defaults of custom resources are in their schemas.
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

/// Moves the `stringData` of a Secret into its `data`.
fn merge_string_data(secret: &mut Value) {
    let Some(Value::Object(plain)) = super::json::remove(secret, &["stringData"]) else { return };
    for (key, value) in plain {
        let encoded = base64(value.as_str().unwrap_or_default().as_bytes());
        set(secret, &["data", &key], encoded);
    }
}

/// Encodes bytes as base64 of RFC 4648 with padding, the JSON form of `[]byte` fields.
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

/// Sets the status and the finalizers that a new object of a built-in kind starts with.
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
            // The finalizer keeps the CRD until all its objects are deleted.
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

/// Sets the fields of a built-in kind that follow from an update, and restores those that the client left out.
pub(super) fn prepare_update(res: &Resource, old: &Value, new: &mut Value, now: Timestamp) {
    if res.custom.is_some() {
        return;
    }
    match (res.group.as_str(), res.kind.as_str()) {
        ("", "Pod") => {
            // A client-side apply of a bound pod does not send `nodeName`, so an absent one means no change.
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

/// Returns everything that is wrong with an object of a built-in kind; `old` is the stored object of an update.
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

/// Checks that an event is in the namespace of the object that it is about. An event about a cluster-wide object must be
/// in `default` or `kube-system`. Clients hardly ever break the other rules for events, so they are not checked.
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

/// The grace period of a delete in seconds; `None` for kinds without a grace period.
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

/// Whether a namespace has finalizers in `spec.finalizers`, which only namespaces have.
pub(super) fn has_namespace_finalizers(namespace: &Value) -> bool {
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
