//! `slotwright completion` prints a script for each shell, and `slotwright man` writes a page for each command.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn slotwright(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slotwright")).args(args).output().unwrap()
}

#[test]
fn each_shell_has_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = slotwright(&["completion", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}");
        for word in ["slotwright", "simulate", "lint"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let output = slotwright(&["completion", "csh"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("bash"), "the shells that there are: {error}");
}

#[test]
fn each_command_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("share/man/man1");
    assert!(slotwright(&["man", pages.to_str().unwrap()]).status.success());
    for (page, says) in [("slotwright.1", "simulate"), ("slotwright-simulate.1", "virtual time")] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(says), "{page}: {text}");
    }
    // A file stands where the directory would be.
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = slotwright(&["man", file.to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && error.contains(file.to_str().unwrap()),
        "names the path: {error}"
    );
}
