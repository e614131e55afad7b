//! Warnings about what a Negotiator says.

use super::KNOBS_OF_FIELDS;
use api::NegotiatorSpec;
use classad::Expr;
use condor_config::Config as Text;
use model::mistakes;
use model::negotiator::{Config, doubts};
use model::pool::Problem;
use model::startd::config::{Remark, Severity};

/// Warnings about the expressions of the fields.
pub(super) fn of_fields(spec: &NegotiatorSpec) -> Vec<Problem> {
    let fields = [
        ("spec.slotConstraint", spec.slot_constraint.as_deref()),
        ("spec.preJobRank", spec.pre_job_rank.as_deref()),
        ("spec.postJobRank", spec.post_job_rank.as_deref()),
    ];
    let constraint = spec.slot_constraint.as_deref().and_then(|text| Expr::parse(text).ok());
    let doubts = constraint.iter().flat_map(doubts).map(|message| Problem {
        reason: "ConfigurationWarning",
        field: "spec.slotConstraint".to_owned(),
        message,
    });
    doubts.chain(mistakes::of_fields(fields, |_| false)).collect()
}

/// Remarks about NEGOTIATOR_SLOT_CONSTRAINT in a text.
pub(super) fn of_constraint(text: &Text, config: &Config) -> Vec<Remark> {
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

/// Warnings about knobs that a field and the text both give.
pub(super) fn said_twice(spec: &NegotiatorSpec, text: &Text) -> Vec<Problem> {
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
            reason: "TextOverridden",
            field: format!("spec.{field}"),
            message: format!(
                "takes precedence over {knob} in spec.config, line {}, column {}; set the value in one of the two places",
                place.line, place.column
            ),
        })
    };
    KNOBS_OF_FIELDS.into_iter().zip(set).filter_map(twice).collect()
}
