//! The defaults of pods and pod templates, the quality-of-service class, and the binding to a node.

use serde_json::{Map, Value, json};

use super::json::{get, list, set, set_default, some_text};

/// Fills in the defaults of a pod as the real server does, except those that nothing here reads.
pub(super) fn default(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        default_spec(spec);
    }
    set_default(pod, &["spec", "enableServiceLinks"], true);
}

/// Fills in the defaults of the pod template in `spec.template`.
pub(super) fn default_template(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(|s| s.get_mut("template")?.get_mut("spec")) {
        default_spec(spec);
    }
}

fn default_spec(spec: &mut Value) {
    set_default(spec, &["restartPolicy"], "Always");
    set_default(spec, &["terminationGracePeriodSeconds"], 30);
    set_default(spec, &["dnsPolicy"], "ClusterFirst");
    set_default(spec, &["schedulerName"], "default-scheduler");
    set_default(spec, &["securityContext"], json!({}));
    for kind in ["containers", "initContainers"] {
        let Some(containers) = spec.get_mut(kind).and_then(Value::as_array_mut) else { continue };
        for container in containers.iter_mut().filter(|c| c.is_object()) {
            default_container(container);
        }
    }
}

fn default_container(container: &mut Value) {
    set_default(container, &["terminationMessagePath"], "/dev/termination-log");
    set_default(container, &["terminationMessagePolicy"], "File");
    let image = super::json::text(container, &["image"]).unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let moving = !image.contains('@') && (tag.ends_with(":latest") || !tag.contains(':'));
    set_default(container, &["imagePullPolicy"], if moving { "Always" } else { "IfNotPresent" });
    set_default(container, &["resources"], json!({}));
    let limits: Map<String, Value> =
        get(container, &["resources", "limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, quantity) in limits {
        set_default(container, &["resources", "requests", &name], quantity);
    }
    if let Some(ports) = container.get_mut("ports").and_then(Value::as_array_mut) {
        for port in ports.iter_mut() {
            set_default(port, &["protocol"], "TCP");
        }
    }
}

/// The quality-of-service class: `Guaranteed`, `Burstable` or `BestEffort`, from the CPU and memory of all containers.
pub(super) fn qos_class(pod: &Value) -> &'static str {
    let containers =
        || list(pod, &["spec", "containers"]).iter().chain(list(pod, &["spec", "initContainers"]));
    let amount = |container: &Value, part: &str, name: &str| {
        some_text(container, &["resources", part, name]).map(str::to_owned)
    };
    let mut any = false;
    let mut all_limited = true;
    for container in containers() {
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount(container, "requests", name), amount(container, "limits", name));
            any |= request.is_some() || limit.is_some();
            all_limited &= limit.is_some() && request == limit;
        }
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Binds a pod to a node: sets `spec.nodeName` and the condition `PodScheduled`.
pub(super) fn bind(pod: &mut Value, node: &str, now: &str) {
    set(pod, &["spec", "nodeName"], node);
    let mut conditions: Vec<Value> = list(pod, &["status", "conditions"]).to_vec();
    conditions.retain(|c| super::json::text(c, &["type"]) != Some("PodScheduled"));
    conditions.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now}));
    set(pod, &["status", "conditions"], conditions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(resources: &Value) -> Value {
        let mut pod =
            json!({"spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]}});
        default(&mut pod);
        pod
    }

    #[test]
    fn classes() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(qos_class(&with(&json!({}))), "BestEffort");
        assert_eq!(qos_class(&with(&json!({"limits": both}))), "Guaranteed");
        assert_eq!(qos_class(&with(&json!({"requests": both}))), "Burstable");
        assert_eq!(qos_class(&with(&json!({"limits": {"nvidia.com/gpu": "1"}}))), "BestEffort");
    }

    #[test]
    fn limits_are_requests_where_there_are_none() {
        let pod = with(&json!({"limits": {"cpu": "2"}, "requests": {"memory": "1"}}));
        let requests = pod.pointer("/spec/containers/0/resources/requests");
        assert_eq!(requests, Some(&json!({"cpu": "2", "memory": "1"})));
        assert_eq!(pod.pointer("/spec/containers/0/imagePullPolicy"), Some(&json!("IfNotPresent")));
    }
}
