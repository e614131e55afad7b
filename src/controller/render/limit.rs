//! What a concurrency limit shows: how much is in use, and who waits for it.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::conditions::accepted;
use api::{ConcurrencyLimitStatus, LimitInUse};
use model::pool::{LimitObject, Pool, Problem, Time};

/// How many members of a set are shown, those of which most is in use.
const SHOWN: usize = 20;

pub(super) fn limit(
    pool: &Pool,
    limit: &LimitObject,
    old: &[Condition],
    now: Time,
) -> ConcurrencyLimitStatus {
    let mut problems = limit.problems.clone();
    problems.extend(shared(pool, limit));
    let tally = pool.holdings.book().tally(&limit.name);
    let waits = |name: &Arc<str>| limit.concerns(name);
    let waiting: u64 = pool.barred.iter().filter(|(name, _)| waits(name)).map(|(_, procs)| procs).sum();
    ConcurrencyLimitStatus {
        observed_generation: Some(limit.generation),
        name: limit.name.to_string(),
        in_use: tally.amount,
        claims: i64::try_from(tally.holders).unwrap_or(i64::MAX),
        waiting: i64::try_from(waiting).unwrap_or(i64::MAX),
        of_set: of_set(pool, limit),
        conditions: vec![accepted(old, &problems, limit.generation, now)],
    }
}

/// What is in use of the set of which it sets the limit of each.
fn of_set(pool: &Pool, limit: &LimitObject) -> Vec<LimitInUse> {
    let members = pool.holdings.book().in_use().filter(|(name, ..)| limit.is_of_set_of(name));
    let mut shown: Vec<LimitInUse> = members
        .map(|(name, tally, limit)| LimitInUse { name: name.to_owned(), in_use: tally.amount, limit })
        .collect();
    shown.sort_by(|a, b| b.in_use.total_cmp(&a.in_use).then_with(|| a.name.cmp(&b.name)));
    shown.truncate(SHOWN);
    shown
}

/// Two objects that speak of the same: the smaller limit counts, and both say so.
fn shared(pool: &Pool, limit: &LimitObject) -> Option<Problem> {
    let other = pool.limits.values().find(|other| {
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
