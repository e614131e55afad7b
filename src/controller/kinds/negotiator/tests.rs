//! Tests of what Negotiators say, and of what is said of them.

use serde_json::{Value, json};

use super::*;
use crate::kinds::kit::{pool, status};
use model::pool::SlotTally;

fn facts_of(spec: &Value, status: &Value) -> NegotiatorFacts {
    let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
                        "metadata": {"name": "n", "uid": "u1"}, "spec": spec, "status": status});
    facts(&serde_json::from_value(object).unwrap())
}

fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn without_anything_said_htcondors_defaults_hold() {
    let facts = facts_of(&json!({}), &Value::Null);
    assert_eq!((facts.config.as_deref(), facts.warnings), (Ok(&NegotiatorConfig::default()), None));
}

#[test]
fn fields_go_before_the_text() {
    let text = "NEGOTIATOR_INTERVAL = 300\nNEGOTIATOR_CYCLE_DELAY = 0\nDEFAULT_PRIO_FACTOR = 10\n\
                NEGOTIATOR_SLOT_CONSTRAINT = Arch == \"X86_64\"\n\
                PREEMPTION_REQUIREMENTS = RemoteUserPrio > TARGET.SubmitterUserPrio\n";
    let facts =
        facts_of(&json!({"config": text, "intervalSeconds": 30, "preJobRank": "Memory"}), &Value::Null);
    let config = facts.config.unwrap();
    let seconds = [Some(config.interval), config.cycle_delay, config.min_interval];
    let seconds = seconds.map(|span| span.map(|span| span.as_secs()));
    assert_eq!((seconds, config.default_factor), ([Some(30), Some(0), None], 10.0));
    let text = |expr: &Option<classad::Expr>| expr.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        [&config.cycle.slot_constraint, &config.cycle.pre_job_rank, &config.cycle.preemption_requirements]
            .map(text),
        ["Arch == \"X86_64\"", "Memory", "RemoteUserPrio > TARGET.SubmitterUserPrio"]
    );
    assert_eq!(
        shown(&facts.warnings.unwrap()),
        [
            "spec.intervalSeconds: takes precedence over NEGOTIATOR_INTERVAL in spec.config, line 1, column 1; set the \
             value in one of the two places"
        ]
    );
}

