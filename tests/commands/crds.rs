//! `slotwright crds --dir` makes one directory, and names the file that it cannot write.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn crds(dir: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    command.args(["crds", "--dir"]).arg(dir).output().unwrap()
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
