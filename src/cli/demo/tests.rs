//! Tests of the pure parts.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::progress::{clock, line, table};
use super::scene::{Capacity, Key, Scene, Sight};
use super::summary::{Ending, Outcome};
use super::verdict::{Verdict, judge};
use hollow::nodes::resources::Resources;
use hollow::nodes::view::Phase;
use hollow::watchdog::{Observation, ProcId, SeenPod, Watchdog};

/// An object in a box, as [`Sight`] has it.
#[allow(clippy::unnecessary_box_returns, reason = "every caller wants the box")]
fn object<T: serde::de::DeserializeOwned>(value: Value) -> Box<T> {
    Box::new(serde_json::from_value(value).unwrap())
}

fn key(namespace: &str, name: &str) -> Key {
    Key { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn job(namespace: &str, name: &str, count: i64, status: &Value) -> Sight {
    Sight::Job(object(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}")},
        "spec": {"count": count, "template": {}}, "status": status,
    })))
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    let time = "2030-01-01T00:00:00Z";
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

fn slot(uid: &str, submitter: &str, group: Option<&str>, weight: f64) -> Value {
    json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "Slot", "metadata": {"name": uid, "uid": uid},
        "spec": {
            "name": "slot1_1@n", "node": "n", "slotType": "Dynamic",
            "resources": {"cpus": 1, "memoryMiB": 128, "diskKiB": 1024},
            "claim": {
                "id": format!("c-{uid}"), "submitter": submitter, "accountingGroup": group, "weight": weight, "jobId": "1.0",
                "job": {"namespace": "n", "name": "j", "uid": "u"}, "proc": 0, "pod": "p", "claimedAt": null,
            },
        },
    })
}

fn group(name: &str, quota: f64) -> Sight {
    Sight::Group(object(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": name},
        "spec": {}, "status": {"subtreeQuota": quota},
    })))
}

fn submitter(name: &str, used: f64) -> Sight {
    Sight::Submitter(object(json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter", "metadata": {"name": name}, "spec": {},
        "status": {
            "name": name, "realPriority": 0.512_34, "effectivePriority": 512.34, "priorityFactor": 1000.0,
            "weightedAccumulatedUsage": 75.25, "weightedResourcesUsed": used, "running": 3, "idle": 4,
        },
    })))
}

/// A scene in the middle of a demo: one job is complete, one runs, and one fits on no node.
fn middle() -> Scene {
    let mut scene = Scene::new(Capacity { nodes: 2, cores: 16, gpus: 4 });
    let times = json!({"startTime": "2030-01-01T00:00:01Z", "completionTime": "2030-01-01T00:00:08Z"});
    let mut complete = json!({
        "completed": 3, "failed": 1, "submitter": "alice", "summary": "Failed",
        "conditions": [condition("Complete", "True", "SomeFailed", "")],
    });
    json_patch::merge(&mut complete, &times);
    let huge = json!({
        "idle": 1, "submitter": "alice", "summary": "Idle",
        "conditions": [condition("Matchable", "False", "TooLarge", "no node has 1000 cpus")],
    });
    let running = json!({"idle": 4, "running": 3, "completed": 3, "submitter": "physics.higgs.dave", "summary": "Running"});
    scene.see(job("alice", "sweep", 4, &complete));
    scene.see(job("alice", "huge", 1, &huge));
    scene.see(job("dave", "higgs", 10, &running));
    scene.see(group("physics", 8.0));
    scene.see(group("physics.higgs", 4.0));
    scene.see(submitter("physics.higgs.dave", 3.0));
    for (uid, weight) in [("a", 1.0), ("b", 2.0), ("c", 1.0)] {
        scene.see(Sight::Slot(object(slot(uid, "physics.higgs.dave", Some("Physics.Higgs"), weight))));
    }
    scene.see(Sight::SlotGone(object(slot("c", "physics.higgs.dave", None, 1.0))));
    scene
}

#[test]
fn the_table_shows_jobs_submitters_and_groups() {
    insta::assert_snapshot!(table(&middle(), Duration::from_secs(67), (120, 40)).join("\n"));
}

