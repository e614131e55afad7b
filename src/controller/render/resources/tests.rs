//! Tests of what a pod takes of its slot.

use serde_json::{Value, json};

use super::*;
use crate::render::pod::pod;
use crate::render::pod::tests::{make, plan};

#[test]
fn what_only_the_policy_declares_is_not_asked_of_the_kubelet() {
    let template = json!({"spec": {"containers": [{"name": "main", "image": "busybox"}]}});
    let mut plan = plan();
    plan.resources.extended.extend([("Cogs".into(), 2), (PODS.into(), 1)]);
    let pod = pod(&serde_json::from_value(template).unwrap(), &plan).unwrap();
    let resources = pod.spec.unwrap().containers.remove(0).resources.unwrap();
    let names = ["cpu", "ephemeral-storage", "memory", "nvidia.com/gpu"];
    for amounts in [resources.requests, resources.limits] {
        assert_eq!(amounts.unwrap().into_keys().collect::<Vec<_>>(), names);
    }
}

#[test]
fn a_pod_takes_exactly_its_slot() {
    insta::assert_yaml_snapshot!(
        make(json!({"containers": [{"name": "main", "image": "busybox"}]})).unwrap()
    );
}

#[test]
fn other_containers_keep_what_they_request() {
    let pod = make(json!({"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "7"}}},
        {"name": "side", "resources": {"requests": {"cpu": "250m", "memory": "24Mi"}}}]}))
    .unwrap();
    let spec = pod.spec.unwrap();
    let requests = spec.containers[0].resources.clone().unwrap().requests.unwrap();
    assert_eq!((requests["cpu"].0.as_str(), requests["memory"].0.as_str()), ("1750m", "1000Mi"));
}

#[test]
fn init_containers_may_not_take_more_than_the_slot() {
    let greedy = json!({"containers": [{"name": "main"}],
                        "initContainers": [{"name": "init", "resources": {"requests": {"memory": "2Gi"}}}]});
    assert_eq!(make(greedy), Err(BadTemplate::TooMuch { resource: "memory".into() }));
    let beside = json!({"containers": [{"name": "main"}], "initContainers": [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m", "memory": "100Mi"}}},
        {"name": "init", "resources": {"requests": {"memory": "925Mi"}}}]});
    assert_eq!(make(beside), Err(BadTemplate::TooMuch { resource: "memory".into() }));
    let small = json!({"containers": [{"name": "main"}],
                       "initContainers": [{"name": "init", "resources": {"requests": {"cpu": "1"}}}]});
    assert!(make(small).is_ok());
}

#[test]
fn sidecars_keep_what_they_are_limited_to_and_the_pod_takes_exactly_its_slot() {
    let sidecar = |name: &str, resources: Value| json!({"name": name, "restartPolicy": "Always", "resources": resources});
    let pod = make(json!({
        "containers": [{"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "200m", "memory": "1Mi"}}}],
        "initContainers": [
            sidecar("proxy", json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "300m", "memory": "23Mi"}})),
            {"name": "init", "resources": {"requests": {"cpu": "1400m"}}},
            sidecar("logs", json!({"requests": {"memory": "100Mi"}, "limits": {"cpu": "50m"}}))]}))
    .unwrap();
    let spec = pod.spec.unwrap();
    let inits = spec.init_containers.clone().unwrap();
    let shown: Vec<_> = spec
        .containers
        .iter()
        .chain(&inits)
        .map(|container| {
            let resources = container.resources.clone().unwrap();
            assert_eq!(resources.requests, resources.limits, "{}", container.name);
            let limits = resources.limits.unwrap();
            (container.name.clone(), limits["cpu"].0.clone(), limits["memory"].0.clone())
        })
        .collect();
    let expected = [
        ("main", "1450m", "900Mi"),
        ("side", "200m", "1Mi"),
        ("proxy", "300m", "23Mi"),
        // An init container gets as much of a resource that it does not request as the first container gets.
        ("init", "1400m", "900Mi"),
        ("logs", "50m", "100Mi"),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, cpu, memory)| (name.to_owned(), cpu.to_owned(), memory.to_owned()))
    );
    let whole = requests_of(&spec);
    assert_eq!((whole.milli_cpu, whole.memory), (2000, 1024 << 20));

    let greedy = json!({"containers": [{"name": "main"}],
                        "initContainers": [sidecar("proxy", json!({"requests": {"cpu": "2", "memory": "1Mi"}}))]});
    assert_eq!(make(greedy), Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() }));
}

/// The slot's size holds for the whole pod: nobody gets more by a second container.
#[test]
fn what_runs_beside_the_first_container_is_bounded() {
    for (resources, resource) in [
        (json!({}), "cpu"),
        (json!({"requests": {"memory": "1Mi"}}), "cpu"),
        (json!({"limits": {"cpu": "64"}}), "memory"),
        (json!({"limits": {"cpu": "0", "memory": "1Mi"}}), "cpu"),
    ] {
        for place in ["containers", "initContainers"] {
            let mut spec = json!({"containers": [{"name": "main"}], "initContainers": []});
            let side = json!({"name": "side", "restartPolicy": "Always", "resources": resources});
            spec[place].as_array_mut().unwrap().push(side);
            assert_eq!(
                make(spec),
                Err(BadTemplate::Unbounded { container: "side".into(), resource }),
                "{resources}"
            );
        }
    }
    let greedy = json!({"containers": [{"name": "main"},
        {"name": "side", "resources": {"limits": {"cpu": "64", "memory": "1Mi"}, "requests": {"cpu": "1m"}}}]});
    assert_eq!(make(greedy), Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() }));
}

#[test]
fn overhead_is_within_the_slot() {
    let pod = make(json!({"containers": [{"name": "main"}], "runtimeClassName": "kata",
                          "overhead": {"cpu": "250m", "memory": "124Mi"}}))
    .unwrap();
    let spec = pod.spec.unwrap();
    let own = spec.containers[0].resources.clone().unwrap().requests.unwrap();
    assert_eq!((own["cpu"].0.as_str(), own["memory"].0.as_str()), ("1750m", "900Mi"));
}

#[test]
fn containers_that_leave_nothing_are_refused() {
    let greedy = json!({"containers": [{"name": "main"}, {"name": "side", "resources": {"requests": {"cpu": "2", "memory": "1Mi"}}}]});
    assert_eq!(make(greedy), Err(BadTemplate::NothingLeft { main: "main".into(), resource: "cpu".into() }));
    assert_eq!(make(json!({"containers": []})), Err(BadTemplate::NoContainers));
    // Less than a MiB would be written as 0Mi, which is no limit at all.
    let all_but_bytes = json!({"containers": [{"name": "main"},
        {"name": "side", "resources": {"requests": {"cpu": "1m", "memory": ((1024_u64 << 20) - 1000).to_string()}}}]});
    assert_eq!(
        make(all_but_bytes),
        Err(BadTemplate::NothingLeft { main: "main".into(), resource: "memory".into() })
    );
}
