//! Negotiators: their configuration, and what their cycles came to.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::conditions::{Says, condition, of_policy};
use super::document::size;
use super::governing::{self, Read, expression, problems_of};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::kube_time;
use api::{
    CycleStatistics, FailedClauseStatus, Negotiator, NegotiatorSpec, NegotiatorStatus, RejectionStatus,
    RequirementsOf, condition as types,
};
use condor_config::Config as Text;
use condor_config::knobs::Reader;
use model::decide::overlap_message;
use model::negotiator::{Config, doubts};
use model::pool::{
    Document, Event, FailedClause, Governing, NegotiatorConfig, NegotiatorFacts, NegotiatorId, Pool, Problem,
    Rejected, Side, Time,
};
use model::startd::config::{Remark, Severity, of_text, sort};

impl Custom for Negotiator {
    type Kept = ();
    const KIND: Kind = Kind::of(&("Negotiator", "negotiators"));
    const STAGE: Stage = Stage::Negotiators;

    fn keep(_: &Self) {}

    fn there(negotiator: Self, (): &()) -> Vec<News> {
        told(Event::Negotiator(facts(&negotiator)))
    }

    fn document(negotiator: &Self, (): &()) -> Option<Document> {
        Some(Document::Negotiator(negotiator.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::NegotiatorGone(names.name.as_str().into()))
    }
}

impl Shown for Negotiator {
    type Subject = Arc<str>;

    fn subject(document: &Document) -> Option<&Arc<str>> {
        match document {
            Document::Negotiator(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &Arc<str>) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.to_string()))
    }

    fn render(pool: &Pool, name: &Arc<str>, old: &[Condition], now: Time) -> Rendered {
        let negotiator = pool.negotiators().get(name);
        negotiator.map_or(Rendered::Nothing, |negotiator| {
            Rendered::status(&status(pool, name, negotiator, old, now))
        })
    }
}

/// The pool's facts of a Negotiator. If the spec cannot be used, the facts include the spec that the status records as accepted.
pub fn facts(object: &Negotiator) -> NegotiatorFacts {
    let accepted = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
    governing::facts(object, &object.spec, accepted, read)
}

/// Reads a text for the subsystem `NEGOTIATOR`. Returns the configuration, if the text can be used, and remarks about the
/// text in its order.
pub fn understand_text(text: &str) -> (Option<Config>, Vec<Remark>) {
    let (config, remarks, _) = understand(text);
    (config, remarks)
}

fn understand(text: &str) -> (Option<Config>, Vec<Remark>, Text) {
    let (reading, mut remarks) = of_text("NEGOTIATOR", &[Reader::Negotiator, Reader::Accountant], text);
    let config = Config::read(&reading.config);
    match &config {
        Err(faults) => remarks.extend(faults.iter().map(Remark::of_value)),
        Ok(config) => remarks.extend(of_constraint(&reading.config, config)),
    }
    sort(&mut remarks);
    let usable = remarks.iter().all(|remark| remark.severity != Severity::Error);
    (config.ok().filter(|_| usable), remarks, reading.config)
}

/// Reads a spec. Where a field and the text give the same knob, the field counts: `kubectl get` shows fields.
fn read(spec: &NegotiatorSpec) -> Read<NegotiatorConfig> {
    let understood = spec.config.as_deref().map(understand);
    let (mut problems, mut warnings) = (Vec::new(), None);
    let mut config = Config::default();
    if let Some((said, remarks, text)) = understood {
        let (errors, others) = problems_of(&remarks);
        problems.extend(errors);
        warnings = Some([others, said_twice(spec, &text)].concat());
        config = said.unwrap_or_default();
    }
    put_fields(spec, &mut config, &mut problems);
    if let (Some(_), Some(constraint)) = (&spec.slot_constraint, &config.slot_constraint) {
        let doubts = doubts(constraint).into_iter().map(|message| Problem {
            reason: "ConfigurationWarning",
            field: "spec.slotConstraint".to_owned(),
            message,
        });
        doubts.for_each(|doubt| warnings.get_or_insert_default().push(doubt));
    }
    let config = if problems.is_empty() { Ok(Arc::new(config.into())) } else { Err(problems) };
    Read { selection: (), config, warnings }
}

