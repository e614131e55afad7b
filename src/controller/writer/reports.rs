//! NodeReports: agents write them, and the operator writes its requests into their specs.

use kube::api::Patch;
use serde_json::{Value, json};

use super::calls::{Failure, api, attempt, patch_params};
use super::{Context, Reply};
use crate::cache::{CachedObject, ObjectKey};
use crate::convert::kube_time;
use crate::kinds::{Custom, crontab};
use api::NodeReport;
use api::labels::FIELD_MANAGER;
use model::pool::{Benchmarks, Crontab, MachineName, Time};

/// The key of a machine's report.
pub(super) fn key(machine: &MachineName) -> ObjectKey {
    NodeReport::KIND.object(machine.to_string())
}

/// Asks the agent of a machine for a benchmark run. Where there is no report, there is no agent to ask. A failure is only
/// logged, as nothing waits for the run: the machine's policy asks again.
pub(super) async fn benchmark(
    context: &Context,
    machine: &MachineName,
    asked: Time,
    so_far: Option<Benchmarks>,
) -> Vec<Reply> {
    // The averages so far are written beside the request, because the answer will replace them in the status.
    let spec = json!({
        "benchmark": kube_time(asked),
        "mipsSoFar": so_far.map(|so_far| so_far.mips),
        "kflopsSoFar": so_far.map(|so_far| so_far.kflops),
    });
    request(context, machine, spec, "benchmarks").await
}

/// Asks the agent of a machine to run these cron jobs, and no others. A failure is only logged: as long as the report shows other
/// jobs, the agent is asked again.
pub(super) async fn cron(context: &Context, machine: &MachineName, tab: &Crontab) -> Vec<Reply> {
    // A merge patch replaces the list of jobs as a whole. It leaves what it does not name as it was: the spec of the jobs names all
    // its other fields.
    let wanted = (!tab.jobs.is_empty()).then(|| crontab::to_spec(tab));
    request(context, machine, json!({"cron": wanted}), "cron jobs").await
}

/// Writes a request into the spec of a machine's report. Where there is no report, there is no agent to ask.
async fn request(context: &Context, machine: &MachineName, spec: Value, what: &str) -> Vec<Reply> {
    let key = key(machine);
    let api = api(context, &key);
    let (params, patch) = (patch_params(FIELD_MANAGER), Patch::Merge(json!({"spec": spec})));
    match attempt(context, || api.patch(&key.name, &params, &patch)).await {
        Ok(object) => vec![Reply::Seen(key, CachedObject::of(object))],
        Err(Failure::NotFound) => Vec::new(),
        Err(failure) => {
            tracing::warn!(node = %machine, error = %failure, "an agent was not asked for {what}");
            Vec::new()
        }
    }
}
