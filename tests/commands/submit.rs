//! Runs `slotwright submit` as it is typed.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::fs::{self, File};
use std::process::Command;

/// A second reader of standard input waits for ever if the first one holds its lock.
#[test]
fn items_come_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let file = "executable = /bin/echo\ntransfer_executable = false\narguments = $(x)\nqueue x from -\n";
    fs::write(path("d.sub"), file).unwrap();
    fs::write(path("items"), "a\nb\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    let input = File::open(path("items")).unwrap();
    let command =
        command.args(["submit", "--dry-run=ads", "d.sub"]).current_dir(directory.path()).stdin(input);
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{err}");
    let arguments: Vec<&str> = out.lines().filter(|line| line.starts_with("Args=")).collect();
    assert_eq!(arguments, ["Args=\"a\"", "Args=\"b\""], "{out}");
}
