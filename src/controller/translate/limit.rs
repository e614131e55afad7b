//! Concurrency limits that admins set.

use kube::ResourceExt;

use api::ConcurrencyLimit;
use model::pool::limits::{is_limit_name, is_plain_name};
use model::pool::{LimitObject, Problem};

/// What the pool knows of a `ConcurrencyLimit`.
pub fn limit(object: &ConcurrencyLimit) -> LimitObject {
    let spec = &object.spec;
    let name = spec.name.clone().unwrap_or_else(|| object.name_any());
    let mut problems = Vec::new();
    let mut problem = |reason, field: &str, message| {
        problems.push(Problem { reason, field: field.to_owned(), message });
    };
    if !is_limit_name(&name) {
        let message = format!(
            "{name:?} names no limit; give spec.name as NAME or SET.NAME of letters, digits and _, no digit first"
        );
        problem("InvalidName", "spec.name", message);
    }
    if spec.limit.is_none() && spec.limit_of_each.is_none() {
        let message = "neither limit nor limitOfEach is given; give one".to_owned();
        problem("NoLimit", "spec.limit", message);
    }
    if spec.limit_of_each.is_some() && is_limit_name(&name) && !is_plain_name(&name) {
        let message =
            format!("{name} is one of a set, and no set; give limitOfEach under the name of the set");
        problem("InvalidName", "spec.limitOfEach", message);
    }
    LimitObject {
        object: object.name_any().into(),
        generation: object.metadata.generation.unwrap_or(1),
        name: name.to_ascii_lowercase().into(),
        limit: spec.limit.map(|limit| limit.max(0.0)),
        limit_of_each: spec.limit_of_each.map(|limit| limit.max(0.0)),
        problems,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, spec: serde_json::Value) -> LimitObject {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "ConcurrencyLimit",
                            "metadata": {"name": name}, "spec": spec});
        limit(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn objects_say_which_limit_they_set_and_what_is_wrong() {
        for (name, spec, limit, reasons) in [
            ("xsw", json!({"limit": 3}), "xsw", &[][..]),
            ("network-a", json!({"name": "NETWORK_A", "limit": 10}), "network_a", &[]),
            ("large.swlicense", json!({"limit": 10}), "large.swlicense", &[]),
            ("large", json!({"limitOfEach": 100}), "large", &[]),
            ("network-a", json!({"limit": 10}), "network-a", &["InvalidName"]),
            ("xsw", json!({}), "xsw", &["NoLimit"]),
            ("large.x", json!({"limitOfEach": 1}), "large.x", &["InvalidName"]),
        ] {
            let read = read(name, spec);
            let found: Vec<&str> = read.problems.iter().map(|problem| problem.reason).collect();
            assert_eq!((&*read.name, found), (limit, reasons.to_vec()), "{name}");
        }
    }
}
