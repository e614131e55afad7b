//! How pods end: what their containers are told, and what the kubelet writes.

use jiff::SignedDuration;

use super::super::status::Lost;
use super::*;

#[test]
fn a_pod_runs_for_its_time_and_ends_with_its_exit_code() {
    check_end(vec![(0, pod("a", json!({})))], 1000, 0, false);
    let fails = scripted(&[("runtime", "250ms"), ("exit-code", "3"), ("start-delay", "1s")]);
    let story = ["1000 a Running", "1250 a Running exit 3", "2250 a Failed exit 3"];
    check(vec![(0, pod("a", fails))], &story);
    let service = json!({"spec": {"restartPolicy": "Always"}});
    check(vec![(0, pod("a", service))], &["0 a Running"]);
}

#[test]
fn deletion_sends_term_then_kill_and_removes_the_object_last() {
    let long = || scripted(&[("runtime", "1h")]);
    let with = |more: &[(&str, &str)]| both(long(), scripted(more));
    let cases = [
        (long(), 30, 2000, 143),
        (with(&[("term-delay", "200ms")]), 30, 2200, 143),
        (with(&[("term-exit-code", "0")]), 30, 2000, 0),
        (with(&[("term-delay", "5s")]), 3, 5000, 137),
        (with(&[("ignore-term", "true")]), 4, 6000, 137),
        (with(&[("ignore-term", "true"), ("runtime", "3s")]), 4, 3000, 0),
        // The least grace of a kubelet is two seconds.
        (with(&[("ignore-term", "true")]), 1, 4000, 137),
        // Only a finalizer keeps a pod that was deleted by force. Its containers run until the kubelet has ended them.
        (with(&[("ignore-term", "true")]), 0, 4000, 137),
        (with(&[("term-delay", "1s"), ("term-exit-code", "7")]), 0, 3000, 7),
    ];
    for (script, grace, at, code) in cases {
        let events = vec![(0, pod("a", script.clone())), (2000, pod("a", both(script, deleted(grace))))];
        check_end(events, at, code, true);
    }
}

/// kubernetes#83916
#[test]
fn the_first_grace_counts_whatever_is_asked_for_later() {
    let stubborn = scripted(&[("runtime", "1h"), ("ignore-term", "true")]);
    let delete = |grace| pod("a", both(stubborn.clone(), deleted(grace)));
    for second in [0, 1, 5, 60] {
        let story = vec![(0, pod("a", stubborn.clone())), (1000, delete(30)), (2000, delete(second))];
        check_end(story, 31_000, 137, true);
    }
}

#[test]
fn containers_whose_pod_is_gone_run_on_and_hold_what_they_have() {
    let all = |name: &str, more: &[(&str, &str)]| {
        let script = both(scripted(&[("runtime", "1h"), ("ignore-term", "true")]), scripted(more));
        both(both(script, requests(json!({"cpu": "4"}))), json!({"metadata": {"uid": name}}))
    };
    let next = |time: i64| (time, pod(&format!("b{time}"), requests(json!({"cpu": "4"}))));
    // Nobody asked the pod to end before it went. So the kubelet ends it with the shortest grace period.
    let story = vec![(0, pod("a", all("a", &[]))), (1000, Event::Gone("a".into())), next(3900), next(4000)];
    let refused = ["0 a Running", "3900 b3900 Failed OutOfcpu", "4000 b4000 Running"];
    let last = ["5000 b4000 Running exit 0", "6000 b4000 Succeeded exit 0"];
    check(story, &[refused.as_slice(), last.as_slice()].concat());
    // A pod that was told to end before it went has the rest of its first grace period.
    let going = both(all("a", &[]), deleted(20));
    let story = vec![
        (0, pod("a", all("a", &[]))),
        (1000, pod("a", going)),
        (5000, Event::Gone("a".into())),
        (5001, Event::Gone("a".into())),
        next(21_900),
        next(22_000),
    ];
    let refused = ["0 a Running", "21900 b21900 Failed OutOfcpu", "22000 b22000 Running"];
    let last = ["23000 b22000 Running exit 0", "24000 b22000 Succeeded exit 0"];
    check(story, &[refused.as_slice(), last.as_slice()].concat());
}

