use jiff::Timestamp;
use kube::core::GroupVersionKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::StructuralSchema;
use crate::structural::tests::any_json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn by(manager: &str, second: i64) -> Writer<'_> {
    Writer { manager, api_version: "v1", subresource: "", now: at(second) }
}

fn config_map() -> Shape {
    Shape::built_in(&GroupVersionKind::gvk("", "v1", "ConfigMap"))
}

fn pod() -> Shape {
    Shape::built_in(&GroupVersionKind::gvk("", "v1", "Pod"))
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

fn managers(obj: &Value) -> Vec<(String, String, Value)> {
    let list = obj["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    list.iter().map(|e| (text(&e["manager"]), text(&e["operation"]), e["fieldsV1"].clone())).collect()
}

fn created(shape: &Shape, mut obj: Value, manager: &str) -> Value {
    track_update(shape, None, &mut obj, &by(manager, 0));
    obj
}

fn updated(shape: &Shape, old: &Value, mut new: Value, writer: &Writer<'_>) -> Value {
    track_update(shape, Some(old), &mut new, writer);
    new
}

#[test]
fn a_create_owns_what_it_set() {
    let obj = created(&config_map(), map(&json!({"a": "1"})), "curl");
    assert_eq!(
        obj["metadata"]["managedFields"],
        json!([{"manager": "curl", "operation": "Update", "apiVersion": "v1", "time": "2023-11-14T22:13:20Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:a": {}}}}])
    );
}

#[test]
fn a_pods_containers_are_owned_by_name_and_ports_by_port_and_protocol() {
    let obj = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"l": "1"}, "finalizers": ["x/y"]},
        "spec": {"containers": [{"name": "c", "image": "i", "args": ["a"], "ports": [{"containerPort": 80}]}], "nodeSelector": {"a": "b"}}});
    let created = created(&pod(), obj.clone(), "kubectl-create");
    assert_eq!(
        managers(&created)[0].2,
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}, "f:finalizers": {".": {}, "v:\"x/y\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:nodeSelector": {}}
        })
    );
    let applied = apply(&pod(), None, &obj, &by("a", 0), false).unwrap();
    assert_eq!(
        managers(&applied)[0].2,
        json!({
            "f:metadata": {"f:labels": {"f:l": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:nodeSelector": {}}
        })
    );
}

#[test]
fn an_update_takes_over_what_it_changes() {
    let shape = config_map();
    let first = created(&shape, map(&json!({"a": "1", "b": "1"})), "one");
    let mut new = first.clone();
    new["data"] = json!({"a": "2", "b": "1", "c": "1"});
    let second = updated(&shape, &first, new, &by("two", 5));
    assert_eq!(
        managers(&second),
        [
            ("one".into(), "Update".into(), json!({"f:data": {".": {}, "f:b": {}}})),
            ("two".into(), "Update".into(), json!({"f:data": {"f:a": {}, "f:c": {}}})),
        ]
    );
    let same = updated(&shape, &second, second.clone(), &by("three", 9));
    assert_eq!(same, second);
    let mut gone = second.clone();
    gone["data"].as_object_mut().unwrap().remove("b");
    let third = updated(&shape, &second, gone, &by("two", 9));
    assert_eq!(managers(&third)[0].2, json!({"f:data": {}}));
}

#[test]
fn clients_may_reset_or_forget_managed_fields() {
    let shape = config_map();
    let first = created(&shape, map(&json!({"a": "1"})), "one");
    assert_eq!(updated(&shape, &first, map(&json!({"a": "1"})), &by("two", 1)), first);
    let mut reset = first.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(managers(&updated(&shape, &first, reset, &by("two", 1))), []);
}

#[test]
fn a_subresource_has_its_own_entry() {
    let first = created(&pod(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}), "k");
    let mut new = first.clone();
    new["status"] = json!({"phase": "Running"});
    let writer = Writer { subresource: "status", ..by("kubelet", 1) };
    let second = updated(&pod(), &first, new, &writer);
    assert_eq!(second["metadata"]["managedFields"][0]["subresource"], "status");
    assert_eq!(managers(&second)[0].2, json!({"f:status": {"f:phase": {}}}));
}

