//! Pods as the pool sees them.

use serde_json::{Value, json};

use super::*;

mod ends;

fn pod(object: &Value) -> SlimPod {
    serde_json::from_str::<Item<SlimPod>>(&object.to_string()).unwrap().object().unwrap()
}

fn view(object: &Value) -> PodView {
    super::view(&pod(object)).unwrap()
}

fn ours(status: Value, metadata: Value) -> PodFacts {
    let mut object = json!({
        "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "labels": {labels::JOB_UID: "job", labels::PROC: "1"},
                     "annotations": {labels::CLAIM: "c"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main"}, {"name": "side"}]},
        "status": status,
    });
    for (key, value) in metadata.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    match view(&object) {
        PodView::Ours(facts) => std::sync::Arc::unwrap_or_clone(facts),
        other => panic!("{other:?}"),
    }
}

/// Whoever takes labels, claim and finalizer off a pod leaves its owner and its name: no other pod of the proc can be made
/// while the pod is there.
#[test]
fn a_pod_without_marks_is_known_by_owner_and_name() {
    let owner = json!([{"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "name": "j", "uid": "job", "controller": true}]);
    let facts =
        ours(json!({"phase": "Failed"}), json!({"labels": {}, "annotations": {}, "ownerReferences": owner}));
    assert_eq!((facts.job, facts.proc, facts.claim), ("job".into(), 1, "".into()));
}

/// A new leader reads what an earlier one last asked the agent, as the agent reads it.
#[test]
fn the_annotation_says_whether_the_job_is_to_be_suspended() {
    for (says, suspended) in [(Some("true"), true), (Some("false"), false), (Some(""), false), (None, false)]
    {
        let mut annotations = json!({labels::CLAIM: "c"});
        if let Some(says) = says {
            annotations[labels::SUSPEND] = says.into();
        }
        let facts = ours(json!({"phase": "Running"}), json!({"annotations": annotations}));
        assert_eq!(facts.suspended, suspended, "{says:?}");
    }
}

/// The node's agent takes a lease that somebody shortened for the shortest one, and so the operator must not count on less.
#[test]
fn no_lease_is_shorter_than_the_shortest() {
    for (says, lease) in
        [("600", Some(600)), ("40", Some(40)), ("39", Some(40)), ("0", Some(40)), ("soon", None)]
    {
        let annotations = json!({labels::CLAIM: "c", labels::LEASE_SECONDS: says});
        let facts = ours(json!({"phase": "Running"}), json!({"annotations": annotations}));
        assert_eq!(facts.lease.map(|lease| lease.as_secs()), lease, "{says}");
    }
}

#[test]
fn what_keeps_a_container_from_starting() {
    let waits = |name: &str, reason: &str| json!({"name": name, "state": {"waiting": {"reason": reason, "message": "no"}}});
    let runs = json!({"name": "main", "state": {"running": {}}});
    for (case, status, expected) in [
        ("nothing is said yet", json!({"phase": "Pending"}), None),
        (
            "it takes its time",
            json!({"phase": "Pending", "containerStatuses": [waits("main", "ContainerCreating")]}),
            None,
        ),
        (
            "no image",
            json!({"phase": "Pending", "containerStatuses": [waits("main", "ErrImagePull")]}),
            Some((35, "container main cannot start: ErrImagePull: no")),
        ),
        (
            "one beside the main one",
            json!({"phase": "Running", "containerStatuses": [runs, waits("side", "CreateContainerConfigError")]}),
            Some((6, "container side cannot start: CreateContainerConfigError: no")),
        ),
        (
            "an init container goes first",
            json!({"phase": "Pending", "initContainerStatuses": [waits("fetch", "ImagePullBackOff")],
                   "containerStatuses": [waits("main", "PodInitializing")]}),
            Some((35, "container fetch cannot start: ImagePullBackOff: no")),
        ),
    ] {
        let facts = ours(status, json!({}));
        let found = facts.obstacle.map(|found| (found.hold.code, found.hold.reason.to_string()));
        assert_eq!(found, expected.map(|(code, reason)| (code, reason.to_owned())), "{case}");
    }
}

#[test]
fn what_a_proc_is_held_for_stands_on_its_pod() {
    for (reason, code) in [
        ("StartdHeldJob", Some(21)),
        ("InvalidDockerImage", Some(35)),
        ("FailedToCreateProcess", Some(6)),
        ("StartdDraining", None),
        ("EvictionByEvictionAPI", None),
    ] {
        let said = json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "so"}]);
        let found = ours(json!({"phase": "Failed", "conditions": said}), json!({})).hold;
        let expected = code.map(|code| HoldReason { code, subcode: 0, reason: "so".into() });
        assert_eq!(found.as_deref(), expected.as_ref(), "{reason}");
    }
}

#[test]
fn requests_follow_the_schedulers_rule() {
    let PodView::Foreign(_, machine, requests) = view(&json!({
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                           {"name": "b", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}],
            "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                               {"name": "i", "resources": {"requests": {"cpu": "3"}}}],
            "overhead": {"cpu": "10m"}},
        "status": {"phase": "Running"}
    })) else {
        panic!("not foreign")
    };
    assert_eq!(machine.as_str(), "n1");
    assert_eq!((requests.milli_cpu, requests.memory), (3_110, 1 << 30));
    assert_eq!(
        requests.extended.iter().map(|(_, amount)| *amount).collect::<Vec<_>>(),
        [1, 1],
        "a GPU and a pod"
    );
}

