//! How pods end, by what real kubelets write: each row of `docs/reference/pods.md`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::end::evicted;
use super::*;
use model::pool::{End, Forced, Remains};

/// A container status that says how the container ended.
fn ended(name: &str, code: i32, reason: &str, at: &str) -> Value {
    json!({"name": name, "state": {"terminated": {
        "exitCode": code, "reason": reason, "finishedAt": format!("2026-01-01T{at}Z")}}})
}

fn runs(name: &str) -> Value {
    json!({"name": name, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
}

fn waits(name: &str, reason: &str) -> Value {
    json!({"name": name, "state": {"waiting": {"reason": reason}}})
}

/// The metadata of a pod that was deleted at 00:10:00 with a grace of 30 s.
fn deleted() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:10:30Z", "deletionGracePeriodSeconds": 30})
}

/// The metadata of a pod after the kubelet's own last deletion, or a deletion by force, at 00:10:05.
fn last_deletion() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:10:05Z", "deletionGracePeriodSeconds": 0})
}

/// The condition that somebody writes before the pod is deleted.
fn target(reason: &str, at: &str) -> Value {
    json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "so",
            "lastTransitionTime": format!("2026-01-01T{at}Z")}])
}

#[allow(clippy::unnecessary_wraps, reason = "a row of a table says whether the proc has ended")]
fn code(code: i32) -> Option<End> {
    Some(End::Exited { code })
}

#[allow(clippy::unnecessary_wraps, reason = "a row of a table says whether the proc has ended")]
fn gone(why: &str) -> Option<End> {
    Some(evicted(why))
}

const DELETED: &str = "its pod was deleted";

#[test]
fn a_program_that_ends_by_itself_is_done() {
    let main = |exit| ended("main", exit, if exit == 0 { "Completed" } else { "Error" }, "00:05:00");
    for (case, status, end, remains) in [
        ("waits", json!({"phase": "Pending"}), None, Remains::Nothing),
        ("runs", json!({"phase": "Running", "containerStatuses": [runs("main")]}), None, Remains::Nothing),
        (
            "has ended, and the kubelet has not yet said that the pod has",
            json!({"phase": "Running", "containerStatuses": [main(0), ended("side", 0, "Completed", "00:05:00")]}),
            code(0),
            Remains::Ending,
        ),
        (
            "has ended beside a container that runs on",
            json!({"phase": "Running", "containerStatuses": [main(3), runs("side")]}),
            code(3),
            Remains::Others,
        ),
        (
            "runs on beside a container that has failed",
            json!({"phase": "Running", "containerStatuses": [runs("main"), ended("side", 7, "Error", "00:05:00")]}),
            None,
            Remains::Nothing,
        ),
        (
            "ended well",
            json!({"phase": "Succeeded", "containerStatuses": [main(0)]}),
            code(0),
            Remains::Nothing,
        ),
        ("ended well, as short as can be", json!({"phase": "Succeeded"}), code(0), Remains::Nothing),
        ("failed", json!({"phase": "Failed", "containerStatuses": [main(3)]}), code(3), Remains::Nothing),
        (
            "ended well beside a container that failed",
            json!({"phase": "Failed", "containerStatuses": [main(0), ended("side", 7, "Error", "00:05:00")]}),
            code(0),
            Remains::Nothing,
        ),
        (
            "took longer than its own deadline",
            json!({"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": [main(0)]}),
            code(1),
            Remains::Nothing,
        ),
        (
            "was killed by its own deadline",
            json!({"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": [main(143)]}),
            code(143),
            Remains::Nothing,
        ),
        (
            "failed though it is no target of a disruption",
            json!({"phase": "Failed", "containerStatuses": [main(3)],
                   "conditions": [{"type": "DisruptionTarget", "status": "False"}]}),
            code(3),
            Remains::Nothing,
        ),
        (
            "failed in an init container",
            json!({"phase": "Failed", "containerStatuses": [waits("main", "PodInitializing")],
                   "initContainerStatuses": [ended("fetch", 4, "Error", "00:05:00")]}),
            Some(End::InitFailed { container: "fetch".into(), code: 4 }),
            Remains::Nothing,
        ),
    ] {
        let facts = ours(status, json!({}));
        assert_eq!((&facts.end, &facts.hold, facts.told), (&end, &None, false), "{case}");
        assert!(end.is_none() || facts.remains == remains, "{case}: {:?}", facts.remains);
    }
}

