//! The validation of new pods and of changes to pods.

use serde_json::Value;

use kube_schema::{FieldError, FieldErrorKind, Quantity};

use super::json::{get, list, remove, some_text, text};
use super::names::label_fault;

/// Returns everything that is wrong with a new pod.
pub(super) fn validate(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = list(pod, &["spec", "containers"]);
    if containers.is_empty() {
        errors.push(FieldError::new(FieldErrorKind::Required, "spec.containers", ""));
    }
    let mut seen: Vec<&str> = Vec::new();
    for kind in ["initContainers", "containers"] {
        for (i, container) in list(pod, &["spec", kind]).iter().enumerate() {
            let path = format!("spec.{kind}[{i}]");
            errors.extend(validate_container(container, &path));
            let Some(name) = some_text(container, &["name"]) else { continue };
            if seen.contains(&name) {
                errors.push(FieldError::with_value(
                    FieldErrorKind::Duplicate,
                    format!("{path}.name"),
                    &name.into(),
                    "",
                ));
            }
            seen.push(name);
        }
    }
    let policy = text(pod, &["spec", "restartPolicy"]).unwrap_or_default();
    if !matches!(policy, "Always" | "OnFailure" | "Never") {
        let detail = "supported values: \"Always\", \"OnFailure\", \"Never\"";
        let field = "spec.restartPolicy";
        errors.push(FieldError::with_value(FieldErrorKind::NotSupported, field, &policy.into(), detail));
    }
    let grace = super::json::int(pod, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(0);
    if grace < 0 {
        let field = "spec.terminationGracePeriodSeconds";
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::with_value(FieldErrorKind::Invalid, field, &grace.into(), detail));
    }
    errors
}

fn validate_container(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match some_text(container, &["name"]) {
        None => errors.push(FieldError::new(FieldErrorKind::Required, format!("{path}.name"), "")),
        Some(name) => {
            if let Some(fault) = label_fault(name) {
                let field = format!("{path}.name");
                errors.push(FieldError::with_value(FieldErrorKind::Invalid, field, &name.into(), &fault));
            }
        }
    }
    if some_text(container, &["image"]).is_none() {
        errors.push(FieldError::new(FieldErrorKind::Required, format!("{path}.image"), ""));
    }
    for part in ["limits", "requests"] {
        let amounts = get(container, &["resources", part]).and_then(Value::as_object);
        for (name, amount) in amounts.into_iter().flatten() {
            errors.extend(validate_amount(container, path, part, name, amount));
        }
    }
    errors
}

fn validate_amount(container: &Value, path: &str, part: &str, name: &str, amount: &Value) -> Vec<FieldError> {
    let field = || format!("{path}.resources.{part}[{name}]");
    let invalid =
        |detail: &str| vec![FieldError::with_value(FieldErrorKind::Invalid, field(), amount, detail)];
    let parse = |value: &Value| value.as_str().unwrap_or_default().parse::<Quantity>();
    let quantity = match parse(amount) {
        Ok(quantity) => quantity,
        Err(error) => return invalid(&error.to_string()),
    };
    if quantity.milli() < 0 {
        return invalid("must be greater than or equal to 0");
    }
    let extended = name.contains('/') && !name.starts_with("kubernetes.io/");
    if extended && quantity.milli() % 1000 != 0 {
        return invalid("must be an integer");
    }
    if part == "limits" {
        return Vec::new();
    }
    let limit = get(container, &["resources", "limits", name]).and_then(|l| parse(l).ok());
    match limit {
        Some(limit) if quantity > limit => invalid(&format!("must be less than or equal to {name} limit")),
        Some(limit) if extended && quantity != limit => {
            invalid(&format!("must be equal to {name} limit of {}", limit.units()))
        }
        None if extended => {
            vec![FieldError::new(
                FieldErrorKind::Required,
                format!("{path}.resources.limits"),
                "Limit must be set for non overcommitable resources",
            )]
        }
        _ => Vec::new(),
    }
}

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Returns everything that is wrong with an update of a pod. Most fields of `spec` must not change.
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let gates = |pod: &Value| list(pod, &["spec", "schedulingGates"]).to_vec();
    let mut errors = Vec::new();
    if gates(new).iter().any(|gate| !gates(old).contains(gate)) {
        let detail = "only deletion is allowed, but found new scheduling gate";
        errors.push(FieldError::new(FieldErrorKind::Forbidden, "spec.schedulingGates", detail));
    }
    let added_only = {
        let (before, after) = (list(old, &["spec", "tolerations"]), list(new, &["spec", "tolerations"]));
        before.iter().all(|t| after.contains(t))
    };
    if !added_only || fixed(old) != fixed(new) {
        errors.push(FieldError::new(FieldErrorKind::Forbidden, "spec", UPDATABLE));
    }
    errors
}

/// The part of a pod's spec that must not change.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        remove(&mut spec, &[field]);
    }
    for kind in ["containers", "initContainers"] {
        for container in spec.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
            remove(container, &["image"]);
            remove(container, &["imagePullPolicy"]);
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(resources: &Value) -> Value {
        json!({"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i", "resources": resources}]}})
    }

    fn fields(errors: &[FieldError]) -> Vec<&str> {
        errors.iter().map(|e| e.field.as_str()).collect()
    }

    #[test]
    fn new_pods() {
        assert!(validate(&pod(&json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}))).is_empty());
        let cases = [
            (json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), "resources.requests[cpu]"),
            (json!({"limits": {"cpu": "x"}}), "resources.limits[cpu]"),
            (json!({"limits": {"cpu": "-1"}}), "resources.limits[cpu]"),
            (json!({"requests": {"nvidia.com/gpu": "1"}}), "resources.limits"),
            (json!({"limits": {"nvidia.com/gpu": "500m"}}), "resources.limits[nvidia.com/gpu]"),
        ];
        for (resources, field) in cases {
            let want = format!("spec.containers[0].{field}");
            assert_eq!(fields(&validate(&pod(&resources))), [want], "{resources}");
        }
        let empty = json!({"spec": {"restartPolicy": "Never"}});
        assert_eq!(fields(&validate(&empty)), ["spec.containers"]);
    }

    #[test]
    fn changed_pods() {
        let old = pod(&json!({}));
        let mut new = old.clone();
        super::super::json::set(&mut new, &["spec", "tolerations"], json!([{"key": "a"}]));
        assert!(validate_update(&old, &new).is_empty());
        assert_eq!(fields(&validate_update(&new, &old)), ["spec"]);
        super::super::json::set(&mut new, &["spec", "nodeName"], "n");
        assert_eq!(fields(&validate_update(&old, &new)), ["spec"]);
    }
}