#[test]
fn a_doubtful_expression_is_warned_of_where_it_stands() {
    let doubt = "looks at GPUs, which changes when a job takes a part of a partitionable slot: the slot may then be another \
                 Negotiator's, or nobody's; use TotalGPUs";
    let nobodys =
        "an attribute that neither nodes nor jobs have unless somebody adds it; a text has double quotes";
    for (spec, expected) in [
        (json!({"slotConstraint": "GPUs > 0"}), Some(format!("spec.slotConstraint: {doubt}"))),
        (
            json!({"config": "A = 1\nNEGOTIATOR_SLOT_CONSTRAINT = $(A) && GPUs > 0"}),
            Some(format!("spec.config: line 2, column 1: NEGOTIATOR_SLOT_CONSTRAINT {doubt}")),
        ),
        (
            json!({"slotConstraint": "TARGET.TotalCpus > 3"}),
            Some("spec.slotConstraint: looks at TARGET.TotalCpus, and the constraint sees a slot alone; write TotalCpus".to_owned()),
        ),
        (
            json!({"slotConstraint": "Arch == X86_64"}),
            Some(format!("spec.slotConstraint: compares Arch with X86_64, {nobodys}: \"X86_64\"")),
        ),
        (
            json!({"preJobRank": "TARGET.Owner == bob"}),
            Some(format!("spec.preJobRank: compares Owner with bob, {nobodys}: \"bob\"")),
        ),
        (
            json!({"postJobRank": "Memroy"}),
            Some(
                "spec.postJobRank: looks at Memroy, an attribute that neither nodes nor jobs have unless somebody adds it; did you mean \
                 Memory?"
                    .to_owned(),
            ),
        ),
        (json!({"slotConstraint": "TotalGPUs > 0", "preJobRank": "Memory", "postJobRank": "TARGET.JobPrio"}), None),
    ] {
        let facts = facts_of(&spec, &Value::Null);
        assert!(facts.config.is_ok(), "{spec}");
        assert_eq!(shown(&facts.warnings.unwrap_or_default()), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let text = "NEGOTIATOR_INTERVAL = often\nDEFAULT_PRIO_FACTOR = 0.5\nPREEMPTION_RANK = 1 +\nSTART = true\n\
                NEGOTIATOR_INTERVALL = 3\n";
    let facts = facts_of(&json!({"config": text, "slotConstraint": "(", "postJobRank": "1"}), &Value::Null);
    insta::assert_yaml_snapshot!((shown(&facts.config.unwrap_err()), shown(&facts.warnings.unwrap())));
}

#[test]
fn a_new_leader_knows_the_accepted_spec_by_the_record() {
    let bad = json!({"config": "NEGOTIATOR_INTERVAL = often"});
    for (record, interval) in [(json!({"config": "NEGOTIATOR_INTERVAL = 7"}), 7), (bad.clone(), 60)] {
        let mut pool = Pool::default();
        let facts = facts_of(&bad, &json!({"acceptedSpec": record.to_string()}));
        pool.apply(Event::Negotiator(facts), Time::from_secs(1));
        assert_eq!(pool.negotiator().interval, Duration::from_secs(interval));
        assert_eq!(pool.take_notices().len(), 1);
    }
}

#[test]
fn a_rejection_names_an_example_and_its_clauses() {
    let rejected = Rejected {
        reason: "RequirementsNotMet",
        of: Some("TARGET.HasFPU".into()),
        jobs: 2,
        procs: 7,
        example: model::pool::JobKey { uid: "u".into(), namespace: "ns".into(), name: "pi".into() },
        clauses: [
            FailedClause { side: Side::Job, text: "TARGET.HasFPU".into(), slots: 3 },
            FailedClause { side: Side::Machine, text: "START".into(), slots: 1 },
        ]
        .into(),
    };
    assert_eq!(
        serde_json::to_value(rejection(&rejected)).unwrap(),
        serde_json::json!({
            "reason": "RequirementsNotMet", "of": "TARGET.HasFPU", "procs": 7, "jobs": 2, "example": "ns/pi",
            "clauses": [
                { "of": "Job", "clause": "TARGET.HasFPU", "slots": 3 },
                { "of": "Machine", "clause": "START", "slots": 1 },
            ],
        })
    );
}

fn conditions(pool: &Pool, name: &str) -> Vec<String> {
    let status = status(pool, &Document::Negotiator(name.into()));
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    let shown = |one: &Value| ["type", "status", "reason", "message"].map(|field| text(one, field)).join(" ");
    status["conditions"].as_array().unwrap().iter().map(shown).collect()
}

#[test]
fn one_negotiator_says_nothing_of_others() {
    let pool = pool(&[("default", json!({"slotConstraint": "TotalSlotCpus > 1"}))]);
    assert_eq!(conditions(&pool, "default"), ["Accepted True Accepted the spec is in force"]);
    assert_eq!(status(&pool, &Document::Negotiator("default".into())).get("uncoveredSlots"), None);
}

#[test]
fn several_say_what_they_share_and_who_is_wrong() {
    let mut pool = pool(&[
        ("cpu", json!({"slotConstraint": "TotalSlotCpus > 1"})),
        ("gpu", json!({"slotConstraint": "TotalGPUs > 0"})),
        ("new", json!({"slotConstraint": "Cpus >"})),
    ]);
    let [cpu, gpu] = ["cpu", "gpu"].map(|name| NegotiatorId::from(Some(name)));
    let example = model::pool::SlotName::parse("slot1@n1").ok();
    let mut sharing = pool.sharing().clone();
    sharing.overlaps.insert((cpu, gpu), SlotTally { count: 2, example });
    sharing.uncovered.count = 3;
    pool.set_sharing(sharing, Vec::new());
    insta::assert_yaml_snapshot!(["cpu", "gpu", "new"].map(|name| conditions(&pool, name)));
    assert_eq!(status(&pool, &Document::Negotiator("new".into()))["uncoveredSlots"], 3);
}