/// A service mesh puts its proxy before the other containers. The container that the template named first is the main one.
#[test]
fn the_main_container_is_the_templates_first_wherever_admission_put_it() {
    let facts = |annotations: Value, statuses: Value| {
        let object = json!({
            "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "annotations": annotations,
                         "labels": {labels::JOB_UID: "job", labels::PROC: "1"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "proxy"}, {"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": statuses},
        });
        match view(&object) {
            PodView::Ours(facts) => std::sync::Arc::unwrap_or_clone(facts),
            other => panic!("{other:?}"),
        }
    };
    let marked = json!({labels::CLAIM: "c", labels::MAIN_CONTAINER: "main"});
    let failed = json!([ended("main", 1, "Error", "00:05:00"), runs("proxy")]);
    let crashed = json!([runs("main"), ended("proxy", 7, "Error", "00:05:00")]);
    let seen = facts(marked.clone(), failed);
    assert_eq!((seen.end, seen.remains), (code(1), Remains::Others));
    let seen = facts(marked, crashed.clone());
    assert_eq!((seen.end, seen.started.is_some()), (None, true));
    // A pod of an earlier version, and a mark that somebody edited: the first container counts.
    for annotations in
        [json!({labels::CLAIM: "c"}), json!({labels::CLAIM: "c", labels::MAIN_CONTAINER: "none"})]
    {
        assert_eq!(facts(annotations, crashed.clone()).end, code(7));
    }
}

/// A program was told to end at 00:01:00, its node was cut off, and the pod was deleted again with a shorter grace period. The API server
/// forgets the first deletion; whoever saw it does not. Found by seed 616000615.
#[test]
fn a_later_deletion_does_not_hide_when_a_program_was_told_to_end() {
    let version = |deadline: &str, grace: u64, status: Value| {
        let object = json!({
            "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "annotations": {labels::CLAIM: "c"},
                         "labels": {labels::JOB_UID: "job", labels::PROC: "1"},
                         "deletionTimestamp": format!("2026-01-01T{deadline}Z"), "deletionGracePeriodSeconds": grace},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": status,
        });
        pod(&object)
    };
    let failed = || json!({"phase": "Failed", "containerStatuses": [ended("main", 7, "Error", "00:01:01")]});
    let first = version("00:01:30", 30, json!({"phase": "Running", "containerStatuses": [runs("main")]}));
    let last = version("00:03:01", 1, failed());
    let facts = |before: Option<&Option<KeptPod>>, pod: &SlimPod| match SlimPod::keep(pod, before) {
        Some(KeptPod::Ours(facts)) => facts,
        other => panic!("{other:?}"),
    };
    let before = SlimPod::keep(&first, None);
    let seen = facts(Some(&before), &last);
    assert_eq!((seen.end.clone(), seen.told), (gone(DELETED), true));
    assert_eq!(facts(None, &last).end, code(7), "nobody can know of the first deletion any more");
}

/// An eviction came to nothing, and Kubernetes took its condition back. The program's end long after is its own.
#[test]
fn an_eviction_that_came_to_nothing_is_forgotten() {
    let version = |target_is: &str, status: Value| {
        let condition = json!([{"type": "DisruptionTarget", "status": target_is, "reason": "EvictionByEvictionAPI",
                                "lastTransitionTime": "2026-01-01T00:01:00Z"}]);
        let mut object = json!({
            "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "annotations": {labels::CLAIM: "c"},
                         "labels": {labels::JOB_UID: "job", labels::PROC: "1"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": status,
        });
        object["status"]["conditions"] = condition;
        pod(&object)
    };
    let running = || json!({"phase": "Running", "containerStatuses": [runs("main")]});
    let asked = SlimPod::keep(&version("True", running()), None);
    let taken_back = SlimPod::keep(&version("False", running()), Some(&asked));
    let well =
        json!({"phase": "Succeeded", "containerStatuses": [ended("main", 0, "Completed", "00:05:00")]});
    match SlimPod::keep(&version("False", well), Some(&taken_back)) {
        Some(KeptPod::Ours(facts)) => assert_eq!((&facts.end, facts.told), (&code(0), false)),
        other => panic!("{other:?}"),
    }
}

/// The kubelet ends the sidecars once an init container has failed.
#[test]
fn a_sidecar_is_not_blamed_for_the_init_container_that_failed_after_it() {
    let end = |restart_policy: &str, statuses: Value| {
        let object = json!({
            "metadata": {"name": "j-1", "namespace": "ns", "uid": "u", "annotations": {labels::CLAIM: "c"},
                         "labels": {labels::JOB_UID: "job", labels::PROC: "1"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}],
                     "initContainers": [{"name": "proxy", "restartPolicy": restart_policy}, {"name": "fetch"}]},
            "status": {"phase": "Failed", "initContainerStatuses": statuses,
                       "containerStatuses": [waits("main", "PodInitializing")]},
        });
        match view(&object) {
            PodView::Ours(facts) => (facts.end.clone(), facts.hold.clone()),
            other => panic!("{other:?}"),
        }
    };
    let failed = |container: &str, code| (Some(End::InitFailed { container: container.into(), code }), None);
    let (killed, fetch) =
        (ended("proxy", 137, "OOMKilled", "00:05:01"), ended("fetch", 22, "Error", "00:05:00"));
    assert_eq!(end("Always", json!([killed, fetch])), failed("fetch", 22));
    let (proxy, well) = (ended("proxy", 1, "Error", "00:05:01"), ended("fetch", 0, "Completed", "00:05:00"));
    assert_eq!(end("Always", json!([proxy, well])), failed("proxy", 1));
    assert_eq!(
        end("Never", json!([ended("proxy", 1, "Error", "00:05:01"), waits("fetch", "PodInitializing")])),
        failed("proxy", 1)
    );
}

