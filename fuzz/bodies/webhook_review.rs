//! Reads any bytes as the body of a review, and any JSON as the spec of each kind, and as the whole object, in reviews. No input may
//! panic, and every review is answered under its own uid.

use std::sync::LazyLock;

use serde_json::{Value, json};
use webhook::{JUDGED, Objects, OtherObjects, read, review};

/// No other objects.
static KNOWN: LazyLock<OtherObjects> = LazyLock::new(|| OtherObjects::all(&Objects::default()));

fn answer(body: &[u8]) {
    let Ok(asked) = read(body) else { return };
    let response = review(&asked, &KNOWN).response.unwrap();
    assert_eq!(Some(&response.uid), asked.request.as_ref().map(|request| &request.uid));
    assert!(response.allowed || !response.result.message.is_empty());
}

/// The objects of a kind that a JSON value makes: with the value as their spec, and with the value as all of the object, status included.
fn objects(kind: &str, value: &Value) -> Vec<Value> {
    let named = |mut object: Value| {
        object["apiVersion"] = json!("slotwright.dev/v1alpha1");
        object["kind"] = json!(kind);
        object
    };
    let whole = value.is_object().then(|| named(value.clone()));
    [named(json!({"metadata": {"name": "x"}, "spec": value}))].into_iter().chain(whole).collect()
}

/// Does what the target does with an input.
pub fn run(body: &[u8]) {
    answer(body);
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    for kind in JUDGED {
        let group = json!({"group": api::GROUP, "version": api::VERSION, "kind": kind});
        let old = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": {}});
        for object in objects(kind, &value) {
            for (operation, part, old) in
                [("CREATE", None, None), ("UPDATE", None, Some(&old)), ("UPDATE", Some("status"), Some(&old))]
            {
                let asked = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                    "uid": "u", "kind": group, "resource": {"group": api::GROUP, "version": api::VERSION, "resource": "x"},
                    "subResource": part, "name": "x", "namespace": "alice", "operation": operation, "userInfo": {},
                    "object": object, "oldObject": old}});
                answer(asked.to_string().as_bytes());
            }
        }
    }
}