/// Remarks about NEGOTIATOR_SLOT_CONSTRAINT in a text.
fn of_constraint(text: &Text, config: &Config) -> Vec<Remark> {
    const KNOB: &str = "NEGOTIATOR_SLOT_CONSTRAINT";
    let own = format!("NEGOTIATOR.{KNOB}");
    let definition = text.definition(&own).or_else(|| text.definition(KNOB));
    let (Some(definition), Some(constraint)) = (definition, &config.slot_constraint) else {
        return Vec::new();
    };
    let position = text.position(definition);
    let of = |doubt| Remark::at(&position, Severity::Warning, format!("{KNOB} {doubt}")).about(KNOB);
    doubts(constraint).into_iter().map(of).collect()
}

fn put_fields(spec: &NegotiatorSpec, config: &mut Config, problems: &mut Vec<Problem>) {
    let span =
        |given: Option<i64>| given.and_then(|given| u64::try_from(given).ok()).map(Duration::from_secs);
    config.interval = span(spec.interval_seconds).unwrap_or(config.interval);
    config.cycle_delay = span(spec.cycle_delay_seconds).or(config.cycle_delay);
    config.min_interval = span(spec.min_interval_seconds).or(config.min_interval);
    if let Some(halflife) = span(spec.priority_halflife_seconds) {
        config.priority_halflife = halflife.as_secs_f64();
    }
    if let Some(factor) = spec.default_priority_factor.filter(|factor| *factor >= 1.0) {
        config.default_priority_factor = factor;
    }
    for (field, given, knob) in [
        ("spec.slotConstraint", &spec.slot_constraint, &mut config.slot_constraint),
        ("spec.preJobRank", &spec.pre_job_rank, &mut config.pre_job_rank),
        ("spec.postJobRank", &spec.post_job_rank, &mut config.post_job_rank),
    ] {
        if given.is_some() {
            *knob = expression(field, given.as_ref(), problems);
        }
    }
}

/// The fields of a Negotiator's spec that stand for knobs, each with its knob.
pub const KNOBS_OF_FIELDS: [(&str, &str); 8] = [
    ("intervalSeconds", "NEGOTIATOR_INTERVAL"),
    ("cycleDelaySeconds", "NEGOTIATOR_CYCLE_DELAY"),
    ("minIntervalSeconds", "NEGOTIATOR_MIN_INTERVAL"),
    ("priorityHalflifeSeconds", "PRIORITY_HALFLIFE"),
    ("defaultPriorityFactor", "DEFAULT_PRIO_FACTOR"),
    ("slotConstraint", "NEGOTIATOR_SLOT_CONSTRAINT"),
    ("preJobRank", "NEGOTIATOR_PRE_JOB_RANK"),
    ("postJobRank", "NEGOTIATOR_POST_JOB_RANK"),
];

/// Warnings about knobs that a field and the text both give.
fn said_twice(spec: &NegotiatorSpec, text: &Text) -> Vec<Problem> {
    let set = [
        spec.interval_seconds.is_some(),
        spec.cycle_delay_seconds.is_some(),
        spec.min_interval_seconds.is_some(),
        spec.priority_halflife_seconds.is_some(),
        spec.default_priority_factor.is_some(),
        spec.slot_constraint.is_some(),
        spec.pre_job_rank.is_some(),
        spec.post_job_rank.is_some(),
    ];
    let twice = |((field, knob), set): ((&str, &str), bool)| {
        let own = format!("NEGOTIATOR.{knob}");
        let definition = text.definition(&own).or_else(|| text.definition(knob)).filter(|_| set)?;
        let place = text.position(definition);
        Some(Problem {
            reason: "SaidTwice",
            field: format!("spec.{field}"),
            message: format!(
                "takes precedence over {knob} in spec.config, line {}, column {}; set the value in one of the two places",
                place.line, place.column
            ),
        })
    };
    KNOBS_OF_FIELDS.into_iter().zip(set).filter_map(twice).collect()
}

