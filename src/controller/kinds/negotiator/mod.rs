//! Negotiators: their configuration, and what their cycles came to.

mod doubts;

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
use model::negotiator::Config;
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
        Ok(config) => remarks.extend(doubts::of_constraint(&reading.config, config)),
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
        warnings = Some([others, doubts::said_twice(spec, &text)].concat());
        config = said.unwrap_or_default();
    }
    put_fields(spec, &mut config, &mut problems);
    let of_fields = doubts::of_fields(spec);
    if !of_fields.is_empty() {
        warnings.get_or_insert_default().extend(of_fields);
    }
    let config = if problems.is_empty() { Ok(Arc::new(config.into())) } else { Err(problems) };
    Read { selection: (), config, warnings }
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
mod tests;