#[test]
fn containers_that_cannot_start_wait_until_the_pod_is_deleted() {
    let missing = scripted(&[("start-error", "ErrImagePull: no such image")]);
    let taken = step(&mut NodeState::new(&shape(), 1), pod("a", missing.clone()), at(0));
    let [Action::Report { phase: Phase::Pending, patch, .. }] = taken.as_slice() else {
        panic!("{taken:?}");
    };
    let waits = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
    assert_eq!(patch["status"]["containerStatuses"][0]["state"], waits);
    let events = vec![(0, pod("a", missing.clone())), (9000, pod("a", both(missing, deleted(30))))];
    check(events, &["0 a Pending", "9000 a Failed exit 137", "9000 a removed"]);
}

/// The statuses that a kubelet writes of a pod, as far as they end it: phase, reason, and the first container's and init
/// container's state.
fn states(script: Value) -> Vec<Value> {
    let mut state = NodeState::new(&shape(), 1);
    let mut actions = step(&mut state, pod("a", script), at(0));
    while let Some(wake) = state.next_wake().filter(|wake| *wake < at(1_000_000_000)) {
        actions.extend(step(&mut state, Event::Tick, wake));
    }
    let told = |action: Action| match action {
        Action::Report { phase, patch, .. } => {
            let status = &patch["status"];
            let ended = |list: &str, n: usize| {
                let state = &status[list][n]["state"];
                match state.as_object().and_then(|state| state.iter().next()) {
                    Some((key, state)) if key == "terminated" => {
                        json!([state["reason"], state["exitCode"]])
                    }
                    Some((key, _)) => json!(key),
                    None => Value::Null,
                }
            };
            let (main, other) = (ended("containerStatuses", 0), ended("containerStatuses", 1));
            json!([phase.as_str(), status["reason"], main, other, ended("initContainerStatuses", 0)])
        }
        Action::Remove(_) => json!("removed"),
    };
    actions.into_iter().map(told).collect()
}

#[test]
fn each_way_to_end_has_its_status() {
    let running = json!(["Running", null, "running", null, null]);
    assert_eq!(
        states(scripted(&[("start-error", "StartError: exec: nope: not found")])),
        [json!(["Failed", null, ["StartError", 128], null, null])]
    );
    let killed = |phase: &str| json!([phase, null, ["OOMKilled", 137], null, null]);
    assert_eq!(
        states(scripted(&[("out-of-memory", "true")])),
        [running.clone(), killed("Running"), killed("Failed")]
    );
    assert_eq!(
        states(scripted(&[("evicted", "too much disk")])),
        [
            running,
            json!(["Running", null, ["Error", 137], null, null]),
            json!(["Failed", "Evicted", ["Error", 137], null, null])
        ]
    );
    let init = json!({"spec": {"initContainers": [{"name": "setup", "image": "busybox"}]}});
    assert_eq!(
        states(both(scripted(&[("init-exit-code", "9")]), init)),
        [json!(["Failed", null, "waiting", null, ["Error", 9]])]
    );
}