#[test]
fn a_program_that_was_told_to_end_is_evicted() {
    let main = |exit, at| json!([ended("main", exit, "Error", at)]);
    let status = |phase, main: Value, conditions: Value| json!({"phase": phase, "containerStatuses": main, "conditions": conditions});
    let none = || json!([]);
    for (case, status, metadata, end) in [
        ("is being deleted", status("Running", json!([runs("main")]), none()), deleted(), None),
        (
            "has obeyed, which the kubelet says in a moment",
            status("Running", main(0, "00:10:03"), none()),
            deleted(),
            None,
        ),
        ("obeyed at once", status("Succeeded", main(0, "00:10:00"), none()), deleted(), gone(DELETED)),
        ("obeyed after 3 s", status("Succeeded", main(0, "00:10:03"), none()), deleted(), gone(DELETED)),
        (
            "obeyed with a code of its own",
            status("Failed", main(7, "00:10:03"), none()),
            deleted(),
            gone(DELETED),
        ),
        ("died of the signal", status("Failed", main(143, "00:10:00"), none()), deleted(), gone(DELETED)),
        // The node's clock may be behind.
        ("ended 3 s before", status("Succeeded", main(0, "00:09:57"), none()), deleted(), gone(DELETED)),
        ("ended 60 s before", status("Succeeded", main(0, "00:09:00"), none()), deleted(), gone(DELETED)),
        ("ended long before", status("Succeeded", main(0, "00:08:59"), none()), deleted(), code(0)),
        ("failed long before", status("Failed", main(3, "00:08:59"), none()), deleted(), code(3)),
        (
            "nobody knows when it ended",
            status(
                "Succeeded",
                json!([{"name": "main", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]),
                none(),
            ),
            deleted(),
            gone(DELETED),
        ),
        // The kubelet's own last deletion moves the time to now.
        (
            "obeyed, and was deleted for good",
            status("Succeeded", main(0, "00:10:03"), none()),
            last_deletion(),
            gone(DELETED),
        ),
        (
            "ended long before a deletion of which nobody knows when",
            status("Succeeded", main(0, "00:05:00"), none()),
            last_deletion(),
            gone(DELETED),
        ),
        (
            "obeyed the eviction API",
            status("Failed", main(7, "00:10:03"), target("EvictionByEvictionAPI", "00:10:00")),
            last_deletion(),
            gone("EvictionByEvictionAPI: so"),
        ),
        (
            "obeyed the operator, before the deletion is seen",
            status("Succeeded", main(0, "00:10:00"), target("StartdDraining", "00:10:00")),
            json!({}),
            gone("StartdDraining: so"),
        ),
        (
            "ended long before the operator asked",
            status("Succeeded", main(0, "00:05:00"), target("StartdDraining", "00:10:00")),
            deleted(),
            code(0),
        ),
        (
            "was asked by a user before the taint said so",
            status("Succeeded", main(0, "00:10:20"), target("DeletionByTaintManager", "00:15:00")),
            deleted(),
            gone("DeletionByTaintManager: so"),
        ),
    ] {
        let facts = ours(status, metadata);
        let told = end.as_ref().is_some_and(|end| !end.is_final());
        assert_eq!((&facts.end, facts.told, facts.forced), (&end, told, Forced::No), "{case}");
        assert!(end.is_none() || facts.remains == Remains::Nothing, "{case}: {:?}", facts.remains);
    }
}

/// A kubelet's status of a container that was created and never started.
fn created(phase: &str, at: Option<&str>) -> Value {
    let terminated =
        json!({"exitCode": 0, "startedAt": at, "finishedAt": at, "containerID": "containerd://1"});
    json!({"phase": phase, "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}]})
}

#[test]
fn a_container_that_is_created_has_not_ended_while_its_pod_has_no_last_phase() {
    let facts = ours(created("Running", None), json!({}));
    assert_eq!((facts.end, facts.hold), (None, None));
}

#[test]
fn what_a_node_lost_or_refused_is_evicted() {
    let lost = "the node lost the pod's containers: nobody knows how the containers ended";
    let before_start = "the node lost the container after creating it and before the program started";
    for (case, status, why) in [
        ("refused", json!({"phase": "Failed", "reason": "OutOfcpu", "message": "no"}), "OutOfcpu: no"),
        (
            "evicted, since its node is low on memory",
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}),
            "Evicted: The node was low on resource: memory. ",
        ),
        (
            "lost by a runtime that started again",
            json!({"phase": "Failed", "containerStatuses": [ended("main", 255, "Unknown", "00:05:00")]}),
            "the node lost the container, as happens when a node restarts: Unknown (exit code 255)",
        ),
        (
            "lost in an init container",
            json!({"phase": "Failed", "initContainerStatuses": [ended("fetch", 137, "ContainerStatusUnknown", "00:05:00")]}),
            "the node lost the container, as happens when a node restarts: ContainerStatusUnknown (exit code 137)",
        ),
        (
            "lost with its node's disk: waiting, and unknown before",
            json!({"phase": "Failed", "containerStatuses": [{"name": "main",
                "state": {"waiting": {"reason": "ContainerCreating"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}]}),
            lost,
        ),
        ("failed without a word", json!({"phase": "Failed"}), lost),
        ("created, and lost before the start", created("Succeeded", None), before_start),
        (
            "the same, with the time of a clock that was never set",
            created("Succeeded", Some("1970-01-01T00:00:00Z")),
            before_start,
        ),
        (
            "ended by the node's guard",
            json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated":
                {"exitCode": 137, "reason": "Error", "message": "slotwright.dev/fenced"}}}]}),
            "the node's agent could not renew its Lease for as long as the lease of the claim, and the node's guard ended the pod",
        ),
    ] {
        let facts = ours(status, json!({}));
        assert_eq!((facts.end, facts.hold), (gone(why), None), "{case}");
    }
}

