//! Scripts of events to one kubelet, and the writes that they must lead to. All times are made up.
// `json!` literals read best without a borrow.
#![allow(clippy::needless_pass_by_value)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::agent::PodActivity;
use super::core::{Action, Event, NodeState, step};
use super::owner::Owner;
use super::resources::{CPU, PODS, Resources};
use super::shape::{A100, GIB, NVIDIA_GPU, NodeShape};
use super::view::{Phase, PodView};

mod ends;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

/// A 4-core node with two GPUs and room for three pods.
fn shape() -> NodeShape {
    let mut shape = NodeShape::new("n1", 4000, 8 * GIB).label("zone", "a").gpu(A100, 2);
    shape.pods_max = 3;
    shape
}

/// A pod bound to n1, `restartPolicy: Never`, with `changes` merged in.
fn pod(name: &str, changes: Value) -> Event {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"nodeName": "n1", "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    });
    json_patch::merge(&mut pod, &changes);
    let pod: Pod = serde_json::from_value(pod).unwrap();
    Event::Pod(Box::new(PodView::from_pod(&pod).unwrap()))
}

fn requests(list: Value) -> Value {
    json!({"spec": {"containers": [{"name": "main", "resources": {"requests": list}}]}})
}

fn scripted(annotations: &[(&str, &str)]) -> Value {
    let pairs =
        annotations.iter().map(|(key, value)| (format!("hollow.slotwright.dev/{key}"), Value::from(*value)));
    json!({"metadata": {"annotations": pairs.collect::<serde_json::Map<_, _>>()}})
}

fn deleted(grace: i64) -> Value {
    json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": grace}})
}

fn both(mut one: Value, other: Value) -> Value {
    json_patch::merge(&mut one, &other);
    one
}

/// Plays events at their milliseconds, with a tick whenever the kubelet asks for one, and returns the actions as
/// text.
fn play(state: &mut NodeState, events: Vec<(i64, Event)>) -> String {
    let mut story = String::new();
    for (time, event) in events {
        run_until(state, at(time), &mut story);
        write_down(at(time), &step(state, event, at(time)), &mut story);
    }
    run_until(state, at(1_000_000_000), &mut story);
    story
}

fn run_until(state: &mut NodeState, end: Timestamp, story: &mut String) {
    while let Some(wake) = state.next_wake().filter(|wake| *wake < end) {
        write_down(wake, &step(state, Event::Tick, wake), story);
    }
}

fn write_down(now: Timestamp, actions: &[Action], story: &mut String) {
    for action in actions {
        let now = now.as_millisecond();
        match action {
            Action::Remove(pod) => writeln!(story, "{now} {} removed", pod.name).unwrap(),
            Action::Report { pod, phase, patch } => {
                let status = &patch["status"];
                let exit = &status["containerStatuses"][0]["state"]["terminated"]["exitCode"];
                let reason = status["reason"].as_str().unwrap_or_default();
                let detail = if exit.is_null() { reason.to_owned() } else { format!("exit {exit}") };
                // A patch without a phase leaves the phase as it is.
                if let Some(named) = status["phase"].as_str() {
                    assert_eq!(named, phase.as_str());
                }
                writeln!(story, "{now} {} {} {detail}", pod.name, phase.as_str()).unwrap();
            }
        }
    }
}

fn check(events: Vec<(i64, Event)>, expected: &[&str]) {
    let story = play(&mut NodeState::new(&shape(), 1), events);
    let lines: Vec<&str> = story.lines().map(str::trim_end).collect();
    assert_eq!(lines, expected);
}

/// The last three writes to a pod whose main container ends at this millisecond: it is terminated, a second later the
/// phase is terminal, and then the kubelet removes the pod if it was deleted.
fn ends(name: &str, at: i64, code: i32, removed: bool) -> Vec<String> {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let later = at + 1000;
    let mut lines =
        vec![format!("{at} {name} Running exit {code}"), format!("{later} {name} {phase} exit {code}")];
    lines.extend(removed.then(|| format!("{later} {name} removed")));
    lines
}

