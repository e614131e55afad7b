//! Why a job's procs do not run, as conditions: `Matchable`, `PodRefused` and `Held`. The model decides and words the reasons.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::super::conditions::{Says, condition};
use api::condition as types;
use model::pool::{Job, Time};
use model::schedd::why::{self, Said};

/// The conditions of a job whose spec is in force: always `Matchable`; `Held` only while procs are held, and
/// `PodRefused` only while the API server refuses the job's pods.
pub(super) fn conditions(job: &Job, old: &[Condition], now: Time) -> Vec<Condition> {
    let said = [
        (types::MATCHABLE, Some(why::matchable(job, now))),
        (types::HELD, why::held(job)),
        (types::POD_REFUSED, why::refused(job)),
    ];
    let shown = |(type_, Said { status, reason, text })| {
        condition(old, Says { type_, status, reason, message: text }, Some(job.generation), now)
    };
    said.into_iter().filter_map(|(type_, said)| Some((type_, said?))).map(shown).collect()
}