#[test]
fn an_end_that_would_come_again_holds_the_proc() {
    let failed = |reason: &str, code: i32| json!({"phase": "Failed", "containerStatuses": [ended("main", code, reason, "00:05:00")]});
    let evicted = |message: &str| json!({"phase": "Failed", "reason": "Evicted", "message": message});
    let not_started = |message: &str| {
        let mut status = failed("StartError", 128);
        status["containerStatuses"][0]["state"]["terminated"]["message"] = json!(message);
        status
    };
    let memory = "the program went over its memory limit and was killed: raise memory in spec.requests";
    let disk = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ";
    for (case, status, expected) in [
        ("out of memory", failed("OOMKilled", 137), Some((34, memory.to_owned()))),
        (
            "its child was killed for memory, and it failed",
            failed("OOMKilled", 1),
            Some((34, memory.to_owned())),
        ),
        ("its child was killed for memory, and it went on", failed("OOMKilled", 0), None),
        ("over its disk", evicted(disk), Some((34, format!("Evicted: {disk}")))),
        (
            "no such program",
            not_started(NO_PROGRAM),
            Some((6, format!("the program of its container cannot be started: StartError: {NO_PROGRAM}"))),
        ),
        ("killed", failed("Error", 137), None),
    ] {
        let facts = ours(status.clone(), json!({}));
        let held = facts.hold.map(|hold| (hold.code, hold.reason.to_string()));
        assert_eq!(held, expected, "{case}");
        assert_eq!(facts.end.is_some_and(|end| end.is_final()), expected.is_none(), "{case}");
        let about_then =
            json!({"deletionTimestamp": "2026-01-01T00:05:30Z", "deletionGracePeriodSeconds": 30});
        let told = ours(status, about_then);
        assert_eq!(told.hold, None, "{case}, having been told to end");
        assert!(told.end.is_some_and(|end| !end.is_final()), "{case}, having been told to end");
    }
}

/// runc's message about a command that does not exist.
const NO_PROGRAM: &str = "failed to create containerd task: failed to create shim task: OCI runtime create failed: container_linux.go:380: starting container process caused: exec: \"/no\": stat /no: no such file or directory: unknown";

