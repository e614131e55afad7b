//! Runs `slotwright simulate` as an admin does: the example, the manual's figures, and scenarios that are refused.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use model::startd::TRANSITIONS;
use tempfile::TempDir;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn simulate(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    command.arg("simulate").args(args).current_dir(directory).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Simulates one of the repository's scenarios, and returns a directory with the results, and the output.
fn files(scenario: &str, args: &[&str]) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let mut all = vec![scenario, "--out", out];
    all.extend(args);
    let output = simulate(root(), &all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    (directory, printed)
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.file_name().unwrap().into(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn the_example_gives_the_same_files_each_time_and_others_with_another_seed() {
    let example = "examples/simulate/department.yaml";
    let (first, printed) = files(example, &["--until", "30h"]);
    let (second, _) = files(example, &["--until", "30h"]);
    let (other, _) = files(example, &["--until", "30h", "--seed", "2"]);
    let first = contents(first.path());
    assert!(first == contents(second.path()), "two runs differ");
    assert!(first != contents(other.path()), "the seed means nothing");
    let names: Vec<_> = first.keys().map(|name| name.to_str().unwrap()).collect();
    insta::assert_snapshot!("department-files", names.join("\n"));
    for (name, svg) in first.iter().filter(|(name, _)| name.extension().is_some_and(|kind| kind == "svg")) {
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    }
    insta::assert_snapshot!("department", printed);
    let head = |name: &str| first[Path::new(name)].lines().take(4).collect::<Vec<_>>().join("\n");
    let tables = names.iter().filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "csv"));
    let heads: Vec<String> = tables.map(|name| head(name)).collect();
    insta::assert_snapshot!("department-tables", heads.join("\n\n"));
}

#[test]
fn the_summary_is_json_for_programs() {
    let example = "examples/simulate/department.yaml";
    let (directory, printed) = files(example, &["--until", "6h", "-o", "json"]);
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(summary["scenario"], "department");
    let all = &summary["all"];
    let sum: u64 = ["done", "running", "idle"].iter().map(|field| all[field].as_u64().unwrap()).sum();
    assert_eq!(all["submitted"].as_u64(), Some(sum));
    assert_eq!(contents(directory.path())[Path::new("summary.json")], printed);
}

#[test]
fn what_is_wrong_with_a_scenario_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let machines = "machines:\n  - {name: n, cpus: 1, memory: 1Gi}\n";
    let nobody = "submitters: []\n";
    let a = "submitters:\n  - name: a\n    arrivals: {poisson: {every: 1h}}\n    runtime: 1h\n";
    let group = |name: &str, group: &str| {
        format!(
            "  - apiVersion: slotwright.dev/v1alpha1\n    kind: GroupQuota\n    metadata: {{name: {name}}}\n    spec: {{group: {group}, quota: 1}}\n"
        )
    };
    fs::write(directory.path().join("group.yaml"), group("a", "physics").replace("  - ", "    ")).unwrap();
    let cases = [
        format!("manifests:\n{}{machines}{nobody}", group("a", "physics.higgs")),
        format!("manifests:\n  - group.yaml\n{}{machines}{nobody}", group("b", "physics")),
        format!("manifests:\n{}{}{machines}{nobody}", group("a", "physics"), group("a", "chemistry")),
        "length: [".to_owned(),
        "a: 1\n---\nb: 2\n".to_owned(),
        format!("lenght: 3d\n{machines}{nobody}"),
        "machines:\n  - {name: n, cpus: 1, memory: 1Gi, owner: {load: 1}}\nsubmiters: []\n".to_owned(),
        format!(
            "machines:\n  - name: n\n    cpus: 1\n    memory: 1Gi\n    labels:\n      a: b\n    cuont: 2\n{nobody}"
        ),
        format!("machines:\n  - {{name: n, count: 6000000000, cpus: 1, memory: 1Gi}}\n{nobody}"),
        format!("length: 3x\n{machines}{nobody}"),
        format!("length: 0s\n{machines}{nobody}"),
        format!("start: yesterday\n{machines}{nobody}"),
        format!("machines: []\n{nobody}"),
        format!("machines:\n  - {{name: n, cpus: 500m, memory: 1Gx}}\n{nobody}"),
        format!("machines:\n  - {{name: n, cpus: 1, memory: 0}}\n{nobody}"),
        format!(
            "machines:\n  - name: n\n    cpus: 1\n    memory: 1Gi\n    owner:\n      load: -1\n      hours: [{{from: \"25:00\", to: \"9:00\"}}]\n{nobody}"
        ),
        format!("{machines}  - {{name: n, cpus: 1, memory: 1Gi}}\n{nobody}"),
        format!(
            "{machines}submitters:\n  - name: a\n    arrivals: {{poisson: {{evry: 1h}}}}\n    runtime: 1h\n"
        ),
        format!(
            "{machines}submitters:\n  - name: a\n    arrivals: {{diurnal: {{perDay: 1, days: [1, 2]}}}}\n    runtime: 1h\n"
        ),
        format!("{machines}{a}    procs: {{uniform: {{min: 2, max: 1}}}}\n"),
        format!("{machines}{a}    procs: 1000000000\n"),
        format!("{machines}{a}    procs: {{exponential: {{mean: 10, max: 200000}}}}\n"),
        format!("{machines}{a}    procs: [1, 100001]\n"),
        format!("{machines}{a}    people: 4000000000\n"),
        format!("{machines}{a}    people: 0\n"),
        format!("{machines}{a}  - {{name: b, people: 1000000, arrivals: {{at: [0]}}, runtime: 1h}}\n"),
        format!(
            "{machines}submitters:\n  - {{name: {}, arrivals: {{at: [0]}}, runtime: 1h}}\n",
            "n".repeat(56)
        ),
        format!(
            "{machines}submitters:\n  - {{name: {}, people: 10, arrivals: {{poisson: {{every: 1h}}}}, jobs: 9, runtime: 1h}}\n",
            "n".repeat(54)
        ),
        format!(
            "{machines}submitters:\n  - {{name: {}, arrivals: {{poisson: {{every: 1h}}}}, runtime: 1h}}\n",
            "n".repeat(50)
        ),
        format!(
            "machines:\n  - {{name: m, count: 11, cpus: 1, memory: 1Gi}}\n  - {{name: m1, count: 2, cpus: 1, memory: 1Gi}}\n{nobody}"
        ),
        format!(
            "{machines}{a}    people: 12\n  - {{name: a1, arrivals: {{at: [0]}}, runtime: 1h}}\n  - {{name: a1, people: 3, arrivals: {{at: [0]}}, runtime: 1h}}\n"
        ),
        format!("{machines}{a}    group: a..b\n"),
        format!("{machines}{a}    group: physics\n"),
        format!("{machines}{a}    job: {{apiVersion: v1, kind: Pod}}\n"),
        format!(
            "manifests:\n  - nope.yaml\n  - {{kind: Pod}}\n  - apiVersion: slotwright.dev/v1alpha1\n    kind: NodePolicy\n    metadata: {{name: p}}\n    spec:\n      start: TARGET.x >\n      colour: red\n{machines}{nobody}"
        ),
    ];
    let mut told = String::new();
    for case in cases {
        fs::write(directory.path().join("bad.yaml"), &case).unwrap();
        let output = simulate(directory.path(), &["bad.yaml"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{case}");
        told.extend([case.as_str(), &text(&output.stderr), "\n"]);
    }
    insta::assert_snapshot!(told);
}

/// A scenario just within the bounds is taken: no name is made twice, none is too long, and a distribution without a
/// bound gets the schedd's.
#[test]
fn names_and_procs_within_their_bounds_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let machines = "machines:\n  - {name: m, count: 10, cpus: 1, memory: 1Gi}\n  - {name: m1, count: 2, cpus: 1, memory: 1Gi}\n  \
                    - {name: m0, count: 2, cpus: 1, memory: 1Gi}\n";
    let long =
        |letters: usize, more: &str| format!("  - {{name: {}, runtime: 1h, {more}}}\n", "n".repeat(letters));
    let submitters = [
        long(55, "arrivals: {at: [0]}"),
        long(53, "people: 10, arrivals: {poisson: {every: 1m}}, jobs: 9"),
        long(49, "arrivals: {poisson: {every: 30m}}, procs: {exponential: {mean: 2}}"),
        "  - {name: b, people: 10, arrivals: {at: [0]}, runtime: 1h}\n".to_owned(),
        "  - {name: b0, people: 2, arrivals: {at: [0]}, runtime: 1h}\n".to_owned(),
    ];
    let good = format!("length: 1h\n{machines}submitters:\n{}", submitters.concat());
    fs::write(directory.path().join("good.yaml"), good).unwrap();
    let output = simulate(directory.path(), &["good.yaml", "-o", "json"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

/// A SubmitPolicy refuses jobs only when they are submitted; a message says that the report does not count them.
#[test]
fn jobs_that_a_submit_policy_refuses_are_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let text_of_policy = "JOB_DEFAULT_REQUESTMEMORY = NoSuchAttribute";
    let scenario = format!(
        "length: 1h\nmanifests:\n  - apiVersion: slotwright.dev/v1alpha1\n    kind: SubmitPolicy\n    metadata: {{name: p}}\n    \
         spec: {{config: \"{text_of_policy}\"}}\nmachines:\n  - {{name: n, cpus: 1, memory: 1Gi}}\nsubmitters:\n  - name: a\n    \
         arrivals: {{at: [0, 1, 2]}}\n    runtime: 1h\n    job:\n      apiVersion: slotwright.dev/v1alpha1\n      kind: HTCJob\n      \
         metadata: {{name: j}}\n      spec:\n        requests: {{cpus: 1}}\n        template:\n          spec:\n            \
         containers: [{{name: c, image: i}}]\n"
    );
    fs::write(directory.path().join("refused.yaml"), scenario).unwrap();
    let output = simulate(directory.path(), &["refused.yaml"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.starts_with("slotwright: refused: 3 jobs were refused and are not counted; the first is a-1: spec.requests.memory: "),
        "{told}"
    );
}

#[test]
fn machines_that_cannot_be_divided_are_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = "length: 1h\nmanifests:\n  - apiVersion: slotwright.dev/v1alpha1\n    kind: NodePolicy\n    metadata: {name: p}\n    \
                    spec: {nodeSelector: {}, config: \"NUM_SLOTS_TYPE_1 = 3\\nSLOT_TYPE_1 = cpus=2\"}\nmachines:\n  \
                    - {name: n, count: 2, cpus: 4, memory: 4Gi}\nsubmitters: []\n";
    fs::write(directory.path().join("unfit.yaml"), scenario).unwrap();
    let output = simulate(directory.path(), &["unfit.yaml"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let expected = "slotwright: unfit: 2 machines cannot be divided as the policy says; the first is n1: ";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_scenario_that_is_not_there_is_said_so() {
    let output = simulate(root(), &["no-such.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no-such.yaml: cannot be read"), "{}", text(&output.stderr));
}

/// The rows of `transitions.csv`, each with its time of day and as a row of the page's table.
fn transitions(csv: &str) -> Vec<(String, String)> {
    let mut reader = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    assert_eq!(reader.next().unwrap(), ["time", "slot", "number", "from", "to", "why", "job"]);
    reader
        .map(|row| {
            let [time, slot, number, from, to, why, job] = row[..] else { panic!("{row:?}") };
            assert_eq!(slot, "slot1@desk1");
            let known = TRANSITIONS.iter().any(|known| {
                let pair = |state: model::pool::State| format!("{}/{}", state.state(), state.activity());
                (known.number.to_string(), pair(known.from), pair(known.to))
                    == (number.into(), from.into(), to.into())
            });
            assert!(known, "{row:?} is no transition of the manual");
            // The day begins at 06:00.
            let seconds = time.split('.').next().unwrap().parse::<u32>().unwrap() + 6 * 3600;
            let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60);
            let cells = format!("| {clock} | **{number}** | {from} | {to} | {why} | {job} |");
            (clock, cells)
        })
        .collect()
}

#[test]
fn the_desktops_day_is_what_the_command_prints() {
    let (directory, _) = files("examples/simulate/desktop-day.yaml", &[]);
    let rows = transitions(&fs::read_to_string(directory.path().join("transitions.csv")).unwrap());
    let page = fs::read_to_string(root().join("docs/concepts/desktop-day.md")).unwrap();
    let mut told = 0;
    for table in page.split("\n<!-- ").skip(1) {
        let (span, rest) = table.split_once(" -->\n").unwrap();
        let (from, to) = span.split_once(" to ").unwrap();
        let within = rows
            .iter()
            .filter(|(at, _)| at.as_str() >= from && at.as_str() < to)
            .map(|(_, row)| row.as_str());
        let expected: Vec<&str> = within.collect();
        let found: Vec<&str> = rest.lines().take_while(|line| line.starts_with('|')).skip(2).collect();
        assert_eq!(
            found, expected,
            "docs/concepts/desktop-day.md is not current; run `make figures` and commit the result"
        );
        told += found.len();
    }
    assert_eq!(told, rows.len(), "docs/concepts/desktop-day.md leaves transitions out");
    let numbers: BTreeSet<&str> = rows.iter().map(|(_, row)| row.split("**").nth(1).unwrap()).collect();
    for number in [1, 2, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 25] {
        assert!(numbers.contains(number.to_string().as_str()), "{number} is not taken");
    }
}

/// Simulates a figure of the manual, and checks that its table and plot are those committed. Returns a function that
/// gives a value by submitter, column and time in hours.
fn figure(name: &str, plot: &str) -> impl Fn(&str, &str, f64) -> f64 {
    let (directory, _) = files(&format!("docs/figures/{name}.yaml"), &[]);
    let current = |made: &str, kind: &str| {
        let made = fs::read_to_string(directory.path().join(made)).unwrap();
        let committed = fs::read_to_string(root().join(format!("docs/figures/{name}.{kind}"))).unwrap();
        let hint = "is not current; run `make figures` and commit the result";
        assert!(made == committed, "docs/figures/{name}.{kind} {hint}");
        made
    };
    current(&format!("{plot}.svg"), "svg");
    let csv = current("submitters.csv", "csv");
    move |submitter, column, hours| {
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let column = header.iter().position(|known| *known == column).unwrap();
        let time = format!("{}", hours * 3600.0);
        let row = lines.find(|row| row[0] == time && row[1] == submitter);
        row.unwrap_or_else(|| panic!("{submitter} at {hours} h"))[column].parse().unwrap()
    }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} give or take {tolerance}");
}

/// "if that user then has 100 cores running, their RUP will grow as the graph below show"
#[test]
fn a_real_priority_grows_to_the_cores_in_use() {
    let value = figure("user-prio1", "priorities");
    let rup = |hours| value("alice", "real_priority", hours);
    near(rup(0.0), 0.5, 0.0);
    near(rup(24.0), 50.25, 0.01);
    near(rup(48.0), 75.13, 0.01);
    near(rup(72.0), 87.56, 0.01);
    near(rup(168.0), 99.22, 0.01);
}

/// "if a new user with no historical usage has 100 cores running for 24 hours, then removes all the jobs, so has no cores
/// running, their RUP will grow and shrink as shown below"
#[test]
fn a_real_priority_grows_and_shrinks() {
    let value = figure("user-prio2", "priorities");
    let rup = |hours| value("alice", "real_priority", hours);
    near(rup(24.0), 50.25, 0.01);
    near(rup(48.0), 25.13, 0.01);
    near(rup(72.0), 12.56, 0.01);
    near(rup(168.0), 0.79, 0.01);
    near(value("alice", "got", 25.0), 0.0, 0.0);
}

/// "user A's RUP should be about 75.0 at the 48 hour mark, and User B will still be the minimum of .5. [...] User A's share
/// of the pool will drop from all 100 cores to less than one core immediately, but will quickly rebound to a handful of
/// cores, and will asymptotically approach half of the pool as User B gets the inverse."
#[test]
fn two_users_come_to_share_the_pool() {
    let value = figure("fair-share", "submitters");
    near(value("a", "real_priority", 48.0), 75.0, 1.5);
    near(value("b", "real_priority", 48.0), 0.5, 0.0);
    assert!(value("a", "got", 48.0) > 93.0, "A has the pool to itself");
    // Five minutes after B came, what A deserves has already dropped; what A uses drops as A's jobs end.
    let soon = 48.0 + 5.0 / 60.0;
    assert!(value("a", "deserved", soon) < 1.0, "{}", value("a", "deserved", soon));
    assert!(value("a", "got", 48.25) <= 4.0, "A's jobs have ended: {}", value("a", "got", 48.25));
    assert!((4.0..12.0).contains(&value("a", "got", 49.0)), "a handful: {}", value("a", "got", 49.0));
    for user in ["a", "b"] {
        near(value(user, "deserved", 120.0), 50.0, 1.0);
        near(value(user, "got", 120.0), 50.0, 5.0);
    }
}