#[test]
fn containers_end_separately_and_sidecars_after_the_others() {
    let done = || json!(["Completed", 0]);
    let two = json!({"spec": {"containers": [{"name": "main", "image": "busybox"}, {"name": "proxy", "image": "proxy"}]}});
    let longer = both(scripted(&[("others-runtime", "5s")]), two.clone());
    assert_eq!(
        states(longer),
        [
            json!(["Running", null, "running", "running", null]),
            json!(["Running", null, done(), "running", null]),
            json!(["Succeeded", null, done(), done(), null])
        ]
    );
    let beside = json!({"name": "proxy", "image": "proxy", "restartPolicy": "Always"});
    let sidecar = both(scripted(&[("sidecar-delay", "3s")]), json!({"spec": {"initContainers": [beside]}}));
    assert_eq!(
        states(sidecar.clone()),
        [
            json!(["Running", null, "running", null, "running"]),
            json!(["Running", null, done(), null, "running"]),
            json!(["Succeeded", null, done(), null, done()])
        ]
    );
    // The phase is terminal a second after the last of them.
    check(vec![(0, pod("a", sidecar))], &["0 a Running", "1000 a Running exit 0", "5000 a Succeeded exit 0"]);
    // A container that never ends by itself ends when the pod is deleted, and makes the pod one that failed.
    let forever = both(scripted(&[("others-runtime", "9999h")]), two);
    let story = vec![(0, pod("a", forever.clone())), (7000, pod("a", both(forever, deleted(30))))];
    check(story, &["0 a Running", "1000 a Running exit 0", "8000 a Failed exit 0", "8000 a removed"]);
}

#[test]
fn a_node_that_has_lost_its_containers_makes_up_how_they_ended() {
    let ran = || {
        let state = json!({"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "1970-01-01T00:00:20Z"}}});
        pod(
            "a",
            both(
                scripted(&[("runtime", "1h")]),
                json!({"status": {"phase": "Running", "containerStatuses": [state]}}),
            ),
        )
    };
    let report = |lost: Lost| {
        let mut state = NodeState::new(&shape(), 1);
        state.set_lost(Some(lost));
        let actions = step(&mut state, ran(), at(60_000));
        assert_eq!((state.next_wake(), state.used().0), (None, 0));
        let [Action::Report { phase: Phase::Failed, patch, .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!((&patch["status"]["phase"], &patch["status"]["reason"]), (&json!("Failed"), &Value::Null));
        patch["status"]["containerStatuses"][0].clone()
    };
    let waits = report(Lost::Waiting);
    assert_eq!(waits["state"], json!({"waiting": {"reason": "ContainerCreating"}}));
    let last = &waits["lastState"]["terminated"];
    assert_eq!((&last["reason"], &last["exitCode"]), (&json!("ContainerStatusUnknown"), &json!(137)));
    let unknown = report(Lost::Unknown);
    let ended = &unknown["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("Unknown"), &json!(255)));
}

#[test]
fn times_are_whole_seconds_of_the_nodes_own_clock() {
    for (ahead, finished) in [(0, "00:00:02"), (-30, "23:59:32"), (7, "00:00:09")] {
        let shape = shape().clock_ahead(SignedDuration::from_secs(ahead));
        let mut state = NodeState::new(&shape, 1);
        let script = scripted(&[("runtime", "1h"), ("term-delay", "300ms"), ("term-exit-code", "0")]);
        step(&mut state, pod("a", script.clone()), at(0));
        step(&mut state, pod("a", both(script, deleted(30))), at(2400));
        let actions = step(&mut state, Event::Tick, at(2700));
        let Some(Action::Report { patch, .. }) = actions.first() else { panic!("{actions:?}") };
        let at = patch["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"].as_str();
        assert!(at.is_some_and(|at| at.ends_with(&format!("T{finished}Z"))), "{ahead}: {at:?}");
    }
}

#[test]
fn a_pod_deleted_before_it_started_fails_and_goes() {
    let slow = scripted(&[("start-delay", "10s")]);
    let events = vec![(0, pod("a", slow.clone())), (1000, pod("a", both(slow, deleted(30))))];
    check(events, &["1000 a Failed exit 137", "1000 a removed"]);
    check(vec![(0, pod("a", deleted(30)))], &["0 a Failed exit 137", "0 a removed"]);
}

#[test]
fn an_ended_pod_is_removed_once_when_it_is_deleted_with_grace() {
    let ended = json!({"status": {"phase": "Succeeded"}});
    let again = pod("a", both(ended.clone(), deleted(30)));
    check(vec![(0, pod("a", ended.clone())), (1000, again.clone()), (2000, again)], &["1000 a removed"]);
    check(vec![(0, pod("a", both(ended, deleted(0))))], &[]);
}
