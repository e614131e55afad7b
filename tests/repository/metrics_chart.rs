//! The chart's objects for Prometheus: a monitor that finds the operators, and alerts about metrics that there are.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Service;
use serde::Deserialize;
use serde_json::Value;

use super::chart::{Object, find, objects, read, render};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceMonitor {
    selector: Selector,
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    port: String,
    #[serde(rename = "interval")]
    _interval: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrometheusRule {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(rename = "name")]
    _name: String,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    alert: String,
    expr: String,
    #[serde(rename = "for")]
    _lasting: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// Checks that an object is what the Prometheus Operator takes: `ServiceMonitor` or `PrometheusRule`.
pub(super) fn check(object: &Value) {
    assert_eq!(object["apiVersion"], "monitoring.coreos.com/v1");
    if object["kind"] == "ServiceMonitor" {
        read_as::<ServiceMonitor>(object);
    } else {
        read_as::<PrometheusRule>(object);
    }
}

fn read_as<Spec: serde::de::DeserializeOwned>(object: &Value) -> Object<Spec> {
    serde_json::from_value(object.clone())
        .unwrap_or_else(|error| panic!("{} {}: {error}", object["kind"], object["metadata"]["name"]))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// The Services of webhook and history have the same ports' names in no object, and the same labels but for one.
#[test]
fn the_monitor_finds_the_service_of_the_metrics_and_no_other() {
    let all = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let Some(text) = render(&all) else { return };
    let objects = objects(&text);
    let monitor: Object<ServiceMonitor> = read_as(of_kind(&objects, "ServiceMonitor"));
    assert_eq!(monitor.metadata.labels.unwrap()["release"], "prometheus");
    let found = objects.iter().filter(|object| object["kind"] == "Service").filter(|service| {
        let labels = &service["metadata"]["labels"];
        monitor.spec.selector.match_labels.iter().all(|(key, value)| labels[key] == value.as_str())
    });
    let names: Vec<&Value> = found.map(|service| &service["metadata"]["name"]).collect();
    assert_eq!(names, ["physics-pool-metrics"]);
    let ports = find::<Service>(&objects, "physics-pool-metrics").spec.unwrap().ports.unwrap();
    assert_eq!(ports[0].name.as_deref(), Some(&*monitor.spec.endpoints[0].port));
}

#[test]
fn nothing_of_the_prometheus_operator_is_made_unless_asked_for() {
    let (Some(plain), Some(monitored)) =
        (render(&[]), render(&["--set", "metrics.serviceMonitor.enabled=true"]))
    else {
        return;
    };
    assert!(!plain.contains("monitoring.coreos.com"));
    find::<Service>(&objects(&monitored), "slotwright-metrics");
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("slotwright_")).map(str::to_owned).collect()
}

#[test]
fn the_page_of_the_metrics_has_all_metrics_and_the_alerts_of_the_chart() {
    let snapshot = read(
        "src/controller/snapshots/slotwright_controller__metrics__tests__metrics_are_prometheus_text.snap",
    );
    let samples = snapshot.lines().filter(|line| line.starts_with("slotwright_"));
    let there: BTreeSet<String> = samples.flat_map(metrics).collect();
    let page = read("docs/reference/metrics.md");
    let (table, alerts) = page.split_once("These expressions are worth an alert").unwrap();
    assert_eq!(metrics(table), there);

    let alerts = alerts.lines().filter_map(|line| line.strip_prefix("    "));
    let told: BTreeSet<&str> = alerts.map(|line| line.split('#').next().unwrap().trim()).collect();
    assert!(told.iter().all(|expression| metrics(expression).is_subset(&there)), "{told:?}");
    let Some(text) = render(&["--set", "metrics.prometheusRule.enabled=true"]) else { return };
    let objects = objects(&text);
    let rule: Object<PrometheusRule> = read_as(of_kind(&objects, "PrometheusRule"));
    let rules: Vec<&Rule> = rule.spec.groups.iter().flat_map(|group| &group.rules).collect();
    assert_eq!(rules.iter().map(|rule| &*rule.expr).collect::<BTreeSet<_>>(), told);
    for rule in rules {
        assert!(rule.alert.starts_with("Slotwright") && rule.labels.contains_key("severity"));
        assert!(rule.annotations.contains_key("summary"), "{}", rule.alert);
    }
}
