//! Tests with jobs written by hand.

use serde_json::{Value, json};

use super::*;

fn job(name: &str, status: &Value) -> HTCJob {
    serde_json::from_value(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"name": name, "namespace": "lab", "uid": format!("uid-{name}"), "generation": 1,
                     "creationTimestamp": "2030-01-02T03:04:05Z"},
        "spec": {"count": 5, "priority": 7, "template": {}},
        "status": status,
    }))
    .unwrap()
}

fn condition_of(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": message,
           "lastTransitionTime": "2030-01-02T03:04:05Z"})
}

fn too_large() -> HTCJob {
    let long =
        "a proc asks for 64 CPUs, and no node offers more than 32; ask for less, or have a larger node added";
    job(
        "big",
        &json!({"observedGeneration": 1, "clusterId": 2, "submitter": "physics.alice", "summary": "Idle", "idle": 5, "why": long,
                "conditions": [condition_of("Accepted", "True", "the spec is in force"),
                               condition_of("Matchable", "False", long)]}),
    )
}

fn running() -> HTCJob {
    job(
        "pi",
        &json!({"observedGeneration": 1, "clusterId": 12, "submitter": "bob", "summary": "Running",
                "running": 2, "completed": 2, "failed": 1, "completedProcs": "0-1", "failedProcs": "3",
                "conditions": [condition_of("Matchable", "True", "there is a node")]}),
    )
}

fn held() -> HTCJob {
    job(
        "held",
        &json!({"observedGeneration": 1, "clusterId": 3, "summary": "Held",
                "why": "spec.requirements: line 1, column 4:\nwhat?",
                "conditions": [condition_of("Accepted", "False", "spec.requirements: line 1, column 4:\nwhat?")]}),
    )
}

fn slot(name: &str, uid: &str, proc: i64) -> Slot {
    let claim = json!({"id": "c", "submitter": "bob", "weight": 1, "claimedAt": "2030-01-02T04:00:00Z",
        "jobId": format!("12.{proc}"), "job": {"namespace": "lab", "name": "pi", "uid": uid},
        "proc": proc, "pod": format!("pi-{proc}")});
    serde_json::from_value(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "Slot", "metadata": {"name": "s"},
        "spec": {"name": name, "node": "node1", "slotType": "Dynamic", "claim": claim,
                 "resources": {"cpus": 1, "memoryMiB": 1, "diskKiB": 1}},
        "status": {"state": "Claimed", "activity": "Busy"},
    }))
    .unwrap()
}

#[test]
fn a_line_a_job() {
    let jobs = [running(), job("new", &json!(null)), held(), too_large()];
    insta::assert_snapshot!(render(&lines(&jobs), false, Some(150)));
}

#[test]
fn wide_shortens_nothing_and_all_namespaces_are_named() {
    insta::assert_snapshot!(render(&lines(&[too_large()]), true, None));
}

#[test]
fn a_job_with_its_procs() {
    let all = [
        slot("slot1_2@node1", "uid-pi", 4),
        slot("slot1_1@node1", "uid-pi", 2),
        slot("slot1_3@node1", "uid-of-the-pi-before", 0),
    ];
    let line = detailed(&running(), Some(&all), None);
    insta::assert_snapshot!(render(std::slice::from_ref(&line), false, None));
    insta::assert_yaml_snapshot!(line);
    // The status counts two procs that run.
    let some = detailed(&running(), Some(&all[..1]), None);
    let text = render(std::slice::from_ref(&some), false, None);
    assert!(text.ends_with("  1 proc began less than about 5 s ago: no Slot shows that yet\n"), "{text}");
    let text = render(&[detailed(&running(), Some(&[]), None)], false, None);
    assert!(text.contains("Running procs:\n  2 procs began") && !text.contains("none"), "{text}");
    let one = detailed(&running(), Some(&all), Some(4)).details.and_then(|details| details.running_procs);
    assert_eq!(one.unwrap().iter().map(|proc| proc.proc).collect::<Vec<_>>(), [4]);
}

