use kube::core::GroupVersionKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{json_patch, merge_patch, strategic_merge_patch};
use crate::structural::tests::any_json;
use crate::{Shape, StructuralSchema};

fn pod() -> Shape {
    Shape::built_in(&GroupVersionKind::gvk("", "v1", "Pod"))
}

fn patched(shape: &Shape, obj: &Value, patch: &Value) -> Value {
    strategic_merge_patch(shape, obj, patch).unwrap()
}

#[test]
fn merge_patch_follows_rfc_7386() {
    let mut obj = json!({"a": "b", "c": {"d": "e", "f": "g"}});
    merge_patch(&mut obj, &json!({"a": "z", "c": {"f": null}}));
    assert_eq!(obj, json!({"a": "z", "c": {"d": "e"}}));
}

#[test]
fn json_patch_says_what_failed() {
    let obj = json!({"spec": {"n": 1}});
    let ok = json_patch(&obj, &json!([{"op": "replace", "path": "/spec/n", "value": 2}])).unwrap();
    assert_eq!(ok, json!({"spec": {"n": 2}}));
    let cases = [
        (
            json!([{"op": "test", "path": "/spec/n", "value": 2}]),
            422,
            "testing value /spec/n failed: test failed",
        ),
        (
            json!([{"op": "replace", "path": "/spec/x", "value": 2}]),
            422,
            "replace operation does not apply: doc is missing key: /spec/x",
        ),
        (
            json!([{"op": "remove", "path": "/spec/x"}]),
            422,
            "remove operation does not apply: doc is missing path: \"/spec/x\"",
        ),
        (json!({"op": "remove"}), 400, "error decoding patch"),
    ];
    for (patch, code, text) in cases {
        let error = json_patch(&obj, &patch).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn strategic_merge_knows_pods() {
    let obj = json!({"metadata": {"finalizers": ["a", "b"], "labels": {"x": "1", "y": "2"}},
        "spec": {"containers": [{"name": "one", "image": "i:1", "env": [{"name": "A", "value": "1"}]}, {"name": "two", "image": "j"}],
                 "tolerations": [{"key": "k"}], "volumes": [{"name": "v", "emptyDir": {}}]}});
    let cases = [
        // Containers merge by name, and so do their environment variables.
        (
            json!({"spec": {"containers": [{"name": "one", "image": "i:2", "env": [{"name": "B", "value": "2"}]}]}}),
            "/spec/containers",
            json!([{"name": "one", "image": "i:2", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"name": "two", "image": "j"}]),
        ),
        // A list of tolerations is replaced as a whole.
        (json!({"spec": {"tolerations": [{"key": "l"}]}}), "/spec/tolerations", json!([{"key": "l"}])),
        // A patch can delete an item, and replace a list.
        (
            json!({"spec": {"containers": [{"name": "one", "$patch": "delete"}]}}),
            "/spec/containers",
            json!([{"name": "two", "image": "j"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "three"}, {"$patch": "replace"}]}}),
            "/spec/containers",
            json!([{"name": "three"}]),
        ),
        (
            json!({"metadata": {"labels": {"$patch": "replace", "z": "3"}}}),
            "/metadata/labels",
            json!({"z": "3"}),
        ),
        (json!({"metadata": {"labels": {"x": null}}}), "/metadata/labels", json!({"y": "2"})),
        // Finalizers are a set.
        (json!({"metadata": {"finalizers": ["b", "c"]}}), "/metadata/finalizers", json!(["a", "b", "c"])),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}),
            "/metadata/finalizers",
            json!(["b", "c"]),
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}),
            "/metadata/finalizers",
            json!(["b", "a"]),
        ),
        // `$retainKeys` removes the old type of a volume.
        (
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/p"}}]}}),
            "/spec/volumes",
            json!([{"name": "v", "hostPath": {"path": "/p"}}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "new"}, {"name": "two"}],
                            "containers": [{"name": "new", "image": "n"}]}}),
            "/spec/containers",
            json!([{"name": "one", "image": "i:1", "env": [{"name": "A", "value": "1"}]}, {"name": "two", "image": "j"}]),
        ),
    ];
    for (patch, at, expected) in cases {
        let mut result = patched(&pod(), &obj, &patch);
        if at == "/spec/containers" {
            let list = result.pointer_mut(at).unwrap().as_array_mut().unwrap();
            list.retain(|c| c["name"] != "new");
        }
        assert_eq!(result.pointer(at).unwrap(), &expected, "{patch}");
    }
}

#[test]
fn element_order_places_new_items() {
    let obj = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}});
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "n"}, {"name": "a"}], "containers": [{"name": "n"}]}});
    let result = patched(&pod(), &obj, &patch);
    let names: Vec<&str> = result["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "c", "n", "a"]);
}

#[test]
fn status_conditions_merge_by_type() {
    let node = Shape::built_in(&GroupVersionKind::gvk("", "v1", "Node"));
    let obj = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}, {"type": "DiskPressure", "status": "False"}]}});
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    assert_eq!(
        patched(&node, &obj, &patch)["status"]["conditions"],
        json!([{"type": "Ready", "status": "Unknown", "reason": "r"}, {"type": "DiskPressure", "status": "False"}])
    );
}

#[test]
fn owner_references_merge_by_uid() {
    let obj =
        json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]}});
    let patch = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}]}});
    assert_eq!(
        patched(&pod(), &obj, &patch)["metadata"]["ownerReferences"],
        json!([{"uid": "2", "name": "b"}])
    );
}

#[test]
fn strategic_merge_refuses_what_it_cannot_do() {
    let custom = Shape::custom(&StructuralSchema::parse(&json!({"type": "object"}), "s").unwrap());
    let error = strategic_merge_patch(&custom, &json!({}), &json!({})).unwrap_err();
    assert_eq!((error.code(), error.reason()), (415, "UnsupportedMediaType"));
    assert_eq!(
        error.to_string(),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    let cases = [
        (json!({"spec": {"containers": [{"image": "x"}]}}), "does not contain declared merge key: name"),
        (
            json!({"metadata": {"$patch": "explode"}}),
            "unknown patch type: explode in map: {\"$patch\":\"explode\"}",
        ),
        (json!({"metadata": {"$retainKeys": ["a"], "b": 1}}), "invalid patch format of retainKeys"),
        (json!([]), "invalid JSON document"),
    ];
    for (patch, text) in cases {
        let error = strategic_merge_patch(&pod(), &json!({}), &patch).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

proptest! {
    #[test]
    fn an_empty_strategic_patch_changes_nothing(obj in any_json()) {
        prop_assume!(obj.is_object());
        prop_assert_eq!(patched(&pod(), &obj, &json!({})), obj);
    }

    #[test]
    fn patches_never_panic(obj in any_json(), patch in any_json()) {
        let _ = strategic_merge_patch(&pod(), &obj, &patch);
        let _ = json_patch(&obj, &patch);
        let mut copy = obj.clone();
        merge_patch(&mut copy, &patch);
    }
}
