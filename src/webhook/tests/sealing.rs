//! Who gets which seal.

use serde_json::{Value, json};

use super::*;
use crate::known::Objects;
use crate::review::read;
use controller::seal::KEY_BYTES;

const NOW: Time = Time::from_secs(1_767_225_600);

fn key() -> Key {
    Key::new(&[7; KEY_BYTES]).unwrap()
}

fn known(owner: Value) -> OtherObjects {
    let policy = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "SubmitPolicy", "metadata": {"name": "p"},
                        "spec": {"owner": owner}});
    OtherObjects::all(&Objects { policies: &[serde_json::from_value(policy).unwrap()], ..Objects::default() })
}

fn by_user() -> OtherObjects {
    known(json!({"from": "User"}))
}

fn job(metadata: Value) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": metadata, "spec": {}})
}

fn asked(operation: &str, new: Value, old: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "kind": {"group": "slotwright.dev", "version": "v1alpha1", "kind": "HTCJob"},
        "resource": {"group": "slotwright.dev", "version": "v1alpha1", "resource": "htcjobs"},
        "name": "fit", "namespace": "lab", "operation": operation,
        "userInfo": {"username": "alice", "groups": ["system:authenticated", "owner:physics", "owner:biology"]},
        "object": new, "oldObject": old, "dryRun": false}})
}

/// The object as it is stored.
fn stored(asked: &Value, known: &OtherObjects, key: Option<&Key>) -> Value {
    let read = read(&serde_json::to_vec(asked).unwrap()).unwrap();
    let response = seal(&read, known, key, NOW).response.unwrap();
    assert!(response.allowed, "{response:?}");
    let mut object = asked["request"]["object"].clone();
    if let Some(patch) = response.patch {
        let patch: Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}

fn seal_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][SUBMITTED_BY].as_str()
}

#[test]
fn a_new_job_is_sealed_for_its_creator_whatever_its_author_wrote() {
    for annotations in
        [json!(null), json!({}), json!({"a": "b"}), json!({SUBMITTED_BY: "{\"user\":\"root\"}"})]
    {
        let mut metadata = json!({"name": "fit", "namespace": "lab"});
        if !annotations.is_null() {
            metadata["annotations"] = annotations.clone();
        }
        let stored = stored(&asked("CREATE", job(metadata), Value::Null), &by_user(), Some(&key()));
        let expected =
            key().seal(&Requester { user: "alice".into(), groups: Vec::new() }, ("lab", "fit", ""), NOW);
        assert_eq!(seal_of(&stored), Some(expected.as_str()), "{annotations}");
        assert_eq!(stored["metadata"]["annotations"]["a"], annotations["a"], "others stay");
    }
}

#[test]
fn groups_are_sealed_as_far_as_the_policy_can_use_them() {
    let by_group = known(json!({"from": "Group", "group": "owner:*"}));
    let stored = stored(&asked("CREATE", job(json!({"name": "fit"})), Value::Null), &by_group, Some(&key()));
    let seal: Value = serde_json::from_str(seal_of(&stored).unwrap()).unwrap();
    assert_eq!((&seal["user"], &seal["groups"]), (&json!("alice"), &json!(["owner:physics"])));
}

#[test]
fn a_job_whose_name_the_api_server_makes_is_sealed_for_the_beginning_of_the_name() {
    let asked = asked("CREATE", job(json!({"generateName": "fit-"})), Value::Null);
    let stored = stored(&asked, &by_user(), Some(&key()));
    let seal: Value = serde_json::from_str(seal_of(&stored).unwrap()).unwrap();
    assert_eq!(seal["generated"], json!(true));
}

#[test]
fn where_nobody_asks_or_no_key_is_there_a_new_job_has_no_seal() {
    let forged = || job(json!({"name": "fit", "annotations": {SUBMITTED_BY: "x", "a": "b"}}));
    for (known, key) in [
        (by_user(), None),
        (OtherObjects::all(&Objects::default()), Some(key())),
        (known(json!({"from": "Namespace"})), Some(key())),
    ] {
        let stored = stored(&asked("CREATE", forged(), Value::Null), &known, key.as_ref());
        assert_eq!(stored["metadata"]["annotations"], json!({"a": "b"}));
    }
}

#[test]
fn before_the_policy_is_known_the_user_is_sealed() {
    let asked = asked("CREATE", job(json!({"name": "fit"})), Value::Null);
    let stored = stored(&asked, &OtherObjects::nothing(), Some(&key()));
    let seal: Value = serde_json::from_str(seal_of(&stored).unwrap()).unwrap();
    assert_eq!((&seal["user"], seal.get("groups")), (&json!("alice"), None));
}

#[test]
fn an_edit_keeps_the_seal() {
    let sealed = |seal: &str| job(json!({"name": "fit", "annotations": {SUBMITTED_BY: seal}}));
    let bare = || job(json!({"name": "fit"}));
    for (new, old, kept) in [
        (sealed("new"), sealed("old"), Some("old")),
        (bare(), sealed("old"), Some("old")),
        (sealed("new"), bare(), None),
        (sealed("old"), sealed("old"), Some("old")),
    ] {
        for key in [None, Some(key())] {
            assert_eq!(
                seal_of(&stored(&asked("UPDATE", new.clone(), old.clone()), &by_user(), key.as_ref())),
                kept
            );
        }
    }
}

#[test]
fn other_objects_and_the_status_are_left_alone() {
    let forged = || job(json!({"name": "fit", "annotations": {SUBMITTED_BY: "x"}}));
    let mut status = asked("UPDATE", forged(), job(json!({"name": "fit"})));
    status["request"]["subResource"] = json!("status");
    let mut other = asked("CREATE", forged(), Value::Null);
    other["request"]["kind"]["kind"] = json!("NodePolicy");
    for asked in [status, other, asked("DELETE", Value::Null, forged())] {
        assert_eq!(stored(&asked, &by_user(), Some(&key())), asked["request"]["object"]);
    }
}
