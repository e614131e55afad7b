//! Conditions of the standard form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::controller::translate::kube_time;
use crate::pool::{Problem, Time};

/// What a condition says.
pub(super) struct Says<'a> {
    /// Its type.
    pub(super) type_: &'a str,
    /// True or False; Unknown where there is neither.
    pub(super) status: Option<bool>,
    /// Why, in one word.
    pub(super) reason: &'a str,
    /// Why, for people.
    pub(super) message: String,
}

/// Makes a condition. It keeps the time of the old one while its status is the same, so that nothing is written because
/// time passed.
pub(super) fn condition(old: &[Condition], says: Says<'_>, generation: i64, now: Time) -> Condition {
    let status = says.status.map_or("Unknown", |status| if status { "True" } else { "False" });
    let since = old
        .iter()
        .find(|c| c.type_ == says.type_ && c.status == status)
        .map(|c| c.last_transition_time.clone());
    Condition {
        type_: says.type_.to_owned(),
        status: status.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: since.unwrap_or_else(|| kube_time(now)),
        reason: says.reason.to_owned(),
        message: says.message.chars().take(4096).collect(),
    }
}

/// `Accepted`: the spec was understood, or everything that is wrong with it.
pub(super) fn accepted(old: &[Condition], problems: &[Problem], generation: i64, now: Time) -> Condition {
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let says = match problems.first() {
        None => Says {
            type_: crate::api::condition::ACCEPTED,
            status: Some(true),
            reason: "Accepted",
            message: "the spec is in force".to_owned(),
        },
        Some(first) => Says {
            type_: crate::api::condition::ACCEPTED,
            status: Some(false),
            reason: first.reason,
            message: text.join("; "),
        },
    };
    condition(old, says, generation, now)
}
