//! The subresources `pods/binding` and `pods/eviction`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::delete::{Options, delete};
use super::error::ApiError;
use super::json::{get, is_deleting, list, meta, set, some_text, text};
use super::pods;
use super::selectors::LabelSelector;
use super::store::Key;
use super::time::rfc3339;

fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// Binds a pod to a node. Fails if the pod is bound already, or if its uid is not the one that the binding names.
pub(super) fn bind(api: &Api, call: &Call, key: &Key, binding: &Value) -> Result<Value, ApiError> {
    let node = some_text(binding, &["target", "name"]).ok_or_else(|| {
        ApiError::new(422, "Invalid", "Binding \"\" is invalid: target.name: Required value")
    })?;
    if !matches!(text(binding, &["target", "kind"]).unwrap_or_default(), "" | "Node") {
        return Err(ApiError::new(
            422,
            "Invalid",
            "Binding \"\" is invalid: target.kind: Unsupported value: supported values: \"Node\"",
        ));
    }
    let uid = meta(binding, "uid").to_owned();
    let now = rfc3339(call.now);
    let dry = call.params.dry_run;
    let res = Arc::clone(&call.res);
    api.mutate(&res, key, |pod| {
        let found = meta(pod, "uid");
        if !uid.is_empty() && uid != found {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
            return Err(ApiError::conflict(&res, &key.name, &why));
        }
        if is_deleting(pod) {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(ApiError::conflict(&res, &key.name, &why));
        }
        if let Some(host) = some_text(pod, &["spec", "nodeName"]) {
            let why = format!("pod {} is already assigned to node {host:?}", key.name);
            return Err(ApiError::conflict(&res, &key.name, &why));
        }
        if !list(pod, &["spec", "schedulingGates"]).is_empty() {
            let why = format!("pod {} has non-empty .spec.schedulingGates", key.name);
            return Err(ApiError::conflict(&res, &key.name, &why));
        }
        pods::bind(pod, node, &now);
        Ok(!dry)
    })?;
    Ok(created())
}

/// Evicts a pod, unless a disruption budget forbids it. The pod's condition `DisruptionTarget` says so before the pod is
/// deleted.
pub(super) fn evict(api: &Api, call: &Call, key: &Key, eviction: &Value) -> Result<Value, ApiError> {
    let pod = api.fetch(&call.res, key)?;
    let mut options = Options::read(&call.params, eviction.get("deleteOptions"))?;
    options.dry_run |= call.params.dry_run;
    if guarded(&pod.value) {
        check_budgets(api, &key.namespace, &pod.value)?;
    }
    let now = rfc3339(call.now);
    let dry = options.dry_run;
    api.mutate(&call.res, key, |pod| {
        target_of_disruption(pod, &now);
        Ok(!dry)
    })?;
    delete(api, &call.res, key, &options)?;
    Ok(created())
}

/// Sets the condition `DisruptionTarget` as the eviction API does. If the pod has the condition already, its reason
/// and message are overwritten, whoever wrote them; its `lastTransitionTime` stays if the condition was True.
fn target_of_disruption(pod: &mut Value, now: &str) {
    let is_it = |condition: &Value| text(condition, &["type"]) == Some("DisruptionTarget");
    let mut conditions = list(pod, &["status", "conditions"]).to_vec();
    let old = conditions.iter().position(is_it).map(|at| conditions.remove(at));
    let since = old.as_ref().filter(|old| text(old, &["status"]) == Some("True"));
    let since = since.and_then(|old| text(old, &["lastTransitionTime"])).unwrap_or(now);
    conditions.push(json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": since,
    }));
    set(pod, &["status", "conditions"], conditions);
}

/// Whether disruption budgets protect the pod: they protect only running pods that nobody deletes.
fn guarded(pod: &Value) -> bool {
    text(pod, &["status", "phase"]) == Some("Running") && !is_deleting(pod)
}

fn is_ready(pod: &Value) -> bool {
    list(pod, &["status", "conditions"])
        .iter()
        .any(|c| text(c, &["type"]) == Some("Ready") && text(c, &["status"]) == Some("True"))
}

fn check_budgets(api: &Api, namespace: &str, pod: &Value) -> Result<(), ApiError> {
    let resolve =
        |group, plural| api.registry.resolve(group, "v1", plural).ok_or_else(ApiError::no_such_resource);
    let (budgets, pods) = (resolve("policy", "poddisruptionbudgets")?, resolve("", "pods")?);
    for budget in api.store.snapshot(&budgets.storage, Some(namespace)).0 {
        let selector =
            LabelSelector::from_object(get(&budget.value, &["spec", "selector"]).unwrap_or(&Value::Null));
        if !selector.matches(pod) {
            continue;
        }
        let matching: Vec<_> = api.store.snapshot(&pods.storage, Some(namespace)).0;
        let matching: Vec<_> = matching.iter().filter(|p| selector.matches(&p.value)).collect();
        let healthy = matching.iter().filter(|p| is_ready(&p.value) && !is_deleting(&p.value)).count();
        let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
        let total = i64::try_from(matching.len()).unwrap_or(i64::MAX);
        let desired = desired(&budget.value, total);
        if is_ready(pod) && healthy <= desired {
            return Err(ApiError::disruption(meta(&budget.value, "name"), healthy, desired));
        }
    }
    Ok(())
}

/// How many of `total` pods must stay healthy. The real server counts the replicas that the pods' controller wants; this
/// one counts the pods that exist.
fn desired(budget: &Value, total: i64) -> i64 {
    let amount =
        |field: &str| get(budget, &["spec", field]).filter(|v| !v.is_null()).map(|v| scaled(v, total));
    match (amount("minAvailable"), amount("maxUnavailable")) {
        (Some(least), _) => least,
        (None, Some(most)) => total - most,
        (None, None) => 0,
    }
}

/// A number, or a percentage of `total` rounded up.
fn scaled(value: &Value, total: i64) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let text = value.as_str().unwrap_or_default();
    match text.strip_suffix('%').and_then(|p| p.parse::<i64>().ok()) {
        Some(percent) => percent.saturating_mul(total).saturating_add(99) / 100,
        None => text.parse().unwrap_or(0),
    }
}
