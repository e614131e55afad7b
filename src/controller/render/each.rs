//! A job's pod template with what each proc has of its own: `$(Process)`, and the job's items.

use api::{HTCJob, Items};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use submit::each::{self, Fault, Names};

use model::pool::PodPlan;

/// A template and its items, as the cache keeps them.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    template: Box<RawValue>,
}

/// The text that is kept of a job, of which [`of_proc`] makes the templates of its procs. `template` is the job's, as it is
/// understood. `None`: there is no such text.
pub fn kept(job: &HTCJob, template: &PodTemplateSpec) -> Option<String> {
    let template = serde_json::value::to_raw_value(template).ok()?;
    serde_json::to_string(&Kept { items: job.spec.items.clone(), template }).ok()
}

/// The template of a proc's pod.
pub fn of_proc(kept: &str, plan: &PodPlan) -> Option<PodTemplateSpec> {
    let Kept { items, template } = serde_json::from_str(kept).ok()?;
    let Some(items) = items else { return serde_json::from_str(template.get()).ok() };
    let id = plan.claim.last.job_id();
    let cluster = id.split_once('.').map_or(id.as_str(), |(cluster, _)| cluster);
    let names = Names::of(cluster, usize::try_from(plan.proc.proc).ok()?, borrowed(&items));
    let mut template = serde_json::from_str(template.get()).ok()?;
    names.replace_in(&mut template);
    serde_json::from_value(template).ok()
}

/// What is wrong with a job's items and the references in its template.
pub fn faults(job: &HTCJob, template: &PodTemplateSpec) -> Vec<Fault> {
    told(job, template, |items, template| each::faults(items, job.spec.count, template))
}

/// References in a job's template that may be typos.
pub fn doubts(job: &HTCJob, template: &PodTemplateSpec) -> Vec<Fault> {
    told(job, template, each::doubts)
}

fn told(
    job: &HTCJob,
    template: &PodTemplateSpec,
    ask: impl Fn(each::Items<'_>, &serde_json::Value) -> Vec<Fault>,
) -> Vec<Fault> {
    let Some(items) = &job.spec.items else { return Vec::new() };
    serde_json::to_value(template).map(|template| ask(borrowed(items), &template)).unwrap_or_default()
}

fn borrowed(items: &Items) -> each::Items<'_> {
    let repeat = usize::try_from(items.repeat).unwrap_or(1);
    each::Items { variables: &items.variables, rows: &items.rows, repeat }
}