/// A claim that is used again is not written again: the status says which proc runs.
#[test]
fn the_status_says_which_proc_a_claim_serves() {
    let mut used_again = slot("slot1_1@node1", "uid-pi", 2);
    used_again.status.as_mut().unwrap().running = serde_json::from_value(json!(
        {"jobId": "12.7", "pod": "pi-7", "podUid": "u", "maxVacateSeconds": 600}
    ))
    .unwrap();
    let procs =
        detailed(&running(), Some(&[used_again]), None).details.and_then(|details| details.running_procs);
    let line = &procs.unwrap()[0];
    assert_eq!((line.job_id.as_str(), line.proc, line.pod.as_str()), ("12.7", 7, "pi-7"));
}

#[test]
fn what_cannot_be_read_is_said() {
    let text = render(&[detailed(&running(), None, None)], false, None);
    assert!(text.ends_with("Running procs: not known\n"), "{text}");
}

#[test]
fn jobs_go_by_name_then_by_id() {
    let mut twelve = too_large();
    twelve.metadata.name = Some("12".to_owned());
    let jobs = [running(), held(), twelve];
    for (wanted, names, proc) in [
        ("pi", vec!["pi"], None),
        ("12", vec!["12"], None),
        ("12.4", vec!["pi"], Some(4)),
        ("3", vec!["held"], None),
        ("4", vec![], None),
        ("12.x", vec![], None),
        ("", vec![], None),
    ] {
        let (found, found_proc) = select(&jobs, wanted);
        let found: Vec<_> = found.iter().filter_map(|job| job.metadata.name.as_deref()).collect();
        assert_eq!((found, found_proc), (names, proc), "{wanted:?}");
    }
}

/// Whoever adds up a line's procs gets its total: held ones count, and those of a spec that is not accepted.
#[test]
fn the_counts_of_a_line_add_up() {
    let some = job(
        "some",
        &json!({"observedGeneration": 1, "idle": 1, "running": 1, "held": 2, "completed": 1, "failed": 0,
                "why": "2 procs are held"}),
    );
    for (job, held, idle) in
        [(some, 2, 1), (held(), 5, 0), (job("new", &json!(null)), 0, 5), (running(), 0, 0)]
    {
        let line = line(&job);
        assert_eq!((line.held, line.idle), (held, idle), "{}", line.name);
        assert_eq!(line.idle + line.running + line.held + line.completed + line.failed, line.total);
    }
}

/// Reasons are as wide as the terminal. Without a terminal, they are not cut.
#[test]
fn reasons_are_cut_at_the_width_of_the_terminal() {
    let lines = lines(&[too_large()]);
    let longest =
        |width| render(&lines, false, width).lines().map(|line| line.chars().count()).max().unwrap();
    assert_eq!(longest(Some(130)), 130);
    assert!(longest(Some(1000)) < 1000);
    assert!(render(&lines, false, None).contains("have a larger node added"));
    assert!(render(&lines, false, Some(10)).contains("a proc asks for 64…"));
}

#[test]
fn procs_that_were_removed_are_told_of_where_there_are_any() {
    let job = job(
        "some",
        &json!({"observedGeneration": 1, "clusterId": 4, "summary": "Removed", "completed": 2, "removed": 3,
                "completedProcs": "0-1", "removedProcs": "2-4"}),
    );
    let lines = [detailed(&job, None, None)];
    let text = render(&lines, false, None);
    assert!(
        text.contains("5 procs: 2 completed, 0 failed, 0 running, 0 idle, 0 held, 3 removed\n"),
        "{text}"
    );
    assert!(text.contains("\nRemoved procs: 2-4\n"), "{text}");
    let without = render(&[detailed(&running(), None, None)], false, None);
    assert!(!without.contains("emoved"), "{without}");
}

#[test]
fn a_spec_that_may_be_mistaken_is_told_of() {
    let condition = |status: &str| {
        job(
            "some",
            &json!({"observedGeneration": 1, "clusterId": 4, "conditions": [{"type": "FullyApplied", "status": status,
                "reason": "MistakenExpression", "message": "requirements: 'x' is an attribute",
                "lastTransitionTime": "2026-11-20T10:00:00Z"}]}),
        )
    };
    let shown = |status: &str| render(&[detailed(&condition(status), None, None)], false, None);
    assert!(
        shown("False").contains("\nFullyApplied is False: requirements: 'x' is an attribute\n"),
        "{}",
        shown("False")
    );
    assert!(!shown("True").contains("FullyApplied"));
}
