//! Pods as the pool sees them.

use serde_json::{Value, json};

use super::end::evicted;
use super::*;
use model::pool::End;

fn view(object: Value) -> PodView {
    super::view(&serde_json::from_value(object).unwrap()).unwrap()
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
    match view(object) {
        PodView::Ours(facts) => facts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ends_of_pods() {
    let status = |name: &str, code: i32| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
    for (case, status, metadata, end) in [
        ("waits", json!({"phase": "Pending"}), json!({}), None),
        ("runs", json!({"phase": "Running"}), json!({}), None),
        ("ends well", json!({"phase": "Succeeded"}), json!({}), Some(End::Exited { code: 0 })),
        (
            "fails",
            json!({"phase": "Failed", "containerStatuses": [status("side", 7), status("main", 3)]}),
            json!({}),
            Some(End::Exited { code: 3 }),
        ),
        (
            "a side container fails",
            json!({"phase": "Failed", "containerStatuses": [status("side", 7), status("main", 0)]}),
            json!({}),
            Some(End::Exited { code: 7 }),
        ),
        (
            "is refused",
            json!({"phase": "Failed", "reason": "OutOfcpu", "message": "no"}),
            json!({}),
            Some(evicted("OutOfcpu: no")),
        ),
        (
            "takes too long",
            json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
            json!({}),
            Some(End::Exited { code: 1 }),
        ),
        (
            "its node is gone",
            json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
                   "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists"}]}),
            json!({}),
            Some(evicted("DeletionByPodGC: PodGC: node no longer exists")),
        ),
        (
            "fails though it is no target of a disruption",
            json!({"phase": "Failed", "containerStatuses": [status("main", 3)],
                   "conditions": [{"type": "DisruptionTarget", "status": "False"}]}),
            json!({}),
            Some(End::Exited { code: 3 }),
        ),
    ] {
        assert_eq!(ours(status, metadata).end, end, "{case}");
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
        assert_eq!(found, expected, "{reason}");
    }
}

#[test]
fn ends_of_deleted_pods() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30});
    let forced = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0});
    // Deletion was asked for 30 s before the deadline.
    let ends = |code: i32, time: &str| json!({"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": time}}});
    let at = |time: &str| ends(0, time);
    let vacated = json!([{"type": "DisruptionTarget", "status": "True", "reason": "StartdDraining", "message": "firmware"}]);
    for (case, status, metadata, end) in [
        ("is being deleted", json!({"phase": "Running"}), deleted.clone(), None),
        ("was deleted", json!({"phase": "Failed"}), deleted.clone(), Some(evicted("its pod was deleted"))),
        (
            "ended well because it was told to stop",
            json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:40Z")]}),
            deleted.clone(),
            Some(evicted("its pod was deleted")),
        ),
        (
            "ended well before it was deleted",
            json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:20Z")]}),
            deleted.clone(),
            Some(End::Exited { code: 0 }),
        ),
        (
            "ended well in the second in which it was deleted",
            json!({"phase": "Succeeded", "containerStatuses": [at("2025-12-31T23:59:30Z")]}),
            deleted.clone(),
            Some(End::Exited { code: 0 }),
        ),
        (
            "died in the second in which it was deleted",
            json!({"phase": "Failed", "containerStatuses": [ends(143, "2025-12-31T23:59:30Z")]}),
            deleted.clone(),
            Some(evicted("its pod was deleted")),
        ),
        (
            "failed before the operator evicted it",
            json!({"phase": "Failed", "containerStatuses": [ends(3, "2025-12-31T23:59:20Z")], "conditions": vacated}),
            deleted.clone(),
            Some(End::Exited { code: 3 }),
        ),
        (
            "died when the operator evicted it",
            json!({"phase": "Failed", "containerStatuses": [ends(143, "2025-12-31T23:59:40Z")], "conditions": vacated}),
            deleted.clone(),
            Some(evicted("StartdDraining: firmware")),
        ),
        (
            "failed before it was deleted",
            json!({"phase": "Failed", "containerStatuses": [ends(3, "2025-12-31T23:59:20Z")]}),
            deleted,
            Some(End::Exited { code: 3 }),
        ),
        ("was forced", json!({"phase": "Running"}), forced, Some(evicted("its pod was deleted"))),
    ] {
        assert_eq!(ours(status, metadata).end, end, "{case}");
    }
}

#[test]
fn requests_follow_the_schedulers_rule() {
    let PodView::Foreign(_, machine, requests) = view(json!({
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
    assert_eq!(requests.extended.values().copied().collect::<Vec<_>>(), [1, 1], "a GPU and a pod");
}

/// What the pod says as a whole is what it takes, whatever its containers say; its overhead comes on top.
#[test]
fn what_a_pod_requests_as_a_whole_goes_before_its_containers() {
    let requests = |of_pod: Value| match view(json!({
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

/// After a node has started again runtime and kubelet make up an exit code for what they cannot find.
#[test]
fn what_a_node_lost_has_not_ended() {
    let ended = |code: i32, reason: &str| json!({"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}});
    let of = |status: Value| ours(status, json!({})).end;
    for (code, reason, lost) in [
        (255, "Unknown", true),
        (137, "ContainerStatusUnknown", true),
        (255, "Error", false),
        (137, "OOMKilled", false),
    ] {
        let end = of(json!({"phase": "Failed", "containerStatuses": [ended(code, reason)]}));
        let expected = if lost {
            evicted(&format!("its node lost it, as one does that starts again: {reason} (exit code {code})"))
        } else {
            End::Exited { code }
        };
        assert_eq!(end, Some(expected), "{reason}");
    }
    let fetching = json!({"phase": "Failed", "initContainerStatuses": [ended(255, "Unknown")]});
    assert!(matches!(of(fetching), Some(End::Evicted { .. })), "while an init container ran");
}

/// The node's clock may be behind the API server's: who dies of the signal about when it is told to has obeyed.
#[test]
fn who_dies_of_the_signal_while_its_pod_is_deleted_has_obeyed() {
    // Deletion was asked for at 00:10:00.
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:10:30Z", "deletionGracePeriodSeconds": 30});
    let end = |code: i32, reason: &str, at: &str, metadata: &Value| {
        let ended = json!({"exitCode": code, "reason": reason, "finishedAt": format!("2026-01-01T{at}Z")});
        let status = json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]});
        ours(status, metadata.clone()).end
    };
    for (code, reason, at, obeyed) in [
        (143, "Error", "00:09:57", true),
        (137, "Error", "00:09:57", true),
        (143, "Error", "00:08:00", false),
        (137, "OOMKilled", "00:09:57", false),
        (1, "Error", "00:09:57", false),
    ] {
        let expected = if obeyed { evicted("its pod was deleted") } else { End::Exited { code } };
        assert_eq!(end(code, reason, at, &deleted), Some(expected), "{code} {reason} {at}");
        assert_eq!(end(code, reason, at, &json!({})), Some(End::Exited { code }), "nobody deletes it");
    }
}

#[test]
fn pods_that_hold_nothing_are_of_no_concern() {
    for object in [
        json!({"metadata": {"name": "p", "uid": "u"}}),
        json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}),
    ] {
        assert!(matches!(view(object), PodView::Neither(_)));
    }
}
