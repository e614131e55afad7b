//! `DrainRequest`s: what each asks for, and how far it has come.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::conditions::{Says, accepted, condition};
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::{kube_time, time};
use api::{DrainCompletion, DrainRequest, DrainRequestStatus, condition as types};
use classad::Expr;
use model::pool::{
    Document, Drain, DrainCost, DrainFacts, DrainPhase, DrainSchedule, DrainSpec, Event, Pool, Problem, Time,
};
use model::schedd::bad_expression;

impl Custom for DrainRequest {
    type Kept = ();
    const KIND: Kind = Kind::of(&("DrainRequest", "drainrequests"));
    const STAGE: Stage = Stage::Settings;

    fn keep(_: &Self) {}

    fn there(drain: Self, (): &()) -> Vec<News> {
        told(Event::Drain(facts(&drain)))
    }

    fn document(drain: &Self, (): &()) -> Option<Document> {
        Some(Document::Drain(drain.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::DrainGone(names.name.as_str().into()))
    }
}

impl Shown for DrainRequest {
    type Subject = Arc<str>;

    fn subject(document: &Document) -> Option<&Arc<str>> {
        match document {
            Document::Drain(name) => Some(name),
            _ => None,
        }
    }

    fn object(_: &Pool, name: &Arc<str>) -> Option<ObjectKey> {
        Some(Self::KIND.object(name.to_string()))
    }

    fn render(pool: &Pool, name: &Arc<str>, old: &[Condition], now: Time) -> Rendered {
        let drain = pool.drains().get(name);
        drain.map_or(Rendered::Nothing, |drain| Rendered::status(&status(pool, drain, old, now)))
    }
}

/// The pool's facts of a `DrainRequest`.
pub fn facts(object: &DrainRequest) -> DrainFacts {
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
        uid: object.uid().unwrap_or_default().into(),
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

/// The phase of the drain that a status records, if the status is of the present spec.
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

/// The status of a drain.
fn status(pool: &Pool, drain: &Drain, old: &[Condition], now: Time) -> DrainRequestStatus {
    let machine = drain.spec.as_ref().and_then(|spec| pool.machines().get(&spec.machine));
    let under_way = matches!(drain.phase, DrainPhase::Draining { .. });
    let claims = machine.filter(|_| under_way).map_or(0, |machine| machine.claimed_slots().count());
    let (reason, message) = drain.phase.says();
    let done = matches!(drain.phase, DrainPhase::Drained { .. } | DrainPhase::Resumed { .. });
    let says = Says { type_: types::DRAINED, status: Some(done), reason, message };
    DrainRequestStatus {
        observed_generation: Some(drain.generation),
        start_time: drain.phase.began().map(kube_time),
        completion_time: drain.phase.completed().map(kube_time),
        claims: i64::try_from(claims).unwrap_or(i64::MAX),
        badput_cpu_seconds: drain.cost.badput,
        unclaimed_cpu_seconds: drain.cost.unclaimed,
        conditions: vec![
            accepted(old, &drain.problems, drain.generation, now),
            condition(old, says, Some(drain.generation), now),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pool::{Claim, JobKey, MachineFacts, Resources, SlotFacts, SlotName};

    /// A pool that knows of a drain of a machine on which so many claims are.
    fn draining(claims: u32, phase: DrainPhase) -> Pool {
        let (mut pool, now) = (Pool::default(), Time::from_secs(1000));
        pool.apply(Event::Machine(MachineFacts::of_nothing("n1".into())), now);
        let spec = DrainSpec {
            machine: "n1".into(),
            schedule: DrainSchedule::Graceful,
            resume: true,
            check: None,
            start: None,
            reason: None,
        };
        let cost = DrainCost { badput: 70, unclaimed: 90 };
        let drain = DrainFacts {
            name: "d".into(),
            uid: "u-d".into(),
            generation: 3,
            created: now,
            spec: Ok(spec.into()),
            recorded: Some(phase),
            cost,
        };
        pool.apply(Event::Drain(drain), now);
        for id in 1..=claims {
            let name = SlotName { machine: "n1".into(), slot: 1, dynamic: Some(id) };
            let claim = Claim {
                id: format!("{name}#1#{id}").into(),
                submitter: "alice".into(),
                group: None,
                negotiator: model::pool::NegotiatorId::Unnamed,
                regrouped: false,
                weight: 1.0,
                limits: model::pool::limits::Wants::default(),
                since: now,
                last: model::pool::Assignment {
                    job: JobKey { uid: "u".into(), namespace: "alice".into(), name: "sweep".into() },
                    cluster_id: 1,
                    proc: id,
                },
            };
            let resources = Resources { cpus: 1, ..Resources::default() };
            pool.apply(Event::Slot(SlotFacts { name, resources, claim: Some(claim), recorded: None }), now);
        }
        pool
    }

    #[test]
    fn a_status_tells_the_claims_that_are_left_and_what_the_drain_has_cost() {
        let (since, at) = (Time::from_secs(500), Time::from_secs(900));
        for (claims, phase, left, reason) in [
            (3, DrainPhase::Draining { since }, 3, "Draining"),
            (0, DrainPhase::Draining { since }, 0, "Draining"),
            // A drain no longer counts the claims on a node that takes jobs again.
            (2, DrainPhase::Resumed { since, at }, 0, "Resumed"),
            (0, DrainPhase::Drained { since, at }, 0, "Drained"),
        ] {
            let pool = draining(claims, phase);
            let status = status(&pool, &pool.drains()["d"], &[], Time::from_secs(1000));
            let drained = status.conditions.iter().find(|condition| condition.type_ == types::DRAINED);
            assert_eq!((status.claims, drained.unwrap().reason.as_str()), (left, reason));
            assert_eq!((status.badput_cpu_seconds, status.unclaimed_cpu_seconds), (70, 90), "{reason}");
            assert_eq!(status.start_time, Some(kube_time(since)));
            assert_eq!(status.completion_time.is_some(), reason != "Draining");
        }
    }
}
