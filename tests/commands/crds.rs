//! `slotwright crds --dir` makes one directory, names the file that it cannot write, and checks what is there.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn crds(dir: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    command.args(["crds", "--dir"]).arg(dir).output().unwrap()
}

/// The exit code of `--check`, and what it says.
fn check(dir: &std::path::Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    let output = command.args(["crds", "--check", "--dir"]).arg(dir).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_directory_is_made_but_not_a_path() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made");
    assert!(crds(&made).status.success() && crds(&made).status.success());
    assert!(made.join("htcjobs.yaml").is_file());
    let misspelled = dir.path().join("mad").join("crds");
    let output = crds(&misspelled);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains(misspelled.to_str().unwrap()), "{error}");
    assert!(!dir.path().join("mad").exists());
}

#[test]
fn a_check_names_what_is_missing_changed_or_strange() {
    let dir = tempfile::tempdir().unwrap();
    assert!(crds(dir.path()).status.success());
    assert_eq!(check(dir.path()), (Some(0), String::new()));
    std::fs::remove_file(dir.path().join("slots.yaml")).unwrap();
    std::fs::write(dir.path().join("Kustomization"), "resources: []\n").unwrap();
    std::fs::write(dir.path().join("pies.yaml"), "kind: CustomResourceDefinition\n").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "no manifest\n").unwrap();
    let line = |name: &str, what: &str| format!("{}: {what}\n", dir.path().join(name).display());
    let expected = [
        line("Kustomization", "not current; run `make crds` and commit the result"),
        line("slots.yaml", "not current; run `make crds` and commit the result"),
        line("pies.yaml", "defines no kind of Slotwright's; delete this file"),
    ];
    assert_eq!(check(dir.path()), (Some(1), expected.concat()));
}
