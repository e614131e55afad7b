//! Conditions of the standard form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::convert::kube_time;
use api::condition as types;
use model::pool::{Problem, Time};

/// The content of a condition.
pub(super) struct Says<'a> {
    /// Its type.
    pub(super) type_: &'a str,
    /// True or False; `None` is Unknown.
    pub(super) status: Option<bool>,
    /// The reason, in one word.
    pub(super) reason: &'a str,
    /// The message for people.
    pub(super) message: String,
}

/// Makes a condition. If the old condition of this type has the same status, its time is kept, so that no status is
/// written only because time passed. `generation` is `None` for an object whose spec the operator itself writes: the status
/// follows from the pool and not from the spec, and no generation is awaited.
pub(super) fn condition(old: &[Condition], says: Says<'_>, generation: Option<i64>, now: Time) -> Condition {
    let status = says.status.map_or("Unknown", |status| if status { "True" } else { "False" });
    let since = old
        .iter()
        .find(|c| c.type_ == says.type_ && c.status == status)
        .map(|c| c.last_transition_time.clone());
    Condition {
        type_: says.type_.to_owned(),
        status: status.to_owned(),
        observed_generation: generation,
        last_transition_time: since.unwrap_or_else(|| kube_time(now)),
        reason: says.reason.to_owned(),
        message: says.message.chars().take(4096).collect(),
    }
}

/// `Accepted`: whether the spec is in force. The message lists every problem with it.
pub(super) fn accepted(old: &[Condition], problems: &[Problem], generation: i64, now: Time) -> Condition {
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let says = match problems.first() {
        None => Says {
            type_: types::ACCEPTED,
            status: Some(true),
            reason: "Accepted",
            message: "the spec is in force".to_owned(),
        },
        Some(first) => Says {
            type_: types::ACCEPTED,
            status: Some(false),
            reason: first.reason,
            message: text.join("; "),
        },
    };
    condition(old, says, Some(generation), now)
}

/// The conditions of an object with configuration text: `Accepted`, and `FullyApplied` if the spec is accepted.
/// `meanwhile` says what is in force while there are problems, and ends the message of `Accepted`. `warnings` is `None`
/// where the object has no configuration text.
pub(super) fn of_policy(
    old: &[Condition],
    (problems, meanwhile): (&[Problem], &str),
    warnings: Option<&[Problem]>,
    generation: i64,
    now: Time,
) -> Vec<Condition> {
    let mut first = accepted(old, problems, generation, now);
    if !problems.is_empty() {
        first.message.push_str(meanwhile);
    }
    let applied = warnings.filter(|_| problems.is_empty()).map(|warnings| {
        let text: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let says = Says {
            type_: types::FULLY_APPLIED,
            status: Some(warnings.is_empty()),
            reason: warnings.first().map_or("AllHonored", |first| first.reason),
            message: if warnings.is_empty() {
                "everything that spec.config says is acted on".to_owned()
            } else {
                text.join("; ")
            },
        };
        condition(old, says, Some(generation), now)
    });
    [first].into_iter().chain(applied).collect()
}
