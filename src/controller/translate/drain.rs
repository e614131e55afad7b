//! `DrainRequest`s.

use std::sync::Arc;

use kube::ResourceExt;

use super::time;
use api::{self, DrainCompletion, DrainRequestStatus, condition as types};
use classad::Expr;
use model::pool::{DrainCost, DrainFacts, DrainPhase, DrainSchedule, DrainSpec, Problem, Time};
use model::schedd::bad_expression;

/// What the pool knows of a `DrainRequest`.
pub fn drain(object: &api::DrainRequest) -> DrainFacts {
    let spec = &object.spec;
    let mut problems = Vec::new();
    let mut expression = |field: &str, text: &Option<String>| {
        text.as_ref().and_then(|text| {
            Expr::parse(text).map_err(|error| problems.push(bad_expression(field, &error))).ok()
        })
    };
    let understood = DrainSpec {
        machine: spec.node.as_str().into(),
        schedule: match spec.schedule {
            api::DrainSchedule::Graceful => DrainSchedule::Graceful,
            api::DrainSchedule::Quick => DrainSchedule::Quick,
            api::DrainSchedule::Fast => DrainSchedule::Fast,
        },
        resume: spec.on_completion == DrainCompletion::Resume,
        check: expression("spec.check", &spec.check),
        start: expression("spec.start", &spec.start),
        reason: spec.reason.as_deref().map(Arc::from),
    };
    let generation = object.metadata.generation.unwrap_or(1);
    DrainFacts {
        name: object.name_any().into(),
        generation,
        created: object.metadata.creation_timestamp.as_ref().map_or(Time::default(), time),
        spec: if problems.is_empty() { Ok(Arc::new(understood)) } else { Err(problems) },
        recorded: object.status.as_ref().and_then(|status| recorded(status, generation)),
        cost: object.status.as_ref().map_or_else(DrainCost::default, |status| DrainCost {
            badput: status.badput_cpu_seconds.max(0),
            unclaimed: status.unclaimed_cpu_seconds.max(0),
        }),
    }
}

/// How far a status of the present spec says that the drain has come.
fn recorded(status: &DrainRequestStatus, generation: i64) -> Option<DrainPhase> {
    (status.observed_generation == Some(generation)).then_some(())?;
    let drained = status.conditions.iter().find(|condition| condition.type_ == types::DRAINED)?;
    let (began, completed) =
        (status.start_time.as_ref().map(time), status.completion_time.as_ref().map(time));
    match (drained.reason.as_str(), began, completed) {
        ("Refused", ..) => {
            let field = "spec.check".to_owned();
            Some(DrainPhase::Refused(Problem { reason: "Refused", field, message: drained.message.clone() }))
        }
        ("Draining", Some(since), _) => Some(DrainPhase::Draining { since }),
        ("Drained", Some(since), Some(at)) => Some(DrainPhase::Drained { since, at }),
        ("Resumed", Some(since), Some(at)) => Some(DrainPhase::Resumed { since, at }),
        _ => None,
    }
}
