//! Runs `slotwright demo` as a person does, with its output piped.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use cli::demo::EMBEDDED;
use tempfile::TempDir;

fn demo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    command.arg("demo").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// A directory with a manifest of this text.
fn manifests(text: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("jobs.yaml"), text).unwrap();
    dir
}

fn job(name: &str, count: i64, cpus: i64, annotations: &str) -> String {
    format!(
        "---\napiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {{name: {name}, namespace: default}}\nspec:\n\
         \x20 count: {count}\n  requests: {{cpus: {cpus}}}\n  template:\n    metadata:\n      annotations: {annotations}\n    \
         spec: {{containers: [{{name: main, image: busybox}}]}}\n"
    )
}

const QUICK: &str = "{hollow.slotwright.dev/runtime: 100ms}";
/// Longer than it takes to create the pods of one cycle, so that all of them run at the same time.
const LONG: &str = "{hollow.slotwright.dev/runtime: 3s}";

fn quick_negotiator() -> &'static str {
    "apiVersion: slotwright.dev/v1alpha1\nkind: Negotiator\nmetadata: {name: default}\n\
     spec: {intervalSeconds: 2, cycleDelaySeconds: 1, minIntervalSeconds: 1}\n"
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_few_short_jobs_end_with_a_true_summary() {
    let fails = "{hollow.slotwright.dev/runtime: 100ms, hollow.slotwright.dev/exit-code: \"3\"}";
    let text_of_jobs = [quick_negotiator(), &job("short", 5, 1, QUICK), &job("fails", 2, 1, fails)].concat();
    let dir = manifests(&text_of_jobs);
    let output =
        demo().args(["--nodes", "2", "--timeout", "120", "--examples"]).arg(dir.path()).output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for line in [
        "applied jobs.yaml: negotiator/default htcjob/short htcjob/fails",
        "jobs       2 of 2 complete",
        "procs      7: 5 done, 2 failed",
        "watchdog   7 of 7 procs of complete jobs ran exactly once; 0 violations",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is missing in:\n{text}");
    }
    assert!(text.contains(": all is well."), "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("Hollow nodes pretend to run pods: no program runs"), "{text}");
    assert!(text.trim_end().lines().rev().take(2).any(|line| line.starts_with("Next: ")), "{text}");
    assert!(!text.contains('\x1b'), "no cursor movements in a pipe:\n{text:?}");
    assert!(output.stderr.is_empty(), "{text}");
}

/// Two users want the whole pool. In the first cycle, the user with twice the factor gets half as much as the other.
#[test]
fn two_users_share_the_pool_from_the_first_cycle_on() {
    let of = |namespace: &str| {
        let namespace_text =
            format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
        let job = job("sweep", 20, 1, LONG).replace("namespace: default", &format!("namespace: {namespace}"));
        namespace_text + &job
    };
    let factor = "apiVersion: slotwright.dev/v1alpha1\nkind: Submitter\nmetadata: {name: bob}\n\
                  spec: {priorityFactor: 2000}\n";
    let negotiator = quick_negotiator().replace("cycleDelaySeconds: 1", "cycleDelaySeconds: 2");
    let dir = manifests(&[factor, &of("alice"), &of("bob")].concat());
    fs::write(dir.path().join("first.yaml"), negotiator + &job("hello", 1, 1, QUICK)).unwrap();
    let output = demo().args(["--nodes", "3", "--examples"]).arg(dir.path()).output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let at_peak = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
        line.split_whitespace().nth(3).unwrap_or_default().to_owned()
    };
    assert_eq!((at_peak("alice"), at_peak("bob")), ("16".to_owned(), "8".to_owned()), "{text}");
}

#[test]
fn a_demo_needs_a_node() {
    let output = demo().args(["--nodes", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("0 is not in 1..=65535"), "{}", text(&output));
}

#[test]
fn what_the_operator_logs_into_a_file_has_no_colors() {
    let dir = manifests(&[quick_negotiator(), &job("short", 1, 1, QUICK)].concat());
    let output = demo().args(["--nodes", "1", "--verbose", "--examples"]).arg(dir.path()).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("this operator leads"), "{log}");
    assert!(!log.contains('\x1b'), "{log:?}");
}

/// As in `slotwright demo | head -1`: the reader has what it wants.
#[test]
fn a_reader_that_closes_the_pipe_ends_a_command_quietly() {
    let everything: [&[&str]; 5] = [
        &["demo", "--nodes", "1"],
        &["crds"],
        &["knobs"],
        &["lint", "--verbose", "examples"],
        &["config", "--help"],
    ];
    for args in everything {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn what_cannot_finish_is_named_with_the_reason_when_time_is_up() {
    let jobs = [quick_negotiator(), &job("huge", 1, 1000, QUICK)].concat();
    let dir = manifests(&jobs);
    let output =
        demo().args(["--nodes", "1", "--timeout", "12", "--examples"]).arg(dir.path()).output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("jobs       0 of 1 complete"), "{text}");
    assert!(text.contains("default/huge: Matchable"), "{text}");
    assert!(text.contains("Time was up"), "{text}");
}

#[test]
fn what_the_api_server_refuses_is_said_and_spoils_the_end() {
    let jobs = [quick_negotiator(), &job("zero", 0, 1, QUICK), &job("short", 1, 1, QUICK)].concat();
    let dir = manifests(&jobs);
    let run = |flags: &[&str]| demo().args(["--nodes", "1", "--timeout", "60"]).args(flags).output().unwrap();
    let refused = run(&["--examples", &dir.path().to_string_lossy()]);
    let shown = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{shown}");
    assert!(shown.contains("refused jobs.yaml, document 2, HTCJob zero: "), "{shown}");
    assert!(shown.contains("jobs       1 of 1 complete"), "the others ran all the same:\n{shown}");
}

#[test]
fn a_directory_without_manifests_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo().arg("--examples").arg(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("there are no .yaml files"), "{}", text(&output));
}

#[test]
fn a_kubeconfig_of_somebody_else_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    fs::write(&file, "current-context: production\n").unwrap();
    let output = demo().args(["--cluster-only", "--kubeconfig"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("not overwritten"), "{}", text(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), "current-context: production\n");
}

#[test]
fn the_bare_cluster_serves_until_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    let mut command = demo();
    command.args(["--cluster-only", "--nodes", "1", "--kubeconfig"]).arg(&file).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ready = lines.find(|line| line.starts_with("There is no operator")).is_some();
    assert!(ready, "it ended before it was ready");
    let config = fs::read_to_string(&file).unwrap();
    let server = config.lines().find_map(|line| line.trim().strip_prefix("server: http://")).unwrap();
    std::net::TcpStream::connect(server).expect("it serves where the kubeconfig says");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_embedded_examples_are_those_of_the_directory() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = fs::read_dir(&dir).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert_eq!(EMBEDDED.len(), files, "add new examples to EMBEDDED in src/cli/demo/manifests.rs");
    for (name, text) in EMBEDDED {
        assert_eq!(*text, fs::read_to_string(dir.join(name)).unwrap(), "{name}");
    }
}
