//! Concurrency limits that admins set: how much each allows, how much of it is in use, and who waits for it.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::conditions::accepted;
use super::sighting::told;
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use api::{ConcurrencyLimit, ConcurrencyLimitStatus, LimitInUse};
use model::pool::limits::{is_limit_name, is_plain_name};
use model::pool::{Document, Event, LimitObject, Pool, Problem, Time};

impl Custom for ConcurrencyLimit {
    type Kept = ();
    const KIND: Kind = Kind::of(&("ConcurrencyLimit", "concurrencylimits"));
    const STAGE: Stage = Stage::Settings;

    fn keep(_: &Self) {}

    fn there(limit: Self, (): &()) -> Vec<News> {
        told(Event::Limit(facts(&limit)))
    }

    fn document(limit: &Self, (): &()) -> Option<Document> {
        Some(Document::Limit(limit.name_any().into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        told(Event::LimitGone(names.name.as_str().into()))
    }
}

impl Shown for ConcurrencyLimit {
    type Subject = Arc<str>;

    fn subject(document: &Document) -> Option<&Arc<str>> {
        match document {
            Document::Limit(object) => Some(object),
            _ => None,
        }
    }

    fn object(_: &Pool, object: &Arc<str>) -> Option<ObjectKey> {
        Some(Self::KIND.object(object.to_string()))
    }

    fn render(pool: &Pool, object: &Arc<str>, old: &[Condition], now: Time) -> Rendered {
        let limit = pool.limits().get(object);
        limit.map_or(Rendered::Nothing, |limit| Rendered::status(&status(pool, limit, old, now)))
    }
}

/// The pool's facts of a `ConcurrencyLimit`.
pub fn facts(object: &ConcurrencyLimit) -> LimitObject {
    let spec = &object.spec;
    let name = spec.name.clone().unwrap_or_else(|| object.name_any());
    let mut problems = Vec::new();
    let mut problem = |reason, field: &str, message| {
        problems.push(Problem { reason, field: field.to_owned(), message });
    };
    if !is_limit_name(&name) {
        let message = format!(
            "{name:?} names no limit; give spec.name as NAME or SET.NAME of letters, digits and _, no digit first"
        );
        problem("InvalidName", "spec.name", message);
    }
    if spec.limit.is_none() && spec.limit_of_each.is_none() {
        let message = "neither limit nor limitOfEach is given; give one".to_owned();
        problem("NoLimit", "spec.limit", message);
    }
    if spec.limit_of_each.is_some() && is_limit_name(&name) && !is_plain_name(&name) {
        let message = format!(
            "{name} names one limit of a set; give limitOfEach in a ConcurrencyLimit that has the name of the set"
        );
        problem("InvalidName", "spec.limitOfEach", message);
    }
    LimitObject {
        object: object.name_any().into(),
        generation: object.metadata.generation.unwrap_or(1),
        name: name.to_ascii_lowercase().into(),
        limit: spec.limit.map(|limit| limit.max(0.0)),
        limit_of_each: spec.limit_of_each.map(|limit| limit.max(0.0)),
        problems,
    }
}

/// How many limits of a set are shown: those of which most is in use.
const SHOWN: usize = 20;

fn status(pool: &Pool, limit: &LimitObject, old: &[Condition], now: Time) -> ConcurrencyLimitStatus {
    let mut problems = limit.problems.clone();
    problems.extend(shared(pool, limit));
    let tally = pool.holdings().book().tally(&limit.name);
    let waits = |name: &Arc<str>| limit.concerns(name);
    let waiting: u64 = pool.barred().iter().filter(|(name, _)| waits(name)).map(|(_, procs)| procs).sum();
    ConcurrencyLimitStatus {
        observed_generation: Some(limit.generation),
        name: limit.name.to_string(),
        in_use: tally.amount,
        claims: i64::try_from(tally.users).unwrap_or(i64::MAX),
        waiting: i64::try_from(waiting).unwrap_or(i64::MAX),
        of_set: of_set(pool, limit),
        conditions: vec![accepted(old, &problems, limit.generation, now)],
    }
}

/// The members of the set for which this object sets the limit of each, if they are in use: those with the most in use,
/// in this order.
fn of_set(pool: &Pool, limit: &LimitObject) -> Vec<LimitInUse> {
    let members = pool.holdings().book().in_use().filter(|(name, ..)| limit.is_of_set_of(name));
    let mut shown: Vec<LimitInUse> = members
        .map(|(name, tally, limit)| LimitInUse { name: name.to_owned(), in_use: tally.amount, limit })
        .collect();
    shown.sort_by(|a, b| b.in_use.total_cmp(&a.in_use).then_with(|| a.name.cmp(&b.name)));
    shown.truncate(SHOWN);
    shown
}

/// The problem that another object sets the same limit. The smaller of the two counts, and the status of both says so.
pub fn shared(pool: &Pool, limit: &LimitObject) -> Option<Problem> {
    let other = pool.limits().values().find(|other| {
        other.object != limit.object
            && other.name == limit.name
            && (other.limit.is_some() && limit.limit.is_some()
                || other.limit_of_each.is_some() && limit.limit_of_each.is_some())
    })?;
    Some(Problem {
        reason: "NameInUse",
        field: "spec.name".to_owned(),
        message: format!(
            "the ConcurrencyLimit {} sets the limit {} too, and the smaller counts; delete one of the two",
            other.object, limit.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, spec: serde_json::Value) -> LimitObject {
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "ConcurrencyLimit",
                            "metadata": {"name": name}, "spec": spec});
        facts(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn objects_say_which_limit_they_set_and_what_is_wrong() {
        for (name, spec, limit, reasons) in [
            ("xsw", json!({"limit": 3}), "xsw", &[][..]),
            ("network-a", json!({"name": "NETWORK_A", "limit": 10}), "network_a", &[]),
            ("large.swlicense", json!({"limit": 10}), "large.swlicense", &[]),
            ("large", json!({"limitOfEach": 100}), "large", &[]),
            ("network-a", json!({"limit": 10}), "network-a", &["InvalidName"]),
            ("xsw", json!({}), "xsw", &["NoLimit"]),
            ("large.x", json!({"limitOfEach": 1}), "large.x", &["InvalidName"]),
        ] {
            let read = read(name, spec);
            let found: Vec<&str> = read.problems.iter().map(|problem| problem.reason).collect();
            assert_eq!((&*read.name, found), (limit, reasons.to_vec()), "{name}");
        }
    }
}