/// Checks that a pod `a` starts at 0 and ends like this.
fn check_end(events: Vec<(i64, Event)>, at: i64, code: i32, removed: bool) {
    let mut expected = vec!["0 a Running".to_owned()];
    expected.extend(ends("a", at, code, removed));
    check(events, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The label and the annotation with which the operator asks an agent to suspend or kill a pod.
fn asked(name: &str, value: Value) -> Value {
    json!({"metadata": {"labels": {"slotwright.dev/job-uid": "u"},
                        "annotations": {(format!("slotwright.dev/{name}")): value}}})
}

/// Does the same as [`check`], on a node with an agent.
fn check_with_agent(events: Vec<(i64, Event)>, expected: &[&str]) {
    let story = play(&mut NodeState::new(&shape().agent(Owner::default()), 1), events);
    let lines: Vec<&str> = story.lines().map(str::trim_end).collect();
    assert_eq!(lines, expected);
}

#[test]
fn the_runtime_of_a_suspended_pod_does_not_pass() {
    let ten = || scripted(&[("runtime", "10s")]);
    let suspended = || pod("a", both(ten(), asked("suspend", "true".into())));
    let story =
        || vec![(0, pod("a", ten())), (4000, suspended()), (9000, suspended()), (64_000, pod("a", ten()))];
    check_with_agent(story(), &["0 a Running", "70000 a Running exit 0", "71000 a Succeeded exit 0"]);
    // On a node without an agent the annotation has no effect.
    check_end(story(), 10_000, 0, false);
    // A pod that is suspended before it starts is suspended from its first moment.
    check_with_agent(
        vec![(0, suspended()), (5000, pod("a", ten()))],
        &["0 a Running", "15000 a Running exit 0", "16000 a Succeeded exit 0"],
    );
}

#[test]
fn a_suspended_pod_does_not_react_to_term_but_dies_of_kill() {
    let slow = || scripted(&[("runtime", "1h"), ("term-delay", "3s")]);
    let suspended = || both(slow(), asked("suspend", "true".into()));
    let dies = vec![(0, pod("a", suspended())), (1000, pod("a", both(suspended(), deleted(30))))];
    check_with_agent(
        dies,
        &["0 a Running", "31000 a Running exit 137", "32000 a Failed exit 137", "32000 a removed"],
    );
    let continued = vec![
        (0, pod("a", suspended())),
        (1000, pod("a", both(suspended(), deleted(30)))),
        (11_000, pod("a", both(slow(), deleted(30)))),
    ];
    check_with_agent(
        continued,
        &["0 a Running", "14000 a Running exit 143", "15000 a Failed exit 143", "15000 a removed"],
    );
}

#[test]
fn the_agent_kills_what_the_kubelet_cannot() {
    let stuck = || scripted(&[("runtime", "1h"), ("ignore-term", "true"), ("ignore-kill", "true")]);
    let killed = || both(stuck(), asked("kill", "true".into()));
    let story = |last: Value| {
        vec![
            (0, pod("a", stuck())),
            (1000, pod("a", both(stuck(), deleted(5)))),
            (60_000, pod("a", both(last, deleted(5)))),
        ]
    };
    check_with_agent(
        story(killed()),
        &["0 a Running", "60000 a Running exit 137", "61000 a Failed exit 137", "61000 a removed"],
    );
    check_end(story(killed()), 3_600_000, 0, true);
}

#[test]
fn an_agent_senses_what_runs_and_what_it_has_suspended() {
    let mut state = NodeState::new(&shape().agent(Owner::default()), 1);
    let long = || both(scripted(&[("runtime", "1h")]), requests(json!({"cpu": "1500m"})));
    step(&mut state, pod("ours", both(long(), asked("suspend", Value::Null))), at(0));
    step(&mut state, pod("theirs", long()), at(0));
    let running = PodActivity { pool_milli: 1500, other_milli: 1500, ..PodActivity::default() };
    assert_eq!(state.pod_activity(), running);
    step(&mut state, pod("ours", both(long(), asked("suspend", "true".into()))), at(1000));
    let suspended = ["ours".to_owned()].into();
    let suspended = PodActivity { suspended, other_milli: 1500, ..PodActivity::default() };
    assert_eq!(state.pod_activity(), suspended);
    // When an agent dies, its pods stay suspended. The next agent does what the annotations ask by then.
    step(&mut state, Event::Agent(false), at(2000));
    step(&mut state, pod("ours", both(long(), asked("suspend", Value::Null))), at(3000));
    assert_eq!(state.pod_activity(), suspended);
    step(&mut state, Event::Agent(true), at(4000));
    assert_eq!(state.pod_activity().suspended.len(), 0);
    step(&mut state, pod("leased", leased()), at(5000));
    assert_eq!(state.pod_activity().covered, ["leased".to_owned()].into());
}

#[test]
fn what_does_not_fit_is_refused_in_kubelets_words() {
    let cases = [
        (requests(json!({"cpu": "1500m"})), "OutOfcpu", "cpu, requested: 1500, used: 3000, capacity: 4000"),
        (
            requests(json!({"memory": "9Gi"})),
            "OutOfmemory",
            "memory, requested: 9663676416, used: 0, capacity: 8589934592",
        ),
        (
            requests(json!({"ephemeral-storage": "1Ti"})),
            "OutOfephemeral-storage",
            "ephemeral-storage, requested: 1099511627776, used: 0, capacity: 107374182400",
        ),
        (
            requests(json!({"nvidia.com/gpu": "2"})),
            "OutOfnvidia.com/gpu",
            "nvidia.com/gpu, requested: 2, used: 1, capacity: 2",
        ),
    ];
    for (wants, reason, why) in cases {
        let mut state = NodeState::new(&shape(), 1);
        step(&mut state, pod("first", requests(json!({"cpu": "3", "nvidia.com/gpu": "1"}))), at(0));
        let actions = step(&mut state, pod("a", wants), at(0));
        let [Action::Report { phase: Phase::Failed, patch, .. }] = actions.as_slice() else {
            panic!("{actions:?}")
        };
        assert_eq!(patch["status"]["reason"], reason);
        let message = format!("Pod was rejected: Node didn't have enough resource: {why}");
        assert_eq!(patch["status"]["message"], message);
    }
}

#[test]
fn other_refusals() {
    let selector = json!({"spec": {"nodeSelector": {"zone": "b"}}});
    check(vec![(0, pod("a", selector))], &["0 a Failed NodeAffinity"]);
    check(vec![(0, pod("a", scripted(&[("runtime", "soon")])))], &["0 a Failed HollowScript"]);
    let full = ["a", "b", "c", "d"].map(|name| (0, pod(name, json!({}))));
    let mut story = vec!["0 a Running", "0 b Running", "0 c Running", "0 d Failed OutOfpods"];
    story.extend(["1000 a Running exit 0", "1000 b Running exit 0", "1000 c Running exit 0"]);
    story.extend(["2000 a Succeeded exit 0", "2000 b Succeeded exit 0", "2000 c Succeeded exit 0"]);
    check(full.to_vec(), &story);
    // The kubelet does not check a resource that its node does not list.
    check_end(vec![(0, pod("a", requests(json!({"example.com/license": "1"}))))], 1000, 0, false);
}

#[test]
fn an_end_makes_room_and_a_vanished_pod_too() {
    let all = || requests(json!({"cpu": "4"}));
    check(
        vec![
            (0, pod("a", all())),
            (500, pod("b", all())),
            // The container of the first has ended, and its pod has not.
            (1500, pod("c", all())),
            (2000, pod("d", both(all(), scripted(&[("runtime", "1h")])))),
            (2500, Event::Gone("d".into())),
            (3400, pod("e", all())),
            (3500, pod("f", all())),
        ],
        &[
            "0 a Running",
            "500 b Failed OutOfcpu",
            "1000 a Running exit 0",
            "1500 c Failed OutOfcpu",
            "2000 a Succeeded exit 0",
            "2000 d Running",
            "3400 e Failed OutOfcpu",
            "3500 f Running",
            "4500 f Running exit 0",
            "5500 f Succeeded exit 0",
        ],
    );
}

#[test]
fn a_restarted_kubelet_continues_what_runs_and_reports_what_ended_meanwhile() {
    let running = |since: &str| {
        let state = json!({"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": since}}});
        both(
            scripted(&[("runtime", "10s")]),
            json!({"status": {"phase": "Running", "containerStatuses": [state]}}),
        )
    };
    let mut state = NodeState::new(&shape(), 1);
    let mut story = play(&mut state, vec![]);
    write_down(
        at(60_000),
        &step(&mut state, pod("old", running("1970-01-01T00:00:20Z")), at(60_000)),
        &mut story,
    );
    story += &play(&mut state, vec![(60_000, pod("new", running("1970-01-01T00:00:55Z")))]);
    let late = "60000 old Running exit 0\n60000 old Succeeded exit 0\n";
    let new = "65000 new Running exit 0\n66000 new Succeeded exit 0\n";
    assert_eq!(story, [late, new].concat());
}

