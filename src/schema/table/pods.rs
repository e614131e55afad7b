//! The columns of pods, with status, readiness and restarts as kubectl summarizes them.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, age, age_column, name_column};

pub(super) fn columns() -> Vec<Column> {
    vec![
        name_column(),
        Column::code("Ready", "string", 0, |pod, _| ready(pod).into()),
        Column::code("Status", "string", 0, |pod, _| status(pod).into()),
        Column::code("Restarts", "string", 0, |pod, now| restarts(pod, now).into()),
        age_column(),
        Column::code("IP", "string", 1, |pod, _| or_none(pod, "/status/podIP")),
        Column::code("Node", "string", 1, |pod, _| or_none(pod, "/spec/nodeName")),
        Column::code("Nominated Node", "string", 1, |pod, _| or_none(pod, "/status/nominatedNodeName")),
        Column::code("Readiness Gates", "string", 1, |pod, _| gates(pod).into()),
    ]
}

/// The text of a field; `<none>` if it is absent or empty.
pub(super) fn or_none(obj: &Value, pointer: &str) -> Value {
    match obj.pointer(pointer).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => text.into(),
        _ => "<none>".into(),
    }
}

fn list<'v>(obj: &'v Value, pointer: &str) -> &'v [Value] {
    obj.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(obj: &'v Value, pointer: &str) -> &'v str {
    obj.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The names of the sidecars: init containers that keep running, and that count as containers.
fn sidecars(pod: &Value) -> Vec<&str> {
    let init = list(pod, "/spec/initContainers").iter();
    init.filter(|c| text(c, "/restartPolicy") == "Always").map(|c| text(c, "/name")).collect()
}

fn ready(pod: &Value) -> String {
    let sidecars = sidecars(pod);
    let total = list(pod, "/spec/containers").len() + sidecars.len();
    let is_ready = |s: &&Value| {
        s.get("ready").and_then(Value::as_bool) == Some(true) && s.pointer("/state/running").is_some()
    };
    let of_containers = list(pod, "/status/containerStatuses").iter();
    let of_sidecars =
        list(pod, "/status/initContainerStatuses").iter().filter(|s| sidecars.contains(&text(s, "/name")));
    format!("{}/{total}", of_containers.chain(of_sidecars).filter(is_ready).count())
}

fn status(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    let reason = text(pod, "/status/reason");
    let deleted = pod.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    if deleted && reason == "NodeLost" {
        return "Unknown".into();
    }
    if deleted && phase != "Failed" && phase != "Succeeded" {
        return "Terminating".into();
    }
    let gated = condition(pod, "PodScheduled").is_some_and(|c| text(c, "/reason") == "SchedulingGated");
    let start = match (gated, reason) {
        (true, _) => "SchedulingGated",
        (false, "") => phase,
        (false, reason) => reason,
    };
    initializing(pod).unwrap_or_else(|| of_containers(pod, start))
}

fn condition<'v>(pod: &'v Value, kind: &str) -> Option<&'v Value> {
    list(pod, "/status/conditions").iter().find(|c| text(c, "/type") == kind)
}

/// A status such as `Init:0/2`; `None` once all init containers have succeeded.
fn initializing(pod: &Value) -> Option<String> {
    let total = list(pod, "/spec/initContainers").len();
    let sidecars = sidecars(pod);
    for (i, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        let started = status.get("started").and_then(Value::as_bool) == Some(true);
        if sidecars.contains(&text(status, "/name")) && started {
            continue;
        }
        if let Some(end) = status.pointer("/state/terminated") {
            if end.get("exitCode").and_then(Value::as_i64) == Some(0) {
                continue;
            }
            return Some(format!("Init:{}", ending(end)));
        }
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() && waiting != "PodInitializing" {
            return Some(format!("Init:{waiting}"));
        }
        return Some(format!("Init:{i}/{total}"));
    }
    None
}

/// Why a container ended: its reason, its signal, or its exit code.
fn ending(terminated: &Value) -> String {
    let number = |key: &str| terminated.get(key).and_then(Value::as_i64).unwrap_or(0);
    match (text(terminated, "/reason"), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn of_containers(pod: &Value, start: &str) -> String {
    let mut reason = start.to_owned();
    let mut running = false;
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if let Some(end) = status.pointer("/state/terminated") {
            reason = ending(end);
        } else if status.get("ready").and_then(Value::as_bool) == Some(true) {
            running |= status.pointer("/state/running").is_some();
        }
    }
    if reason == "Completed" && running {
        let ready = condition(pod, "Ready").is_some_and(|c| text(c, "/status") == "True");
        return if ready { "Running" } else { "NotReady" }.into();
    }
    reason
}

fn restarts(pod: &Value, now: Timestamp) -> String {
    let statuses = list(pod, "/status/containerStatuses");
    let count: i64 = statuses.iter().filter_map(|s| s.get("restartCount")?.as_i64()).sum();
    let ends = statuses.iter().map(|s| text(s, "/lastState/terminated/finishedAt"));
    let youngest = ends.filter_map(|end| age::seconds_since(end, now)).min();
    match youngest.filter(|_| count > 0) {
        Some(seconds) => format!("{count} ({} ago)", age::human(seconds)),
        None => count.to_string(),
    }
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let met = |gate: &&Value| {
        condition(pod, text(gate, "/conditionType")).is_some_and(|c| text(c, "/status") == "True")
    };
    format!("{}/{}", gates.iter().filter(met).count(), gates.len())
}
