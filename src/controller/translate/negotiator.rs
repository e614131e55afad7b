//! Negotiators into what the pool knows of them.

use std::sync::Arc;
use std::time::Duration;

use super::governing::{Read, facts};
use super::policy::{expression, problems_of};
use api::{Negotiator, NegotiatorSpec};
use condor_config::Config as Text;
use condor_config::knobs::Reader;
use model::negotiator::Config;
use model::pool::{NegotiatorConfig, NegotiatorFacts, Problem};
use model::startd::config::{Remark, Severity, of_text, sort};

/// What the pool knows of a Negotiator. Where its spec cannot be used: also of the one that its status records.
pub fn negotiator(object: &Negotiator) -> NegotiatorFacts {
    let accepted = object.status.as_ref().and_then(|status| status.accepted_spec.as_deref());
    facts(object, &object.spec, accepted, read)
}

/// Reads a text for the subsystem `NEGOTIATOR`: what it says, if it can be used, and what is to be said of it, in its order.
pub fn negotiator_text(text: &str) -> (Option<Config>, Vec<Remark>) {
    let (config, remarks, _) = understand(text);
    (config, remarks)
}

fn understand(text: &str) -> (Option<Config>, Vec<Remark>, Text) {
    let (reading, mut remarks) = of_text("NEGOTIATOR", &[Reader::Negotiator, Reader::Accountant], text);
    let config = Config::read(&reading.config);
    if let Err(faults) = &config {
        remarks.extend(faults.iter().map(Remark::of_value));
    }
    sort(&mut remarks);
    let usable = remarks.iter().all(|remark| remark.severity != Severity::Error);
    (config.ok().filter(|_| usable), remarks, reading.config)
}

/// A text, and the fields over it: a field is the more particular of the two, and shows in `kubectl get`.
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
    let config = if problems.is_empty() { Ok(Arc::new(config.into())) } else { Err(problems) };
    (config, warnings)
}

fn put_fields(spec: &NegotiatorSpec, config: &mut Config, problems: &mut Vec<Problem>) {
    for (given, knob) in [
        (spec.interval_seconds, &mut config.interval),
        (spec.cycle_delay_seconds, &mut config.cycle_delay),
        (spec.min_interval_seconds, &mut config.min_interval),
    ] {
        if let Some(seconds) = given.and_then(|given| u64::try_from(given).ok()) {
            *knob = Duration::from_secs(seconds);
        }
    }
    if let Some(seconds) = spec.priority_halflife_seconds.and_then(|given| u64::try_from(given).ok()) {
        config.priority_halflife = Duration::from_secs(seconds).as_secs_f64();
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

/// What a field and the text both say.
fn said_twice(spec: &NegotiatorSpec, text: &Text) -> Vec<Problem> {
    let fields = [
        ("intervalSeconds", "NEGOTIATOR_INTERVAL", spec.interval_seconds.is_some()),
        ("cycleDelaySeconds", "NEGOTIATOR_CYCLE_DELAY", spec.cycle_delay_seconds.is_some()),
        ("minIntervalSeconds", "NEGOTIATOR_MIN_INTERVAL", spec.min_interval_seconds.is_some()),
        ("priorityHalflifeSeconds", "PRIORITY_HALFLIFE", spec.priority_halflife_seconds.is_some()),
        ("defaultPriorityFactor", "DEFAULT_PRIO_FACTOR", spec.default_priority_factor.is_some()),
        ("slotConstraint", "NEGOTIATOR_SLOT_CONSTRAINT", spec.slot_constraint.is_some()),
        ("preJobRank", "NEGOTIATOR_PRE_JOB_RANK", spec.pre_job_rank.is_some()),
        ("postJobRank", "NEGOTIATOR_POST_JOB_RANK", spec.post_job_rank.is_some()),
    ];
    let twice = |(field, knob, set): (&str, &str, bool)| {
        let own = format!("NEGOTIATOR.{knob}");
        let definition = text.definition(&own).or_else(|| text.definition(knob)).filter(|_| set)?;
        let place = text.position(definition);
        Some(Problem {
            reason: "SaidTwice",
            field: format!("spec.{field}"),
            message: format!(
                "goes before {knob} in spec.config, line {}, column {}; say it in one of the two",
                place.line, place.column
            ),
        })
    };
    fields.into_iter().filter_map(twice).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use model::pool::{Event, Pool, Time};

    fn facts_of(spec: &Value, status: &Value) -> NegotiatorFacts {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
                            "metadata": {"name": "n", "uid": "u1"}, "spec": spec, "status": status});
        negotiator(&serde_json::from_value(object).unwrap())
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
        let seconds = [config.interval, config.cycle_delay, config.min_interval].map(|span| span.as_secs());
        assert_eq!((seconds, config.default_factor), ([30, 0, 5], 10.0));
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
                "spec.intervalSeconds: goes before NEGOTIATOR_INTERVAL in spec.config, line 1, column 1; say it in one of \
                 the two"
            ]
        );
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
            assert_eq!(pool.notices.len(), 1);
        }
    }
}