#[test]
fn the_kubelet_keeps_a_final_phase_that_somebody_else_wrote() {
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    let long = scripted(&[("runtime", "1h"), ("term-delay", "4s")]);
    // The kubelet ends the containers of such a pod with the pod's own grace period.
    check(
        vec![(0, pod("a", long.clone())), (500, pod("a", both(long, evicted)))],
        &["0 a Running", "4500 a Failed exit 143", "5500 a Failed exit 143"],
    );
}

#[test]
fn devices_are_assigned_from_admission_to_end_and_found_again() {
    let mut state = NodeState::new(&shape(), 1);
    let wants = requests(json!({"nvidia.com/gpu": "1"}));
    let actions = step(&mut state, pod("a", wants.clone()), at(0));
    let assigned = state.devices_of("ns", "a").unwrap();
    assert_eq!(assigned[NVIDIA_GPU].len(), 1);
    let [Action::Report { patch, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    let annotation = &patch["metadata"]["annotations"]["hollow.slotwright.dev/devices"];
    assert_eq!(*annotation, json!(json!(assigned).to_string()));

    let mut reborn = NodeState::new(&shape(), 1);
    step(&mut reborn, pod("b", wants.clone()), at(0));
    let first = reborn.devices_of("ns", "b").unwrap();
    assert_eq!(first, assigned, "devices are given in order");
    let mut reborn = NodeState::new(&shape(), 1);
    let second = json!({NVIDIA_GPU: [super::devices::DevicePool::new("n1", &shape().gpus).assign("x", [(NVIDIA_GPU, 2)].into_iter())[NVIDIA_GPU][1]]});
    let known = json!({"status": {"phase": "Running"}, "metadata": {"annotations": {"hollow.slotwright.dev/devices": second.to_string()}}});
    step(&mut reborn, pod("c", both(wants, known)), at(0));
    assert_eq!(json!(reborn.devices_of("ns", "c").unwrap()), second);
    step(&mut reborn, Event::Tick, at(1000));
    assert_eq!(json!(reborn.devices_of("ns", "c").unwrap()), second, "as long as the phase is Running");
    step(&mut reborn, Event::Tick, at(5000));
    assert_eq!(reborn.devices_of("ns", "c"), None);
}

#[test]
fn the_written_status_is_a_kubelets() {
    let mut state = NodeState::new(&shape(), 1);
    let changes = json!({"spec": {"initContainers": [{"name": "setup", "image": "busybox"}]}});
    let mut actions = step(&mut state, pod("a", changes), at(1_700_000_000_000));
    actions.extend(step(&mut state, Event::Tick, at(1_700_000_001_000)));
    actions.extend(step(&mut state, Event::Tick, at(1_700_000_002_000)));
    let patches: Vec<Value> = actions
        .into_iter()
        .map(|action| match action {
            Action::Report { patch, .. } => patch,
            Action::Remove(pod) => panic!("{pod} removed"),
        })
        .collect();
    insta::assert_yaml_snapshot!(patches);
}

#[derive(Debug, Clone)]
enum Move {
    Pod { name: u8, cpu: i64, runtime: u64, term_delay: u64 },
    Delete { name: u8, grace: i64 },
    Gone { name: u8 },
    Wait { milliseconds: i64 },
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => (0..8_u8, 0..3000_i64, 0..4000_u64, 0..4000_u64)
            .prop_map(|(name, cpu, runtime, term_delay)| Move::Pod { name, cpu, runtime, term_delay }),
        2 => (0..8_u8, 0..4_i64).prop_map(|(name, grace)| Move::Delete { name, grace }),
        1 => (0..8_u8).prop_map(|name| Move::Gone { name }),
        3 => (0..2000_i64).prop_map(|milliseconds| Move::Wait { milliseconds }),
    ]
}

proptest! {
    /// Checks the invariants that the module docs of `core` list.
    #[test]
    fn invariants_hold_whatever_happens(moves in prop::collection::vec(any_move(), 0..80)) {
        let mut state = NodeState::new(&shape(), 1);
        let mut known: BTreeMap<u8, Value> = BTreeMap::new();
        let mut reports: BTreeMap<String, Vec<Phase>> = BTreeMap::new();
        let (mut now, mut born) = (0, 0);
        for next in moves {
            let event = match next {
                Move::Wait { milliseconds } => { now += milliseconds; Event::Tick }
                Move::Pod { name, cpu, runtime, term_delay } => {
                    born += 1;
                    let script = [("runtime", format!("{runtime}ms")), ("term-delay", format!("{term_delay}ms"))];
                    let script = script.each_ref().map(|(key, value)| (*key, value.as_str()));
                    let object = both(scripted(&script), requests(json!({"cpu": format!("{cpu}m")})));
                    let object = both(object, json!({"metadata": {"uid": format!("{name}-{born}")}}));
                    let object = known.entry(name).or_insert(object);
                    pod(&name.to_string(), object.clone())
                }
                Move::Delete { name, grace } => match known.get(&name) {
                    Some(object) => pod(&name.to_string(), both(object.clone(), deleted(grace))),
                    None => Event::Tick,
                },
                Move::Gone { name } => match known.remove(&name) {
                    Some(object) => Event::Gone(object["metadata"]["uid"].as_str().unwrap().to_owned()),
                    None => Event::Tick,
                },
            };
            for action in step(&mut state, event, at(now)) {
                match action {
                    Action::Report { pod, phase, .. } => {
                        let reported = reports.entry(pod.uid).or_default();
                        reported.push(phase);
                        prop_assert!(
                            matches!(
                                reported.as_slice(),
                                [_] | [Phase::Running, Phase::Running]
                                    | [Phase::Running, Phase::Running, Phase::Succeeded | Phase::Failed]
                            ),
                            "{reported:?}"
                        );
                    }
                    Action::Remove(pod) => {
                        let ended = reports.get(&pod.uid).and_then(|reported| reported.last()).is_some_and(|p| p.is_terminal());
                        prop_assert!(ended, "{pod} was removed before its end was reported");
                    }
                }
            }
            let (count, used) = state.used();
            let room = Resources::from([(CPU, 4000), (PODS, 3)]);
            prop_assert!(used.get(CPU) <= room.get(CPU) && count <= room.get(PODS));
            prop_assert!(state.next_wake().is_none_or(|wake| wake > at(now)), "something due was left undone");
        }
    }
}

/// A pod that runs for an hour, under a claim whose lease is 40 s.
fn leased() -> Value {
    let lease = json!({"metadata": {"annotations": {"slotwright.dev/lease-seconds": "40"}}});
    both(scripted(&[("runtime", "1h")]), lease)
}

#[test]
fn an_agent_that_cannot_renew_its_lease_ends_what_runs_under_leases_that_have_passed() {
    let renewed = |seconds: i64| (seconds * 1000, Event::Renewed(at(seconds * 1000)));
    // A node whose agent never renewed its Lease ends no pod.
    check_end(vec![(0, pod("a", leased()))], 3_600_000, 0, false);
    let ended = &["0 a Running", "70000 a Running exit 137", "71000 a Failed exit 137"];
    check(vec![renewed(0), (0, pod("a", leased())), renewed(10), renewed(30)], ended);
    // The pod ends even if the agent has died: the agent promised so when it renewed its Lease.
    check(vec![renewed(30), (0, pod("a", leased())), (31_000, Event::Agent(false))], ended);
    // The lease counts from when the agent sent the renewal, not from when the API server answered.
    check(vec![(0, pod("a", leased())), (35_000, Event::Renewed(at(30_000)))], ended);
    // A pod that ends by itself before its lease is over ends with its own exit code.
    let short = both(leased(), scripted(&[("runtime", "5s")]));
    check_end(vec![renewed(0), (0, pod("a", short))], 5000, 0, false);
    // A pod whose lease is over before it starts never starts.
    let late = both(leased(), scripted(&[("start-delay", "100s")]));
    check(vec![renewed(0), (0, pod("a", late))], &["40000 a Failed exit 137"]);
    // A pod without a lease runs on.
    check(
        vec![renewed(0), (0, pod("b", json!({})))],
        &["0 b Running", "1000 b Running exit 0", "2000 b Succeeded exit 0"],
    );
}

#[test]
fn the_status_of_a_pod_that_the_agent_ended_says_so() {
    let mut state = NodeState::new(&shape(), 1);
    state.set_renewed(Some(at(0)));
    step(&mut state, pod("a", leased()), at(0));
    let actions = step(&mut state, Event::Tick, at(50_000));
    let Some(Action::Report { patch, .. }) = actions.first() else { panic!("{actions:?}") };
    let terminated = &patch["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(terminated["message"], "slotwright.dev/fenced");
    assert_eq!(terminated["finishedAt"], "1970-01-01T00:00:40Z");
}
