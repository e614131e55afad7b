#![no_main]
//! Reads any bytes as the body of a review, and any JSON as the spec of each kind in a review. No input may panic, and every
//! review is answered under its own uid.

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use webhook::{Known, Objects, read, review};

const KINDS: [&str; 8] = [
    "HTCJob",
    "SubmitPolicy",
    "NodePolicy",
    "Negotiator",
    "GroupQuota",
    "ConcurrencyLimit",
    "Submitter",
    "DrainRequest",
];

fn answer(body: &[u8]) {
    let Ok(asked) = read(body) else { return };
    let known = Known::all(&Objects::default());
    let response = review(&asked, &known).response.unwrap();
    assert_eq!(Some(&response.uid), asked.request.as_ref().map(|request| &request.uid));
    assert!(response.allowed || !response.result.message.is_empty());
}

fuzz_target!(|body: &[u8]| {
    answer(body);
    let Ok(spec) = serde_json::from_slice::<Value>(body) else { return };
    for kind in KINDS {
        let group = json!({"group": api::GROUP, "version": api::VERSION, "kind": kind});
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        let asked = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": group, "resource": {"group": api::GROUP, "version": api::VERSION, "resource": "x"},
            "name": "x", "namespace": "alice", "operation": "CREATE", "userInfo": {}, "object": object}});
        answer(asked.to_string().as_bytes());
    }
});
