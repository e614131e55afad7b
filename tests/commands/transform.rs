//! Runs `slotwright transform` as it is typed: the examples of its page, and exit statuses.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../docs/reference/transforms.md");

/// The indented text of the page that begins with this line.
fn example(first: &str) -> String {
    let lines = PAGE.lines().skip_while(|line| line.trim() != first);
    let indented = lines.take_while(|line| line.starts_with("    ") || line.is_empty());
    let lines: Vec<&str> = indented.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    lines.join("\n") + "\n"
}

/// Runs the command in a directory, with `jobs.ads` of the directory as standard input.
fn transform(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    let input = File::open(directory.join("jobs.ads")).unwrap();
    command.arg("transform").args(args).current_dir(directory).stdin(input).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn answers(policy: &str, flag: &str, job: &str, status: i32, out: &str, err: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("policy"), policy).unwrap();
    fs::write(directory.path().join("jobs.ads"), job).unwrap();
    let output = transform(directory.path(), &[flag, "policy"]);
    let told = (text(&output.stdout), text(&output.stderr), output.status.code());
    assert_eq!(told, (out.to_owned(), err.to_owned(), Some(status)));
}

#[test]
fn the_pages_transforms_change_jobs() {
    let policy = example("JOB_TRANSFORM_NAMES = AssignGroup, SL6ToDocker");
    let job = "JobUniverse = 5\nOwner = \"alice\"\nRequirements = TARGET.Memory > 1\nWantSL6 = true\n";
    let out = "AccountingGroup = \"alice\"\nAcctGroup = undefined\nDockerImage = \"SL6\"\nJobUniverse = 5\nOwner = \"alice\"\n\
               Requirements = TARGET.HasDocker && TARGET.Memory > 1\nWantDocker = true\nWantSL6 = true\n\n";
    answers(&policy, "-f", job, 0, out, "");
}

#[test]
fn the_pages_rules_change_an_ad() {
    let rules = example("EVALSET MemoryUsage ( ResidentSetSize / 100 )");
    let ad = "DiskUsage = 2500000\nErr = \"/dev/null\"\nNumCkpts = 0\nResidentSetSize = 500\nTransferrErr = false\n";
    let out = "DiskUsage = 2500000\nErr = \"/dev/null\"\nMemoryUsage = 5\nNumCheckPoints = 0\n\
               RequestDisk = (5000000 / 1024)\nResidentSetSize = 500\n\n";
    answers(&rules, "-r", ad, 0, out, "");
}

#[test]
fn the_pages_requirements_refuse_jobs() {
    let policy = example("SUBMIT_REQUIREMENT_NAMES = NotStandardUniverse, MinimalRequestMemory, NotChris");
    let small = "JobUniverse = 5\nOwner = \"alice\"\nRequestMemory = 100\n";
    let err = "slotwright transform: -, line 1: refused by the submit requirement MinimalRequestMemory\n\
               ERROR: The job only requested 100 Megabytes.\n";
    answers(&policy, "-f", small, 1, "", err);
    let fine = "JobUniverse = 5\nOwner = \"alice\"\nRequestMemory = 1024\n";
    answers(&policy, "-f", fine, 0, &format!("{fine}\n"), "");
}

#[test]
fn bad_input_is_told_with_file_line_and_column() {
    let err = "slotwright transform: policy, line 1, column 1: 'SETT' is no command: the commands are SET, DEFAULT, EVALSET, \
               EVALMACRO, COPY, RENAME and DELETE; a variable is set by NAME = value\n";
    answers("SETT A 1\n", "-r", "A = 1\n", 2, "", err);
    let err = "slotwright transform: -: line 2, column 4: expected an expression, found end of input\n";
    answers("SET A 1\n", "-r", "A = 1\nB =\n", 2, "", err);
}
