//! The real kubectl.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A kubectl with a home directory of its own, so that it does not use what it has cached of another server.
pub(crate) struct Kubectl {
    program: String,
    home: PathBuf,
}

impl Kubectl {
    pub(crate) fn find(home: PathBuf) -> Option<Self> {
        let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        let found = Command::new(&program).args(["version", "--client"]).output();
        found.is_ok_and(|o| o.status.success()).then_some(Self { program, home })
    }

    /// Runs the arguments in `line`, split at blanks, with `input` as standard input. Returns whether the command
    /// succeeded, and all that it printed.
    pub(crate) fn run(&self, line: &str, input: &str) -> (bool, String) {
        let mut child = Command::new(&self.program)
            .args(line.split_whitespace())
            .arg("--request-timeout=20s")
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("KUBECONFIG", self.home.join("config"))
            .env("KUBE_EDITOR", "sed -i s/green/red/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        // kubectl prints warnings before what it did.
        let text = [output.stderr, output.stdout].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }
}
