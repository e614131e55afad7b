//! How the operator's log begins.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use serde_json::Value;

/// The log of an operator that finds no cluster, and so ends at once.
fn log(filter: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_slotwright"))
        .arg("operator")
        .args(arguments)
        .env("RUST_LOG", filter)
        .env("KUBECONFIG", "/no/such/file")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_filter_that_cannot_be_meant_is_told_of_in_the_first_line() {
    for filter in ["warning", "INFO slotwright=debug", "slotwright=verbose"] {
        let log = log(filter, &[]);
        let first = log.lines().next().unwrap();
        assert!(
            first.contains("ERROR") && first.contains("RUST_LOG (in the chart: log) is not obeyed"),
            "{log}"
        );
    }
    for filter in ["", "warn", "info,slotwright=debug"] {
        assert!(!log(filter, &[]).contains("RUST_LOG"), "{filter}");
    }
}

#[test]
fn a_log_in_json_has_an_object_in_each_line() {
    let log = log("warning", &["--log-format", "json"]);
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"], "ERROR");
    assert!(line["message"].as_str().unwrap().contains("`warning` is neither a level nor"), "{line}");
}
