//! A job's pod template with what each proc has of its own: `$(Process)`, and the job's items.

use api::{HTCJob, Items};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use submit::each::{self, Fault, Names};

/// A job's template and items, kept as texts, which take a fraction of the memory that the decoded types take. There
/// may be a hundred thousand rows of items, and the pod of a proc needs one row.
#[derive(Debug)]
pub struct KeptTemplate {
    template: Box<str>,
    items: Option<KeptItems>,
}

#[derive(Debug)]
struct KeptItems {
    variables: Vec<String>,
    rows: Vec<Box<str>>,
    repeat: usize,
}

impl KeptTemplate {
    /// Keeps the template and the items of a job. `template` is the job's template after decoding, without fields that
    /// pods do not have. Returns `None` if the template or a row of items cannot be written as JSON.
    pub fn of(job: &HTCJob, template: &PodTemplateSpec) -> Option<Self> {
        let items = match &job.spec.items {
            None => None,
            Some(items) => {
                let rows: Result<_, _> = items
                    .rows
                    .iter()
                    .map(|row| serde_json::to_string(row).map(String::into_boxed_str))
                    .collect();
                Some(KeptItems {
                    variables: items.variables.clone(),
                    rows: rows.ok()?,
                    repeat: repeat(items),
                })
            }
        };
        Some(Self { template: serde_json::to_string(template).ok()?.into(), items })
    }

    /// The template of a proc's pod, with the proc's own values in it.
    pub fn of_proc(&self, cluster_id: i64, proc: u32) -> Option<PodTemplateSpec> {
        let Some(items) = &self.items else { return serde_json::from_str(&self.template).ok() };
        let proc = usize::try_from(proc).ok()?;
        let row = items.rows.get(each::row_of(proc, items.repeat));
        let values: Vec<String> = row.map_or(Ok(Vec::new()), |row| serde_json::from_str(row)).ok()?;
        let cluster = cluster_id.to_string();
        let mut template = serde_json::from_str(&self.template).ok()?;
        Names::of(&cluster, proc, items.repeat, &items.variables, &values).replace_in(&mut template);
        serde_json::from_value(template).ok()
    }
}

/// The mistakes in a job's items and in the references of its template.
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

/// A job's items, as the room that replaces references takes them.
pub fn borrowed(items: &Items) -> each::Items<'_> {
    each::Items { variables: &items.variables, rows: &items.rows, repeat: repeat(items) }
}

/// How many procs each row has.
fn repeat(items: &Items) -> usize {
    usize::try_from(items.repeat).unwrap_or(1)
}