/// Requests for the pod as a whole replace those of its containers. The pod's overhead is added.
#[test]
fn what_a_pod_requests_as_a_whole_goes_before_its_containers() {
    let requests = |of_pod: Value| match view(&json!({
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"nodeName": "n1", "resources": of_pod, "overhead": {"cpu": "10m"},
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
        "status": {"phase": "Running"}
    })) {
        PodView::Foreign(_, _, requests) => (requests.milli_cpu, requests.memory),
        other => panic!("{other:?}"),
    };
    assert_eq!(requests(json!({"requests": {"cpu": "30"}})), (30_010, 1 << 30));
    assert_eq!(requests(json!({"limits": {"cpu": "2", "memory": "4Gi"}})), (2_010, 4 << 30));
    assert_eq!(requests(json!({})), (510, 1 << 30));
}

#[test]
fn pods_that_hold_nothing_are_of_no_concern() {
    for object in [
        json!({"metadata": {"name": "p", "uid": "u"}}),
        json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}),
    ] {
        assert!(matches!(view(&object), PodView::Neither(_)));
    }
}

fn marked(labels: Value, annotations: Value, rest: Value) -> SlimPod {
    let mut object = json!({
        "metadata": {"name": "sweep-3", "namespace": "ns", "uid": "u", "labels": labels, "annotations": annotations,
            "finalizers": [labels::TRACKING_FINALIZER]},
        "spec": {"nodeName": "n1", "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]},
        "status": {"phase": "Running"},
    });
    for (key, value) in rest.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    pod(&object)
}

/// Whoever may edit a pod may take its marks off while no operator runs. Its finalizer must come off some time.
#[test]
fn a_pod_without_its_marks_is_known_by_its_finalizer_and_its_owner() {
    let owner = json!({"ownerReferences": [{"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "name": "sweep",
        "uid": "job", "controller": true}]});
    let whose = |pod: &SlimPod| match super::view(pod).unwrap() {
        PodView::Ours(facts) => {
            Some((facts.job.to_string(), facts.proc, facts.claim.to_string(), facts.end.is_some()))
        }
        _ => None,
    };
    let claim = json!({labels::CLAIM: "c"});
    let stripped = marked(json!({}), claim, owner.clone());
    assert_eq!(whose(&stripped), Some(("job".into(), 3, "c".into(), false)), "labels alone");
    let stripped = marked(json!({}), json!({}), owner);
    assert_eq!(whose(&stripped), Some(("job".into(), 3, String::new(), false)), "labels and claim");
    let mut bare = marked(json!({}), json!({}), json!({}));
    assert_eq!(whose(&bare), None, "a pod that runs and has nothing but the finalizer is let alone");
    bare.status.phase = "Succeeded".into();
    assert_eq!(whose(&bare), Some((String::new(), 0, String::new(), true)), "and let go once it has ended");
}

#[test]
fn a_backfill_pod_stays_one() {
    let annotations = json!({labels::SLOT: "slot1@n1", labels::BACKFILL_TEMPLATE: "m"});
    let pod = marked(json!({labels::BACKFILL: "true"}), annotations, json!({"finalizers": []}));
    let kept = SlimPod::keep(&pod, None);
    let stripped = marked(json!({}), json!({}), json!({"finalizers": []}));
    match SlimPod::keep(&stripped, Some(&kept)) {
        Some(KeptPod::Backfill(facts)) => assert_eq!((facts.slot, &*facts.mark), (Some(1), "m")),
        other => panic!("{other:?}"),
    }
    let of = |pod: &SlimPod| match super::view(pod) {
        Some(PodView::Backfill(facts)) => facts.requests.map(|own| own.milli_cpu),
        other => panic!("{other:?}"),
    };
    let undecoded = SlimPod::taken_for(pod.metadata.clone()).unwrap();
    assert_eq!((of(&pod), of(&undecoded)), (Some(500), None), "the second is known by its metadata alone");
}
