//! The output of a failed test: the objects, the events, the proof files and the operators' logs.

use std::path::Path;
use std::process::Command;

use crate::cluster::{root, state};
use crate::program::proof_dir;

/// How many lines of each operator's log, and of the events.
const LINES: usize = 60;

pub fn print(namespace: &str, logs: &Path) {
    eprintln!("\n=== {namespace}: what there is");
    for arguments in [
        ["get", "nodes,nodepolicies,drainrequests,partitionableslots", "-o", "wide"].as_slice(),
        &["get", "htcjobs,slots,pods", "-A", "-o", "wide"],
        &[
            "get",
            "htcjobs",
            "-A",
            "-o",
            "jsonpath={range .items[*]}{.metadata.name}{\" \"}{.status}{\"\\n\"}{end}",
        ],
        &["get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp"],
    ] {
        eprintln!("--- kubectl {}\n{}", arguments.join(" "), tail(&kubectl(arguments), LINES));
    }
    eprintln!("--- proof files");
    let mut names: Vec<_> = files(&proof_dir(namespace)).into_iter().flat_map(|job| files(&job)).collect();
    names.sort();
    for name in names.iter().take(100) {
        let text = std::fs::read_to_string(name).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('B')).map(str::trim_end).collect();
        let last = text.lines().last().unwrap_or_default().trim_end();
        eprintln!(
            "{}: {}; last {last}",
            name.strip_prefix(state()).unwrap_or(name).display(),
            lines.join(", ")
        );
    }
    for log in files(logs) {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        eprintln!("--- {}\n{}", log.display(), tail(&text, LINES));
    }
    eprintln!("=== the end of {namespace}\n");
}

/// The output of kubectl, and what it says on stderr.
pub fn kubectl(arguments: &[&str]) -> String {
    let path = Command::new(root().join("hack/kube/kubectl.sh")).output().unwrap();
    let path = String::from_utf8_lossy(&path.stdout).trim().to_owned();
    let mut command = Command::new("timeout");
    command.arg("180").arg(path).args(arguments).env("KUBECONFIG", state().join("admin.kubeconfig"));
    match command.output() {
        Ok(output) => {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        }
        Err(error) => error.to_string(),
    }
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path()).collect();
    found.sort();
    found
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    let left_out = if from > 0 { format!("[{from} lines left out]\n") } else { String::new() };
    left_out + &all[from..].join("\n")
}