/// A runtime that is killed while it starts a container reports the same reason as for a program that does not exist.
#[test]
fn a_node_that_could_not_start_a_container_evicts() {
    let mut status =
        json!({"phase": "Failed", "containerStatuses": [ended("main", 128, "StartError", "00:05:00")]});
    let message = "failed to create shim task: context canceled: unknown";
    status["containerStatuses"][0]["state"]["terminated"]["message"] = json!(message);
    status["containerStatuses"][0]["state"]["terminated"]["startedAt"] = json!("1970-01-01T00:00:00Z");
    let facts = ours(status, json!({}));
    assert_eq!(facts.started, None, "the runtime does not know a time: the program did not start");
    let why = format!("its node could not start its container: StartError: {message}");
    assert_eq!((facts.end, facts.hold), (gone(&why), None));
}

#[test]
fn a_pod_that_was_taken_off_its_kubelet_is_not_known_to_have_ended() {
    let collected = |containers: Value| {
        json!({"phase": "Failed", "containerStatuses": containers,
        "conditions": target("DeletionByPodGC", "00:10:00")})
    };
    for (case, status, metadata, forced) in [
        ("deleted", json!({"phase": "Running", "containerStatuses": [runs("main")]}), deleted(), Forced::No),
        (
            "forced",
            json!({"phase": "Running", "containerStatuses": [runs("main")]}),
            last_deletion(),
            Forced::Running,
        ),
        ("forced before it ran", json!({"phase": "Pending"}), last_deletion(), Forced::Idle),
        (
            "forced while a sidecar ran",
            json!({"phase": "Pending", "initContainerStatuses": [runs("proxy")]}),
            last_deletion(),
            Forced::Running,
        ),
        (
            "forced, and its container has ended",
            json!({"phase": "Running", "containerStatuses": [ended("main", 137, "Error", "00:10:05")]}),
            last_deletion(),
            Forced::Running,
        ),
        (
            "collected, its Node being gone",
            collected(json!([runs("main")])),
            last_deletion(),
            Forced::Running,
        ),
        ("collected before a container was seen", collected(json!([])), json!({}), Forced::Idle),
    ] {
        let facts = ours(status, metadata);
        assert_eq!((facts.end, facts.forced), (None, forced), "{case}");
    }
}

#[test]
fn how_long_a_deletion_lets_a_pod_run() {
    let runs = json!({"phase": "Running", "containerStatuses": [runs("main")]});
    let written = json!({labels::CLAIM: "c", labels::GRANTED_SECONDS: "600"});
    let mut shortened = last_deletion();
    shortened["deletionGracePeriodSeconds"] = json!(1);
    shortened["annotations"] = written;
    for (case, metadata, expected) in [
        ("nobody deletes it", json!({}), None),
        ("deleted", deleted(), Some(30)),
        ("forced, which hides what it was before", last_deletion(), Some(0)),
        ("shortened by the operator, which kept the first time", shortened, Some(600)),
    ] {
        let facts = ours(runs.clone(), metadata);
        assert_eq!(facts.grace.map(Duration::from), expected.map(Duration::from_secs), "{case}");
        assert_eq!(Duration::from(facts.own_grace), Duration::from_secs(30), "{case}");
    }
}

proptest! {
    /// With any handler of TERM, and any clock of the node within [`SKEW`], a pod that was asked to go in this second or before
    /// is not done.
    #[test]
    fn nothing_that_was_told_to_end_counts_as_done(
        handler in prop::sample::select(vec![0_i64, 1, 3, 25]),
        exit in prop::sample::select(vec![0, 7, 143]),
        fraction in 0_i64..1000,
        clock in -58_i64..=60,
        kubelet_deleted in any::<bool>(),
        said in any::<bool>(),
    ) {
        let asked = 1_767_225_600_000 + fraction;
        let end = asked + handler * 1000;
        let text = |millis: i64| jiff::Timestamp::from_second(millis.div_euclid(1000)).unwrap().to_string();
        let finished = json!({"exitCode": exit, "reason": "Error", "finishedAt": text(end + clock * 1000)});
        let metadata = if kubelet_deleted {
            json!({"deletionTimestamp": text(end + 1500), "deletionGracePeriodSeconds": 0})
        } else {
            json!({"deletionTimestamp": text(asked + 30_000), "deletionGracePeriodSeconds": 30})
        };
        let conditions = if said {
            json!([{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": text(asked)}])
        } else {
            json!([])
        };
        for phase in ["Running", if exit == 0 { "Succeeded" } else { "Failed" }] {
            let status = json!({"phase": phase, "conditions": conditions,
                "containerStatuses": [{"name": "main", "state": {"terminated": finished}}]});
            let facts = ours(status, metadata.clone());
            prop_assert!(facts.end.is_none_or(|end| !end.is_final()));
        }
    }
}
