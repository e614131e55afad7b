//! Scripts of observations, and the violations that they must lead to.

use super::*;
use crate::nodes::resources::CPU;

/// Plays a script. Each line is one observation, one second after the previous line: `uid[@node] phase[:reason] [cpu]
/// [proc]`, `-uid`, `node n cpu`, `-node n`, or `list` with pods in the first form, with commas instead of blanks.
fn watch(script: &str) -> Watchdog {
    let mut watchdog = Watchdog::default();
    for (second, line) in script.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let now = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        watchdog.observe(observation(line), now);
    }
    watchdog
}

fn observation(line: &str) -> Observation {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["node", name, cpus] => {
            Observation::Node((*name).to_owned(), Resources::from([(CPU, cpus.parse().unwrap()), (PODS, 3)]))
        }
        ["-node", name] => Observation::NodeGone((*name).to_owned()),
        ["list", pods @ ..] => {
            Observation::Pods(pods.iter().map(|pod| seen(&pod.split(',').collect::<Vec<_>>())).collect())
        }
        [gone] => Observation::PodGone(gone.trim_start_matches('-').to_owned()),
        words => Observation::Pod(seen(words)),
    }
}

fn seen(words: &[&str]) -> SeenPod {
    let (uid, node) = words[0].split_once('@').unwrap_or((words[0], ""));
    let cpus = words.get(2).map_or(0, |cpus| cpus.parse().unwrap());
    let proc = words.get(3).map(|proc| ProcId { job_uid: "j".to_owned(), proc: (*proc).to_owned() });
    let (phase, reason) = words[1].split_once(':').unwrap_or((words[1], ""));
    SeenPod {
        uid: uid.to_owned(),
        name: format!("ns/{uid}"),
        node: Some(node.to_owned()).filter(|node| !node.is_empty()),
        requests: Resources::from([(CPU, cpus)]),
        phase: Phase::parse(phase),
        reason: reason.to_owned(),
        proc,
    }
}

fn check(script: &str, expected: &[&str]) {
    let watchdog = watch(script);
    let found: Vec<String> =
        watchdog.violations().iter().map(|(at, what)| format!("{}: {what}", at.as_second())).collect();
    assert_eq!(found, expected, "{script}");
}

#[test]
fn a_quiet_life_gives_no_violation_and_true_totals() {
    let watchdog = watch(
        "node n 4000
        a Pending 3000 0
        a@n Pending 3000 0
        a@n Running 3000 0
        a@n Running 3000 0
        a@n Succeeded 3000 0
        b@n Running 4000 1
        -a
        b@n Failed 4000 1
        c@n Running 4000 1
        c@n Succeeded 4000 1
        d@n Failed:OutOfcpu 1000 2",
    );
    assert_eq!(watchdog.violations(), []);
    let totals = Totals {
        pods: 4,
        started: 3,
        succeeded: 2,
        failed: 2,
        out_of_resources: 1,
        peak_running: 1,
        relists: 0,
    };
    assert_eq!(watchdog.totals(), totals);
    let counts: Vec<_> = watchdog.procs().map(|(_, counts)| counts).collect();
    let count = |started, succeeded, failed| Counts { started, succeeded, failed };
    assert_eq!(counts, [count(1, 1, 0), count(2, 1, 1), count(0, 0, 1)]);
    assert_eq!((watchdog.live(), watchdog.pods.len()), (0, 3));
}

#[test]
fn overcommit_is_recorded_once_until_there_is_room_again() {
    check(
        "node n 4000
        a@n Running 3000
        b@n Pending 2000
        b@n Running 2000
        a@n Succeeded 3000
        c@n Pending 3000
        -c",
        &[
            "2: node n: pods request 5000 of 4000 cpu: ns/a, ns/b",
            "5: node n: pods request 5000 of 4000 cpu: ns/b, ns/c",
        ],
    );
}

#[test]
fn a_node_seen_late_or_shrunk_is_checked_then() {
    check("a@n Running 3000\nnode n 2000", &["1: node n: pods request 3000 of 2000 cpu: ns/a"]);
    check("node n 4000\na@n Running 3000\nnode n 1000", &["2: node n: pods request 3000 of 1000 cpu: ns/a"]);
    check("node n 4000\n-node n\na@n Running 9000", &[]);
}

#[test]
fn too_many_pods_are_too_many() {
    let script = "node n 4000\na@n Running\nb@n Running\nc@n Running\nd@n Pending";
    check(script, &["4: node n: pods request 4 of 3 pods: ns/a, ns/b, ns/c, ns/d"]);
}

#[test]
fn two_live_pods_of_a_proc_are_one_too_many() {
    check(
        "a Running 0 7
        b Pending 0 7
        b Running 0 7
        a Failed 0 7
        c Pending 0 8",
        &["1: proc 7 of job j is alive more than once: ns/a, ns/b"],
    );
    check("a Running 0 7\n-a\nb Pending 0 7", &[]);
}

#[test]
fn a_second_success_and_a_resurrection_are_recorded() {
    check(
        "a Succeeded 0 7
        a Succeeded 0 7
        b Running 0 7
        b Succeeded 0 7",
        &["3: proc 7 of job j succeeded again with pod ns/b"],
    );
    check("a Failed 0 7\na Running 0 7", &["1: pod ns/a had ended and is alive again"]);
}

#[test]
fn a_complete_list_replaces_what_was_known() {
    let watchdog = watch(
        "node n 4000
        list a@n,Running,3000,0
        list b@n,Running,4000,1 c@n,Succeeded,4000,2",
    );
    assert_eq!(watchdog.violations(), []);
    assert_eq!((watchdog.pods.len(), watchdog.live(), watchdog.totals().relists), (2, 1, 1));
    assert_eq!(watchdog.requested_on("n"), Resources::from([(CPU, 4000)]));
}
