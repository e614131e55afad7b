//! Tests of the warnings about pod templates.

use super::*;

/// The warnings of a job with these requests, whose pods are so.
fn of_pod(requests: Value, pod: Value) -> Vec<String> {
    told(json!({"requests": requests, "template": {"spec": pod}}))
}

#[test]
fn all_resources_of_the_main_container_that_are_replaced_are_told() {
    let main =
        |resources: Value| json!({"containers": [{"name": "main", "image": "a", "resources": resources}]});
    for (resources, expected) in [
        (json!({"limits": {"memory": "1Gi", "example.com/x": "1"}}), "the memory of limits is"),
        (json!({"requests": {"memory": "1Gi", "cpu": "1"}}), "the cpu and memory of requests are"),
        (
            json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}),
            "the cpu and ephemeral-storage of requests and the memory of limits are",
        ),
    ] {
        let message = format!(
            "spec.template.spec.containers[0].resources: {expected} replaced: the main container gets what its slot holds; say it in \
             spec.requests"
        );
        let requests = json!({"resources": {"example.com/x": 1}});
        assert_eq!(of_pod(requests, main(resources)), [message]);
    }
}

#[test]
fn another_amount_of_an_extended_resource_than_requested_is_told() {
    let main = |resources: Value| json!({"name": "main", "image": "a", "resources": resources});
    let side = json!({"name": "side", "image": "a", "resources": {"limits": {"cpu": "1", "memory": "1Mi", "nvidia.com/gpu": 1}}});
    for (requests, containers, expected) in [
        (
            json!({"gpus": 1}),
            json!([main(json!({"limits": {"nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 4}}))]),
            Some(("limits[nvidia.com/gpu]", 4, 1, "gpus")),
        ),
        (
            json!({"resources": {"example.com/fpga": 1}}),
            json!([main(json!({"requests": {"example.com/fpga": "4"}}))]),
            Some(("requests[example.com/fpga]", 4, 1, "resources[example.com/fpga]")),
        ),
        (
            json!({"gpus": 2}),
            json!([main(json!({"limits": {"nvidia.com/gpu": 2}})), side]),
            Some(("limits[nvidia.com/gpu]", 2, 1, "gpus")),
        ),
        (json!({"gpus": 2}), json!([main(json!({"limits": {"nvidia.com/gpu": 1}})), side]), None),
        (
            json!({"gpus": 1, "resources": {"squid": 1}}),
            json!([main(json!({"limits": {"nvidia.com/gpu": "1", "amd.com/gpu": "0", "squid": 3}}))]),
            None,
        ),
    ] {
        let expected = expected.map(|(field, asked, given, request)| {
            format!(
                "spec.template.spec.containers[0].resources.{field}: is {asked}, and the main container gets {given}: a pod has what its \
                 slot holds; say in spec.requests.{request} how many each proc needs"
            )
        });
        let found = of_pod(requests, json!({"containers": containers}));
        assert_eq!(found, Vec::from_iter(expected), "{containers}");
    }
}

#[test]
fn a_toleration_that_only_a_scheduler_looks_at_is_told() {
    let pod = json!({"containers": [{"name": "main", "image": "a"}], "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute"}, {"operator": "Exists"},
        {"key": "a", "operator": "Exists", "effect": "NoSchedule"}]});
    assert_eq!(
        of_pod(json!({}), pod),
        [
            "spec.template.spec.tolerations[2]: has no effect on taints NoSchedule: no scheduler looks at the pod, and a node with such a \
             taint takes jobs where its NodePolicy tolerates the taint; ask an admin to add the toleration to spec.tolerations of a \
             NodePolicy"
        ]
    );
}

/// Each case: what is added to the template, and to its container; and the field and the text of the warning, if there is one.
#[test]
fn each_field_by_which_the_api_server_refuses_pods_is_told() {
    let mounts =
        json!({"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/a"}]});
    for (pod, container, expected) in [
        (
            json!({"activeDeadlineSeconds": 0}),
            json!({}),
            ("spec.activeDeadlineSeconds", "is no number of seconds from 1 to 2147483647"),
        ),
        (json!({"dnsPolicy": "none"}), json!({}), ("spec.dnsPolicy", "\"none\" is none of its words")),
        (
            json!({}),
            json!({"imagePullPolicy": "always"}),
            ("spec.containers[0].imagePullPolicy", "\"always\" is none of its words"),
        ),
        (
            json!({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]}),
            json!({}),
            ("spec.volumes[0]", "is emptyDir and hostPath at once"),
        ),
        (
            json!({"volumes": [{"name": "a"}, {"name": "a"}]}),
            json!({}),
            ("spec.volumes[1].name", "a is the name of an earlier volume, too"),
        ),
        (
            json!({"volumes": [{"name": "X_1"}]}),
            json!({}),
            ("spec.volumes[0].name", "\"X_1\" is no volume's name"),
        ),
        (
            json!({"volumes": [{"name": "a"}]}),
            mounts,
            ("spec.containers[0].volumeMounts[1].mountPath", "/a is the path of an earlier mount, too"),
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "exist"}]}),
            json!({}),
            ("spec.tolerations[0].operator", "\"exist\" is none of its words"),
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExec"}]}),
            json!({}),
            ("spec.tolerations[0].effect", "\"NoExec\" is none of its words"),
        ),
        (
            json!({"nodeSelector": {"a b": "x"}}),
            json!({}),
            ("spec.nodeSelector.a b", "\"a b\" is no key of a label"),
        ),
        (
            json!({"nodeSelector": {"a": "x y"}}),
            json!({}),
            ("spec.nodeSelector.a", "\"x y\" is no value of a label"),
        ),
        (
            json!({}),
            json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            ("spec.containers[0].env[0].valueFrom", "A has a value, too"),
        ),
        (
            json!({}),
            json!({"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]}),
            ("spec.containers[0].envFrom[0]", "has configMapRef and secretRef"),
        ),
        (
            json!({}),
            json!({"securityContext": {"privileged": true, "allowPrivilegeEscalation": false}}),
            (
                "spec.containers[0].securityContext.allowPrivilegeEscalation",
                "is false, and privileged is true",
            ),
        ),
        // All of these are taken.
        (
            json!({"activeDeadlineSeconds": 1, "dnsPolicy": "None", "nodeSelector": {"example.com/a": ""}, "tolerations": [
                {"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}], "volumes": [{"name": "a"}, {"name": "b",
                "configMap": {"name": "x"}}]}),
            json!({"imagePullPolicy": "Never", "env": [{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "envFrom": [{"prefix": "A_", "secretRef": {"name": "b"}}], "securityContext": {"privileged": true},
                "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]}),
            ("", ""),
        ),
    ] {
        let mut main = json!({"name": "main", "image": "a"});
        main.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let mut spec = json!({"containers": [main]});
        spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        let found = of_pod(json!({}), spec.clone());
        if expected.0.is_empty() {
            assert_eq!(found, [""; 0]);
            continue;
        }
        let starts =
            format!("spec.template.{}: {}: the API server refuses the pods; ", expected.0, expected.1);
        assert!(found.len() == 1 && found[0].starts_with(&starts), "{spec}: {found:?} for {starts}");
    }
}

#[test]
fn labels_that_no_pod_can_have_are_told() {
    let long = "x".repeat(70);
    let template = json!({"metadata": {"labels": {"a b": "x", "long": long, "proc": "r $(Process)", "good": "x"}},
        "spec": {"containers": [{"name": "main", "image": "a"}]}});
    for (items, fields) in [
        (Value::Null, vec!["a b", "long", "proc"]),
        // References are replaced before the pods are made.
        (json!({}), vec!["a b", "long"]),
    ] {
        let mut spec = json!({"template": template});
        if !items.is_null() {
            spec["items"] = items;
        }
        let found = told(spec);
        let starts: Vec<String> =
            fields.iter().map(|field| format!("spec.template.metadata.labels.{field}: ")).collect();
        assert_eq!(found.len(), starts.len(), "{found:?}");
        assert!(found.iter().zip(starts).all(|(found, start)| found.starts_with(&start)), "{found:?}");
    }
}
