//! The rules for names, labels and the rest of `metadata` that the real server enforces.

use serde_json::Value;

use api::names::{is_dns_label, is_label_name, is_subdomain};
use kube_schema::{FieldError, FieldErrorKind};

use super::json::{get, list, meta, some_text};
use super::resource::Resource;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// The most bytes that the annotations of one object may have together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The fault of a text as a DNS label; `None` if the text is one.
pub(super) fn label_fault(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_dns_label(text)).then(|| LABEL.to_owned())
}

fn subdomain_fault(text: &str) -> Option<String> {
    if text.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    (!is_subdomain(text)).then(|| SUBDOMAIN.to_owned())
}

fn path_segment_fault(text: &str) -> Option<String> {
    if matches!(text, "." | "..") {
        return Some(format!("may not be '{text}'"));
    }
    ['/', '%'].into_iter().find(|c| text.contains(*c)).map(|c| format!("may not contain '{c}'"))
}

fn qualified_fault(text: &str) -> Option<String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(p, n)| (Some(p), n));
    if let Some(fault) = prefix.and_then(subdomain_fault) {
        return Some(format!("prefix part {fault}"));
    }
    (!is_label_name(name)).then(|| QUALIFIED.to_owned())
}

fn name_fault(res: &Resource, name: &str) -> Option<String> {
    match res.group.as_str() {
        "rbac.authorization.k8s.io" => path_segment_fault(name),
        "" if matches!(res.kind.as_str(), "Namespace" | "Service") => label_fault(name),
        _ => subdomain_fault(name),
    }
}

fn invalid(field: impl Into<String>, value: &str, detail: &str) -> FieldError {
    FieldError::with_value(FieldErrorKind::Invalid, field, &value.into(), detail)
}

/// Returns everything that is wrong with the metadata of an object.
pub(super) fn validate_metadata(res: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta(object, "name");
    if name.is_empty() {
        errors.push(FieldError::new(
            FieldErrorKind::Required,
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(fault) = name_fault(res, name) {
        errors.push(invalid("metadata.name", name, &fault));
    }
    for (key, value) in members(object, "labels") {
        if let Some(fault) = qualified_fault(key) {
            errors.push(invalid("metadata.labels", key, &fault));
        }
        let value = value.as_str().unwrap_or_default();
        if !value.is_empty() && !is_label_name(value) {
            let fault = if value.len() > 63 { "must be no more than 63 characters" } else { LABEL_VALUE };
            errors.push(invalid("metadata.labels", value, fault));
        }
    }
    let mut size = 0;
    for (key, value) in members(object, "annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(fault) = qualified_fault(&key.to_lowercase()) {
            errors.push(invalid("metadata.annotations", key, &fault));
        }
    }
    if size > MAX_ANNOTATIONS {
        let detail = format!("may not be more than {MAX_ANNOTATIONS} bytes");
        errors.push(FieldError::new(FieldErrorKind::TooLong, "metadata.annotations", &detail));
    }
    for finalizer in super::json::finalizers(object) {
        if let Some(fault) = qualified_fault(finalizer) {
            errors.push(invalid("metadata.finalizers", finalizer, &fault));
        }
    }
    errors.extend(validate_owners(object));
    errors
}

fn members<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    get(object, &["metadata", field]).and_then(Value::as_object).into_iter().flatten()
}

fn validate_owners(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let owners = list(object, &["metadata", "ownerReferences"]);
    for (i, owner) in owners.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if some_text(owner, &[field]).is_none() {
                let path = format!("metadata.ownerReferences[{i}].{field}");
                errors.push(invalid(path, "", "must not be empty"));
            }
        }
    }
    let controllers = owners.iter().filter(|o| o.get("controller") == Some(&Value::Bool(true)));
    if controllers.count() > 1 {
        let detail = "Only one reference can have Controller set to true";
        errors.push(invalid("metadata.ownerReferences", "", detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults() {
        for good in ["a", "a-b.c", "0", "a.0"] {
            assert_eq!(subdomain_fault(good), None, "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a"] {
            assert!(subdomain_fault(bad).is_some(), "{bad}");
        }
        for good in ["a", "a.io/B_c", "slotwright.dev/x", "A-1"] {
            assert_eq!(qualified_fault(good), None, "{good}");
        }
        for bad in ["", "a/", "/a", "a/b/c", "UP/x", "a b"] {
            assert!(qualified_fault(bad).is_some(), "{bad}");
        }
        assert_eq!(path_segment_fault("system:node"), None);
        assert!(path_segment_fault("a/b").is_some());
    }
}