#[test]
fn apply_removes_what_it_no_longer_says() {
    let shape = config_map();
    let first = apply(&shape, None, &map(&json!({"a": "1", "b": "1"})), &by("me", 0), false).unwrap();
    let second = apply(&shape, Some(&first), &map(&json!({"a": "1"})), &by("me", 5), false).unwrap();
    assert_eq!(second["data"], json!({"a": "1"}));
    assert_eq!(managers(&second), [("me".into(), "Apply".into(), json!({"f:data": {"f:a": {}}}))]);
    assert_eq!(second["metadata"]["managedFields"][0]["time"], "2023-11-14T22:13:25Z");
    // An applier does not remove a field that another applier owns too.
    let third = apply(&shape, Some(&first), &map(&json!({"b": "1"})), &by("other", 6), false).unwrap();
    let fourth = apply(&shape, Some(&third), &map(&json!({"a": "1"})), &by("me", 7), false).unwrap();
    assert_eq!(fourth["data"], json!({"a": "1", "b": "1"}));
    // An applier does not remove a field that somebody else added with an update.
    let mut edited = first.clone();
    edited["data"]["z"] = json!("9");
    let edited = updated(&shape, &first, edited, &by("edit", 8));
    let fifth = apply(&shape, Some(&edited), &map(&json!({"a": "1"})), &by("me", 9), false).unwrap();
    assert_eq!(fifth["data"], json!({"a": "1", "z": "9"}));
}

#[test]
fn conflicts_are_worded_as_in_kubernetes() {
    let shape = config_map();
    let live = created(&shape, map(&json!({"a": "1", "b": "1"})), "kubectl");
    let error = apply(&shape, Some(&live), &map(&json!({"a": "2"})), &by("me", 5), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.a"
    );
    assert_eq!(
        error.causes(),
        [
            json!({"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".data.a"})
        ]
    );
    assert_eq!(error.code(), 409);
    let error =
        apply(&shape, Some(&live), &map(&json!({"a": "2", "b": "2"})), &by("me", 5), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl\" using v1:\n- .data.a\n- .data.b"
    );
    let forced = apply(&shape, Some(&live), &map(&json!({"a": "2"})), &by("me", 5), true).unwrap();
    assert_eq!(
        managers(&forced),
        [
            ("me".into(), "Apply".into(), json!({"f:data": {"f:a": {}}})),
            ("kubectl".into(), "Update".into(), json!({"f:data": {".": {}, "f:b": {}}})),
        ]
    );
    // Two managers that set a field to the same value share it, without a conflict.
    let shared = apply(&shape, Some(&live), &map(&json!({"a": "1"})), &by("me", 5), false).unwrap();
    assert_eq!(managers(&shared).len(), 2);
    // The message names the other manager without its version if that manager applied.
    let error = apply(&shape, Some(&shared), &map(&json!({"a": "3"})), &by("it", 5), false).unwrap_err();
    assert!(error.to_string().contains("conflicts with \"me\":\n- .data.a"), "{error}");
}

#[test]
fn conditions_of_a_custom_resource_merge_by_type() {
    let schema = json!({"type": "object", "properties": {"status": {"type": "object", "properties": {
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    }}}});
    let shape = Shape::custom(&StructuralSchema::parse(&schema, "s").unwrap());
    let status = |s: Value| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "status": s});
    let a =
        status(json!({"conditions": [{"type": "A", "status": "True"}], "tags": ["t"], "whole": {"k": "1"}}));
    let b = status(json!({"conditions": [{"type": "B", "status": "True"}], "tags": ["u"]}));
    let live = apply(&shape, None, &a, &by("a", 0), false).unwrap();
    let live = apply(&shape, Some(&live), &b, &by("b", 1), false).unwrap();
    assert_eq!(
        live["status"]["conditions"],
        json!([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}])
    );
    assert_eq!(live["status"]["tags"], json!(["t", "u"]));
    assert_eq!(managers(&live)[0].2["f:status"]["f:whole"], json!({}));
    let error = apply(
        &shape,
        Some(&live),
        &status(json!({"conditions": [{"type": "A", "status": "False"}]})),
        &by("b", 2),
        false,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "Apply failed with 1 conflict: conflict with \"a\": .status.conditions[type=\"A\"].status"
    );
    let live = apply(&shape, Some(&live), &status(json!({"tags": ["u"]})), &by("b", 3), false).unwrap();
    assert_eq!(live["status"]["conditions"], json!([{"type": "A", "status": "True"}]));
    let twice = status(json!({"conditions": [{"type": "A"}, {"type": "A"}]}));
    let error = apply(&shape, None, &twice, &by("b", 3), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to create typed patch object: .status.conditions: duplicate entries for key [type=\"A\"]"
    );
}

