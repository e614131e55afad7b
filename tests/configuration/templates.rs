//! Our templates against HTCondor's: `templates.py` recorded what each sets in `tests/oracle/templates.json`.

// A test states what it expects by panicking.
#![allow(clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use condor_config::knobs::default_of;
use condor_config::{Config, Host, Origin, Reader, Severity, Source, templates};
use serde::Deserialize;

#[derive(Deserialize)]
struct Record {
    host: String,
    before: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "use")]
    line: String,
    before: bool,
    #[serde(default)]
    error: bool,
    #[serde(default)]
    values: BTreeMap<String, String>,
}

/// Names whose values expand to another number each time, so `templates.py` leaves them out.
const RANDOM: [&str; 2] = ["PERIODIC_CHECKPOINT", "UWCS_PERIODIC_CHECKPOINT"];

fn record() -> Record {
    serde_json::from_str(include_str!("../oracle/templates.json")).expect("the record is JSON")
}

fn read(record: &Record, case: &Case) -> Option<Config> {
    let before = if case.before { record.before.as_str() } else { "" };
    let text = format!("{}{before}{}\n", record.host, case.line);
    let tilde = ("TILDE".to_owned(), "/var/lib/condor".to_owned()); // of Debian's user condor
    let host = Host { seed: Some(1), predefined: vec![tilde], ..Host::none() };
    let reader = Reader::new(host).subsystem("SCHEDD");
    reader.read(&[Source::new("case", text)]).into_config().ok()
}

/// Trims a value of several lines as `templates.py` does.
fn trimmed(value: &str) -> String {
    value.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// The values that our reading and HTCondor's give differently.
fn differences(config: &Config, case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    // HTCondor takes the template's own `warning: ...` for a definition of that name, which is not meant.
    for (name, wanted) in case.values.iter().filter(|(name, _)| *name != "warning") {
        let ours = config.value(name).map(Option::unwrap_or_default);
        if ours.as_deref().map(trimmed) != Ok(trimmed(wanted)) {
            found.push(format!("{name}\n    HTCondor: {wanted}\n    here:     {ours:?}"));
        }
    }
    let recorded: BTreeSet<String> = case.values.keys().map(|name| name.to_lowercase()).collect();
    for definition in config.definitions().filter(|definition| definition.origin != Origin::Predefined) {
        let name = definition.name.as_str();
        let same = definition.raw() == default_of(Some("SCHEDD"), name).unwrap_or_default();
        let host = ["FULL_HOSTNAME", "IPV4_ADDRESS", "IPV6_ADDRESS", "USERNAME"].contains(&name);
        if !same && !host && !RANDOM.contains(&name) && !recorded.contains(&name.to_lowercase()) {
            found.push(format!("{name} is set here only: {}", definition.raw()));
        }
    }
    found
}

#[test]
fn every_template_sets_what_htcondors_sets() {
    let record = record();
    let mut wrong = Vec::new();
    for case in &record.cases {
        let found = match read(&record, case) {
            Some(_) if case.error => vec!["an error for HTCondor".to_owned()],
            Some(config) => differences(&config, case),
            None if case.error => Vec::new(),
            None => vec!["an error here".to_owned()],
        };
        wrong.extend(found.iter().map(|what| format!("{} (before: {}): {what}", case.line, case.before)));
    }
    assert!(record.cases.len() > 200);
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_template_of_htcondors_is_here_and_no_other() {
    let recorded: BTreeSet<String> = record()
        .cases
        .iter()
        .filter_map(|case| {
            let name = case.line.strip_prefix("use ")?.split('(').next()?;
            Some(name.replace(" : ", ":").trim().to_lowercase())
        })
        .chain(["feature:hpc_annex".to_owned(), "security:user_based".to_owned()])
        .collect();
    let ours: BTreeSet<String> = templates::all()
        .map(|template| format!("{}:{}", template.category, template.name).to_lowercase())
        .collect();
    assert_eq!(ours, recorded);
}

#[test]
fn a_template_without_sense_on_kubernetes_says_what_to_use_instead() {
    for (line, advised) in [
        ("use FEATURE : GPUs", true),
        ("use ROLE : Execute", true),
        ("use SECURITY : Strong", true),
        ("use POLICY : Desktop", false),
        ("use FEATURE : PartitionableSlot", false),
    ] {
        let reading = Reader::new(Host::none()).read(&[Source::new("policy", line)]);
        let warned = reading.diagnostics.iter().any(|finding| finding.severity == Severity::Warning);
        assert_eq!(warned, advised, "{line}: {:?}", reading.diagnostics);
    }
}