/// The status of a Negotiator.
fn status(
    pool: &Pool,
    name: &Arc<str>,
    object: &Governing<NegotiatorConfig>,
    old: &[Condition],
    now: Time,
) -> NegotiatorStatus {
    let id = NegotiatorId::Named(name.clone());
    let turn = pool.schedule().turn(&id);
    let several = pool.negotiators().len() > 1;
    NegotiatorStatus {
        observed_generation: Some(object.generation),
        accepted_spec: object.accepted.as_deref().map(str::to_owned),
        cycles: size(turn.cycles),
        last_cycle: turn.last.map(|cycle| CycleStatistics {
            start_time: Some(kube_time(cycle.started)),
            duration_millis: cycle.ended.since(cycle.started).as_millis().try_into().unwrap_or(i64::MAX),
            matches: size(cycle.matches),
            rejects: size(cycle.rejects),
            submitters: size(cycle.submitters),
            slots: size(cycle.slots),
            idle_procs: size(cycle.idle),
            pies: size(cycle.pies),
            rejections: cycle.rejections.reasons.iter().map(rejection).collect(),
            other_rejected_procs: size(cycle.rejections.other_procs),
        }),
        uncovered_slots: several.then(|| size(pool.sharing().uncovered.count)),
        conditions: {
            let problems = (object.problems.as_slice(), object.meanwhile(pool.negotiator_fallback(name)));
            let own = of_policy(old, problems, object.warnings.as_deref(), object.generation, now);
            let shared = several.then(|| condition(old, overlaps(pool, &id), Some(object.generation), now));
            own.into_iter().chain(shared).collect()
        },
    }
}

/// `Overlaps`: whether slots of a negotiator are also within another negotiator's constraint.
fn overlaps(pool: &Pool, id: &NegotiatorId) -> Says<'static> {
    let message = overlap_message(id, pool.sharing());
    let (status, reason) =
        (Some(message.is_some()), if message.is_some() { "SlotsShared" } else { "NoneShared" });
    let none = || "no slot is within the slotConstraint of this Negotiator and another's".to_owned();
    Says { type_: types::OVERLAPS, status, reason, message: message.unwrap_or_else(none) }
}

/// A reason for which the last cycle rejected procs, as the status shows it.
fn rejection(rejected: &Rejected) -> RejectionStatus {
    RejectionStatus {
        reason: rejected.reason.to_owned(),
        of: rejected.of.as_deref().map(str::to_owned),
        procs: size(rejected.procs),
        jobs: size(rejected.jobs),
        example: format!("{}/{}", rejected.example.namespace, rejected.example.name),
        clauses: rejected.clauses.iter().map(clause).collect(),
    }
}

fn clause(failed: &FailedClause) -> FailedClauseStatus {
    FailedClauseStatus {
        of: match failed.side {
            Side::Job => RequirementsOf::Job,
            Side::Machine => RequirementsOf::Machine,
        },
        clause: failed.text.to_string(),
        slots: i64::try_from(failed.slots).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
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
            [
                &config.cycle.slot_constraint,
                &config.cycle.pre_job_rank,
                &config.cycle.preemption_requirements
            ]
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
    fn a_doubtful_constraint_is_warned_of_where_it_stands() {
        let doubt = "looks at GPUs, which changes when a job takes a part of a partitionable slot: the slot may then be another \
                     Negotiator's, or nobody's; use TotalGPUs";
        for (spec, expected) in [
            (json!({"slotConstraint": "GPUs > 0"}), Some(format!("spec.slotConstraint: {doubt}"))),
            (
                json!({"config": "A = 1\nNEGOTIATOR_SLOT_CONSTRAINT = $(A) && GPUs > 0"}),
                Some(format!("spec.config: line 2, column 1: NEGOTIATOR_SLOT_CONSTRAINT {doubt}")),
            ),
            (json!({"slotConstraint": "TotalGPUs > 0"}), None),
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
        let facts =
            facts_of(&json!({"config": text, "slotConstraint": "(", "postJobRank": "1"}), &Value::Null);
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
        let shown =
            |one: &Value| ["type", "status", "reason", "message"].map(|field| text(one, field)).join(" ");
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
}