#[test]
fn objects_without_managers_belong_to_before_first_apply() {
    let live = map(&json!({"a": "1"}));
    let error = apply(&config_map(), Some(&live), &map(&json!({"a": "2"})), &by("me", 0), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
}

#[test]
fn kubectl_migrates_from_client_side_apply() {
    let shape = config_map();
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}}"#;
    let mut obj = map(&json!({"a": "1", "b": "1"}));
    obj["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    let live = created(&shape, obj, "kubectl-client-side-apply");
    let done = apply(&shape, Some(&live), &map(&json!({"a": "2"})), &by("kubectl", 1), false).unwrap();
    assert_eq!(done["data"], json!({"a": "2", "b": "1"}));
    let text =
        done["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str().unwrap();
    assert!(text.contains(r#""a":"2""#), "{text}");
    // Fields that client-side apply did not set are still in conflict.
    assert!(apply(&shape, Some(&live), &map(&json!({"b": "2"})), &by("kubectl", 1), false).is_err());
}

#[test]
fn bad_requests_are_refused() {
    let mut with = map(&json!({}));
    with["metadata"]["managedFields"] = json!([{}]);
    let cases = [
        (with, "metadata.managedFields must be nil"),
        (json!([]), "the applied object must be a JSON object"),
        (
            json!({"apiVersion": "v2"}),
            "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
        ),
    ];
    for (obj, text) in cases {
        let error = apply(&config_map(), None, &obj, &by("me", 0), true).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (400, text));
    }
}

#[test]
fn only_ten_updaters_are_remembered() {
    let shape = config_map();
    let mut live = created(&shape, map(&json!({"k": "v"})), "m0");
    for i in 1..15 {
        let mut new = live.clone();
        new["data"][format!("k{i}")] = json!("v");
        live = updated(&shape, &live, new, &by(&format!("m{i}"), i));
    }
    let names: Vec<String> = managers(&live).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names.first().unwrap(), "ancient-changes");
}

fn object() -> impl Strategy<Value = Value> {
    any_json().prop_map(|v| match v {
        Value::Object(mut map) => {
            map.remove("metadata");
            Value::Object(map)
        }
        other => json!({ "spec": other }),
    })
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(live in object(), applied in object()) {
        let shape = config_map();
        let live = created(&shape, live, "k");
        let once = apply(&shape, Some(&live), &applied, &by("me", 1), true).unwrap();
        let twice = apply(&shape, Some(&once), &applied, &by("me", 2), false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn fields_v1_survives_a_round_trip(obj in object()) {
        let set = walk::fields(&obj, pod().root());
        prop_assert_eq!(Set::from_fields_v1(&set.to_fields_v1()), set);
    }

    #[test]
    fn what_compare_finds_explains_the_change(old in object(), new in object()) {
        let changes = walk::compare(&old, &new, pod().root());
        let any = !(changes.added.is_empty() && changes.removed.is_empty() && changes.modified.is_empty());
        prop_assert_eq!(any, old != new);
    }

    #[test]
    fn ownership_never_panics(old in any_json(), new in any_json()) {
        let mut copy = new.clone();
        track_update(&pod(), Some(&old), &mut copy, &by("a", 0));
        let _ = apply(&pod(), Some(&old), &new, &by("a", 0), true);
    }
}
