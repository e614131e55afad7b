use jiff::Timestamp;
use kube::core::GroupVersionKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::jsonpath::JsonPath;
use super::*;
use crate::structural::tests::any_json;

const NOW: &str = "2024-01-02T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn rendered(columns: &Columns, obj: &Value) -> Value {
    table(columns, &[obj], &json!({}), IncludeObject::None, now())["rows"][0]["cells"].clone()
}

fn built_in(group: &str, kind: &str, obj: &Value) -> Value {
    rendered(&Columns::built_in(&GroupVersionKind::gvk(group, "v1", kind)), obj)
}

#[test]
fn ages_have_one_or_two_units() {
    let cases = [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (100_000, "27h"),
        (200_000, "2d7h"),
        (800_000, "9d"),
        (70_000_000, "2y80d"),
        (300_000_000, "9y"),
    ];
    for (seconds, text) in cases {
        assert_eq!(age::human(seconds), text);
    }
}

#[test]
fn json_paths_of_printer_columns() {
    let obj = json!({"spec": {"a": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}], "dotted.name/x": "d"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Idle", "status": "False"}]}});
    let cases = [
        (".spec.a[0].n", vec![json!(1)]),
        ("{.spec.a[-1].t}", vec![json!("y")]),
        (".spec.a[*].n", vec![json!(1), json!(2)]),
        (".spec.a[0:1].n", vec![json!(1)]),
        (r".spec.dotted\.name/x", vec![json!("d")]),
        (".spec['dotted.name/x']", vec![json!("d")]),
        (r#".status.conditions[?(@.type=="Ready")].status"#, vec![json!("True")]),
        (".status.conditions[?(@.type=='Gone')].status", vec![]),
        (".spec.a[?(@.n>1)].t", vec![json!("y")]),
        (".spec.a[?(@.t)].t", vec![json!("x"), json!("y")]),
        ("..n", vec![json!(1), json!(2)]),
        (".none.such", vec![]),
    ];
    for (path, expected) in cases {
        let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&obj).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    }
    for bad in ["spec", ".a[", ".a[?(x)]", ".a[x]", ".."] {
        assert_eq!(JsonPath::parse(bad), None, "{bad}");
    }
}

#[test]
fn custom_columns_by_type_and_priority() {
    let version = json!({"additionalPrinterColumns": [
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
        {"name": "Text", "type": "string", "jsonPath": ".spec.count"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Since", "type": "date", "jsonPath": ".status.since", "priority": 1, "description": "how long"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
        {"name": "None", "type": "string", "jsonPath": ".spec.none"},
    ]});
    let columns = Columns::custom(&version);
    let obj = json!({"metadata": {"name": "x"}, "spec": {"count": 3, "flag": true},
        "status": {"since": "2024-01-01T23:59:00Z", "conditions": [{"type": "Ready", "status": "True"}]}});
    let table = table(
        &columns,
        &[&obj],
        &json!({"resourceVersion": "5", "uid": "u"}),
        IncludeObject::Metadata,
        now(),
    );
    assert_eq!(table["metadata"], json!({"resourceVersion": "5"}));
    assert_eq!(table["rows"][0]["cells"], json!(["x", 3, "3", "True", "60s", true, null]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(
        table["columnDefinitions"][4],
        json!({"name": "Since", "type": "date", "format": "", "description": "how long", "priority": 1})
    );
    assert_eq!(
        rendered(&Columns::custom(&json!({})), &json!({"metadata": {"name": "x", "creationTimestamp": NOW}})),
        json!(["x", "0s"])
    );
}

#[test]
fn pods_sum_up_their_containers() {
    let pod = |status: Value, deleted: bool| {
        let mut pod = json!({"metadata": {"name": "p", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]}, "status": status});
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!(NOW);
        }
        pod
    };
    let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
    let completed = json!({"state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
    let cases = [
        (pod(json!({"phase": "Pending"}), false), "0/2", "Pending", "0"),
        (
            pod(
                json!({"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [running, running]}),
                false,
            ),
            "2/2",
            "Running",
            "0",
        ),
        (
            pod(json!({"phase": "Running", "containerStatuses": [running, running]}), true),
            "2/2",
            "Terminating",
            "0",
        ),
        (
            pod(json!({"phase": "Succeeded", "containerStatuses": [completed, completed]}), true),
            "0/2",
            "Completed",
            "0",
        ),
        (
            pod(
                json!({"phase": "Running", "containerStatuses": [completed, running], "conditions": [{"type": "Ready", "status": "True"}]}),
                false,
            ),
            "1/2",
            "Running",
            "0",
        ),
        (
            pod(
                json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
                false,
            ),
            "0/2",
            "ExitCode:3",
            "0",
        ),
        (pod(json!({"phase": "Failed", "reason": "Evicted"}), false), "0/2", "Evicted", "0"),
        (
            pod(
                json!({"phase": "Running", "containerStatuses": [{"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"finishedAt": "2024-01-01T23:59:30Z"}}}]}),
                false,
            ),
            "0/2",
            "CrashLoopBackOff",
            "4 (30s ago)",
        ),
    ];
    for (pod, ready, status, restarts) in cases {
        let cells = built_in("", "Pod", &pod);
        assert_eq!(
            cells.as_array().unwrap()[..5],
            [json!("p"), json!(ready), json!(status), json!(restarts), json!("24h")]
        );
        assert_eq!(cells[6], "n");
    }
    let mut init = pod(
        json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
        false,
    );
    init["spec"]["initContainers"] = json!([{"name": "i"}]);
    assert_eq!(built_in("", "Pod", &init)[2], "Init:0/1");
}

#[test]
fn other_built_in_kinds() {
    let meta = json!({"name": "x", "creationTimestamp": "2024-01-01T23:00:00Z"});
    let cases = [
        (
            "",
            "Node",
            json!({"metadata": {"name": "x", "creationTimestamp": "2024-01-01T23:00:00Z", "labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.33.0"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "worker",
                "60m",
                "v1.33.0",
                "10.0.0.2",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        (
            "",
            "Namespace",
            json!({"metadata": meta, "status": {"phase": "Active"}}),
            json!(["x", "Active", "60m"]),
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"metadata": meta, "spec": {"holderIdentity": "me"}}),
            json!(["x", "me", "60m"]),
        ),
        (
            "apps",
            "Deployment",
            json!({"metadata": meta, "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}, "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
            json!(["x", "1/2", 2, 1, "60m", "c", "i", "a=b"]),
        ),
        (
            "",
            "Event",
            json!({"metadata": meta, "type": "Normal", "reason": "R", "message": "m ", "count": 2, "source": {"component": "c", "host": "h"},
                "involvedObject": {"kind": "Pod", "name": "p"}, "firstTimestamp": "2024-01-01T23:58:00Z", "lastTimestamp": "2024-01-01T23:59:00Z"}),
            json!(["60s", "Normal", "R", "pod/p", "", "c, h", "m", "2m", 2, "x"]),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({"metadata": meta}),
            json!(["x", "2024-01-01T23:00:00Z"]),
        ),
        ("some", "Thing", json!({"metadata": meta}), json!(["x", "60m"])),
    ];
    for (group, kind, obj, expected) in cases {
        assert_eq!(built_in(group, kind, &obj), expected, "{kind}");
    }
}

#[test]
fn include_object_is_parsed() {
    assert_eq!(IncludeObject::parse(""), Ok(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("Object"), Ok(IncludeObject::Object));
    assert!(IncludeObject::parse("All").is_err());
}

proptest! {
    #[test]
    fn tables_never_panic(obj in any_json(), path in ".{0,20}") {
        let _ = JsonPath::parse(&path).map(|p| p.find(&obj).len());
        for (group, kind) in [("", "Pod"), ("", "Node"), ("", "Event"), ("", "Service"), ("batch", "Job"), ("apps", "Deployment"), ("x", "Y")] {
            built_in(group, kind, &obj);
        }
        let _ = Columns::custom(&obj);
    }
}
