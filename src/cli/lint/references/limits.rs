//! Checks the concurrency limits of jobs against those that the files set.

use model::pool::limits::{Capacities, DEFAULT_LIMIT, Wants};
use serde_json::Value;

use super::super::nearest::nearest;
use super::super::object::Object;
use super::super::report::{Report, Saying};
use super::super::rules;
use super::add;

/// The field of a job that lists what the job takes.
const FIELD: &str = "spec.concurrencyLimits";

/// Reports each limit that a job takes and nobody sets: such a limit never runs out. If the files set no limit at all, limits are set
/// elsewhere, and nothing is reported; so if CONCURRENCY_LIMIT_DEFAULT bounds all others.
pub fn check(job: &Object<'_>, capacities: &Capacities, report: &mut Report) {
    let known: Vec<String> = capacities.names().collect();
    let items = job.value.pointer("/spec/concurrencyLimits").and_then(Value::as_array);
    if known.is_empty() || capacities.unset() < DEFAULT_LIMIT {
        return;
    }
    for (index, item) in items.into_iter().flatten().enumerate() {
        let wants = Wants::parse(item.as_str().unwrap_or_default());
        for (name, _) in wants.iter().filter(|(name, _)| !capacities.is_set(name)) {
            let field = format!("{FIELD}[{index}]");
            let saying = Saying::new(format!(
                "{field}: nothing among the files sets the limit {name}: it never runs out"
            ));
            let saying = match nearest(name, known.iter().map(String::as_str)) {
                Some(meant) => saying.hint(format!("did you mean {meant}?")),
                None => saying.hint(format!("set: {}", known.join(", "))),
            };
            add(&rules::LIMIT_UNKNOWN, job, &field, saying, report);
        }
    }
}
