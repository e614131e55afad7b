//! Runs `slotwright simulate` with a workload of the past, and with another policy to compare with.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::fs;

use crate::simulate::{root, simulate, text};

const ARCHIVE: &str = "examples/simulate/archive.yaml";
const EVEN: &str = "examples/simulate/archive-even.yaml";

#[test]
fn a_trace_is_submitted_again_and_what_is_not_used_is_told() {
    let output = simulate(root(), &[ARCHIVE]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!("archive", format!("{}\n{}", text(&output.stdout), text(&output.stderr)));
}

#[test]
fn a_history_of_htcondor_is_a_trace_too() {
    let directory = tempfile::tempdir().unwrap();
    let ad = |proc: u32, submitted: u32| {
        format!(
            "ClusterId = 1\nProcId = {proc}\nQDate = {submitted}\nOwner = \"ann\"\nRequestCpus = 2\nRequestMemory = ImageSize / \
             1024\nImageSize = 2097152\nRemoteWallClockTime = 600.0\nJobPrio = 3\nJobStatus = 4\nJobUniverse = 5\n*** \
             Offset = 0 ClusterId = 1 ProcId = {proc} Owner = \"ann\"\n"
        )
    };
    fs::write(directory.path().join("history"), format!("{}{}", ad(0, 1_000), ad(1, 1_900))).unwrap();
    let scenario = "length: 1h\nmachines: [{name: n, cpus: 2, memory: 4Gi}]\nsubmitters:\n  - name: h\n    arrivals: {trace: \
                    {file: history, pace: 2}}\n";
    fs::write(directory.path().join("h.yaml"), scenario).unwrap();
    let output = simulate(directory.path(), &["h.yaml", "--out", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let jobs = fs::read_to_string(directory.path().join("out/jobs.csv")).unwrap();
    let columns = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        [fields[0], fields[3], fields[4], fields[6], fields[7]].join(",")
    };
    let told: Vec<String> = jobs.lines().map(columns).collect();
    assert_eq!(
        told,
        ["submitter,cpus,memory_mib,runtime,submitted", "ann,2,2048,600,0", "ann,2,2048,600,1800"]
    );
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("no.swf"), "; only comments\n").unwrap();
    fs::write(directory.path().join("no.txt"), "\nhello\n").unwrap();
    fs::write(directory.path().join("a.swf"), "1 0 5 60 4 -1 -1 4 -1 -1 1 7 2 -1 1 -1 -1 -1\n").unwrap();
    let scenario = |trace: &str| {
        let machines = "machines: [{name: n, cpus: 2, memory: 4Gi}]";
        format!("{machines}\nsubmitters:\n  - name: a\n    arrivals:\n      trace: {trace}\n")
    };
    let cases = [
        scenario("{file: missing.swf}"),
        scenario("{file: no.swf}"),
        scenario("{file: no.txt}"),
        scenario("{file: a.swf, pace: 0}"),
        scenario("{file: a.swf, from: 2h, to: 1h}"),
        scenario("{file: a.swf, from: 2h}"),
        scenario("{file: a.swf, people: {user7: {group: a..b}}}"),
        scenario(&format!("{{file: a.swf, people: {{user7: {{owner: {}}}}}}}", "o".repeat(54))),
        scenario("{file: a.swf, speed: 2}"),
        format!("{}    runtime: 1h\n    procs: 2\n    people: 3\n", scenario("{file: a.swf}")),
        format!("{}    requests: {{cpus: 2, memory: 1Gi}}\n", scenario("{file: a.swf}")),
        "machines: [{name: n, cpus: 2, memory: 4Gi}]\nsubmitters: [{name: a, arrivals: {at: [0s]}}]\n"
            .to_owned(),
    ];
    let mut told = String::new();
    for case in cases {
        fs::write(directory.path().join("bad.yaml"), &case).unwrap();
        let output = simulate(directory.path(), &["bad.yaml"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{case}");
        told.extend([case.as_str(), &text(&output.stderr), "\n"]);
    }
    insta::assert_snapshot!("bad-traces", told);
}

#[test]
fn a_policy_is_held_against_another() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let output = simulate(root(), &[ARCHIVE, "--against", EVEN, "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!("compare", text(&output.stdout));
    let names = ["compare-waits.svg", "compare-goodput.svg", "compare-fairness.svg", "comparison.json"];
    for name in names.into_iter().chain(["submitters.csv", "against/submitters.csv", "against/states.svg"]) {
        assert!(directory.path().join(name).exists(), "{name}");
    }
    insta::assert_snapshot!(
        "compare-waits",
        fs::read_to_string(directory.path().join("compare-waits.svg")).unwrap()
    );
}

#[test]
fn a_comparison_is_json_for_programs() {
    let output = simulate(root(), &[ARCHIVE, "--against", EVEN, "--until", "6h", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(
        (&answer["this"]["scenario"], &answer["against"]["scenario"]),
        (&"archive".into(), &"archive-even".into())
    );
    let all = &answer["comparison"]["all"];
    for side in ["this", "against"] {
        assert_eq!(all[side]["done"], answer[side]["all"]["done"]);
        assert_eq!(all[side]["wait_seconds"], answer[side]["all"]["wait_seconds"]);
    }
    assert!(answer["comparison"]["differs"].is_null());
}

#[test]
fn workloads_that_differ_are_said_to() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = |every: &str| {
        format!(
            "length: 2h\nmachines: [{{name: n, cpus: 2, memory: 4Gi}}]\nsubmitters: [{{name: a, arrivals: {{poisson: {{every: \
             {every}}}}}, runtime: 5m}}]\n"
        )
    };
    fs::write(directory.path().join("one.yaml"), scenario("10m")).unwrap();
    fs::write(directory.path().join("two.yaml"), scenario("20m")).unwrap();
    let output = simulate(directory.path(), &["one.yaml", "--against", "two.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.starts_with("slotwright: the workloads differ, not the policies alone: one has a-1 of a at "),
        "{told}"
    );
    let output = simulate(directory.path(), &["one.yaml", "--against", "three.yaml"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
}