#[test]
fn the_table_keeps_to_the_terminal() {
    for size in [(1, 1), (20, 5), (40, 100), (300, 3)] {
        let lines = table(&middle(), Duration::ZERO, size);
        assert!(lines.len() <= size.1, "{size:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= size.0), "{size:?}");
    }
}

#[test]
fn a_line_sums_up() {
    assert_eq!(
        line(&middle()),
        "jobs 1/3 complete; procs 15: 5 idle, 3 running, 6 done, 1 failed; slots 2 now, 3 carved"
    );
    assert_eq!(clock(Duration::from_secs(3607)), "60:07");
}

#[test]
fn slots_are_counted_once_and_groups_hold_what_lies_in_them() {
    let mut scene = middle();
    assert_eq!((scene.slots(), scene.carved(), scene.peak_slots()), (2, 3, 3));
    // The same slot with a claim for the next proc is not a new slot.
    scene.see(Sight::Slot(object(slot("a", "physics.higgs.dave", Some("physics.higgs"), 1.0))));
    assert_eq!(scene.carved(), 3);
    let used = |scene: &Scene, name: &str| scene.groups.get(name).map(|group| (group.used, group.peak));
    assert_eq!(used(&scene, "physics"), Some((3.0, 4.0)));
    assert_eq!(used(&scene, "physics.higgs"), Some((3.0, 4.0)));
    // A group whose name only begins with the same letters is another group.
    scene.see(Sight::Slot(object(slot("d", "physics2.eve", Some("physics2"), 5.0))));
    assert_eq!(used(&scene, "physics"), Some((3.0, 4.0)));
    assert!((scene.weight_in_use(None) - 8.0).abs() < 1e-9);
    assert!((scene.weight_in_use(Some("physics2.eve")) - 5.0).abs() < 1e-9);
}

#[test]
fn a_job_is_finished_when_its_condition_says_so() {
    let scene = middle();
    let (there, missing) = (key("alice", "sweep"), key("alice", "missing"));
    let expected = BTreeSet::from([there, missing.clone(), key("dave", "higgs")]);
    assert_eq!(scene.unfinished(&expected), [&missing, &key("dave", "higgs")]);
}

#[test]
fn all_is_settled_when_no_claim_and_no_use_is_left() {
    let mut scene = middle();
    for uid in ["a", "b"] {
        scene.see(Sight::SlotGone(object(slot(uid, "x", None, 1.0))));
    }
    assert!(!scene.is_settled(), "the accountant still counts");
    let mut idle = submitter("physics.higgs.dave", 0.0);
    if let Sight::Submitter(submitter) = &mut idle {
        submitter.status.as_mut().unwrap().running = 0;
    }
    scene.see(idle);
    assert!(scene.is_settled());
    assert!(scene.weight_in_use(None).is_sign_positive(), "nobody wants to read -0.0");
}

fn pod(uid: &str, proc: i64, phase: Phase) -> Observation {
    let proc = ProcId { job_uid: "uid-sweep".to_owned(), proc: proc.to_string() };
    Observation::Pod(SeenPod {
        uid: uid.to_owned(),
        name: format!("alice/{uid}"),
        node: Some("n1".to_owned()),
        requests: Resources::default(),
        phase,
        reason: String::new(),
        proc: Some(proc),
    })
}

/// A watchdog that saw procs 0 to 2 succeed and proc 3 fail, as the job reports.
fn seen() -> Watchdog {
    let mut watchdog = Watchdog::default();
    for (number, end) in
        [(0, Phase::Succeeded), (1, Phase::Succeeded), (2, Phase::Succeeded), (3, Phase::Failed)]
    {
        for phase in [Phase::Pending, Phase::Running, end] {
            watchdog.observe(pod(&format!("pod-{number}"), number, phase), Timestamp::UNIX_EPOCH);
        }
    }
    watchdog
}

#[test]
fn the_verdict_is_clean_where_pods_and_report_agree() {
    let verdict = judge(&middle(), &seen());
    assert_eq!(verdict, Verdict { procs: 4, once: 4, peak_running: 1, ..Verdict::default() });
}

#[test]
fn the_verdict_names_what_does_not_add_up() {
    let mut again = seen();
    again.observe(pod("pod-again", 2, Phase::Running), Timestamp::UNIX_EPOCH);
    again.observe(pod("pod-again", 2, Phase::Succeeded), Timestamp::UNIX_EPOCH);
    let mut stranger = seen();
    stranger.observe(pod("pod-9", 9, Phase::Pending), Timestamp::UNIX_EPOCH);
    insta::assert_yaml_snapshot!([Watchdog::default(), again, stranger].map(|watchdog| {
        let verdict = judge(&middle(), &watchdog);
        assert!(!verdict.is_clean());
        (verdict.once, [verdict.violations, verdict.doubts].concat())
    }));
}

fn outcome(scene: Scene) -> Outcome {
    Outcome {
        ending: Ending::Complete,
        verdict: judge(&scene, &seen()),
        unfinished: Vec::new(),
        refused: Vec::new(),
        broken: Vec::new(),
        writes: (1..8).map(|n| (format!("kind-{n}"), n)).collect(),
        scene,
        elapsed: Duration::from_millis(12_345),
    }
}

#[test]
fn the_summary_of_a_good_end() {
    let mut scene = middle();
    scene.jobs.retain(|_, job| job.complete);
    let good = outcome(scene);
    assert!(good.is_good());
    insta::assert_snapshot!(good.text());
}

#[test]
fn the_summary_says_what_is_not_complete_and_why() {
    let bad = Outcome {
        ending: Ending::TimedOut,
        unfinished: vec![key("alice", "huge"), key("alice", "missing"), key("dave", "higgs")],
        refused: vec!["10.yaml, document 1, HTCJob zero: spec.count must be at least 1".to_owned()],
        broken: vec!["alice/unknown: Accepted (UnknownGroup): no such group".to_owned()],
        ..outcome(middle())
    };
    insta::assert_snapshot!(bad.text());
}

#[test]
fn only_a_complete_and_clean_end_is_good() {
    let spoil: [fn(&mut Outcome); 5] = [
        |o| o.ending = Ending::TimedOut,
        |o| o.unfinished = vec![key("a", "b")],
        |o| o.refused = vec!["x".to_owned()],
        |o| o.verdict.violations = vec!["x".to_owned()],
        |o| o.verdict.doubts = vec!["x".to_owned()],
    ];
    for spoil in spoil {
        let mut outcome = outcome(middle());
        spoil(&mut outcome);
        assert!(!outcome.is_good());
    }
}
