//! `kubectl slotwright q`: shows jobs, like `condor_q`.

use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use super::text::{minute, shortened};
use api::{HTCJob, HTCJobStatus, Slot, SlotActivity, SlotState, condition};
use table::{Align, Table, printable};

/// The longest reason in a list, in characters.
const LONGEST_REASON: usize = 80;

/// A line of the answer: one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobLine {
    /// HTCondor's ClusterId; `None` until the operator has seen the job.
    pub cluster_id: Option<i64>,
    /// The HTCJob's namespace.
    pub namespace: String,
    /// The HTCJob's name.
    pub name: String,
    /// The submitter who is charged.
    pub submitter: Option<String>,
    /// When the job was submitted.
    pub submitted: Option<Time>,
    /// Procs that wait.
    pub idle: i64,
    /// Procs that have a claim.
    pub running: i64,
    /// Procs that ended with exit code 0.
    pub completed: i64,
    /// Procs that ended with another exit code.
    pub failed: i64,
    /// All procs.
    pub total: i64,
    /// `JobPrio`.
    pub priority: i32,
    /// The job's state in one word.
    pub status: Option<String>,
    /// Why procs wait, if some do.
    pub why: Option<String>,
    /// More about the job, if the user asked for this job.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// What is shown only of a job that the user asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "they are the keys of the JSON")]
pub struct Details {
    /// Which procs ended with exit code 0, as ranges.
    pub completed_procs: String,
    /// Which procs ended with another exit code, as ranges.
    pub failed_procs: String,
    /// Procs that have a claim, by number; `None` if the slots could not be read.
    pub running_procs: Option<Vec<ProcLine>>,
}

/// A proc that has a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcLine {
    /// ClusterId.ProcId.
    pub job_id: String,
    /// The proc's number.
    pub proc: i64,
    /// The slot, as HTCondor names it.
    pub slot: String,
    /// The node.
    pub node: String,
    /// The slot's state.
    pub state: Option<SlotState>,
    /// The slot's activity.
    pub activity: Option<SlotActivity>,
    /// When the slot was claimed.
    pub claimed_at: Option<Time>,
    /// The pod, in the job's namespace.
    pub pod: String,
}

/// A line for each job, in the order of ClusterId; jobs that have none yet come last.
pub fn lines<'a>(jobs: impl IntoIterator<Item = &'a HTCJob>) -> Vec<JobLine> {
    let mut lines: Vec<JobLine> = jobs.into_iter().map(line).collect();
    lines.sort_by(|a, b| {
        let key = |line: &JobLine| (line.cluster_id.is_none(), line.cluster_id);
        key(a).cmp(&key(b)).then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
    });
    lines
}

fn line(job: &HTCJob) -> JobLine {
    let status = job.status.clone().unwrap_or_default();
    JobLine {
        cluster_id: status.cluster_id,
        namespace: job.metadata.namespace.clone().unwrap_or_default(),
        name: job.metadata.name.clone().unwrap_or_default(),
        submitter: status.submitter.clone(),
        submitted: job.metadata.creation_timestamp.clone(),
        idle: status.idle,
        running: status.running,
        completed: status.completed,
        failed: status.failed,
        total: job.spec.count,
        priority: job.spec.priority,
        status: status.summary.clone(),
        why: why(job, &status),
        details: None,
    }
}

/// Why procs wait: what is wrong with the job's spec, or what the last negotiation cycle found.
fn why(job: &HTCJob, status: &HTCJobStatus) -> Option<String> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if job.metadata.generation > status.observed_generation {
        return Some("the operator has not looked at the spec yet".to_owned());
    }
    let find = |wanted: &str| status.conditions.iter().find(|condition| condition.type_ == wanted);
    let refused = find(condition::ACCEPTED).filter(|accepted| accepted.status == "False");
    let reason = refused
        .or_else(|| find(condition::POD_REFUSED).filter(|_| status.idle > 0))
        .or_else(|| find(condition::MATCHABLE).filter(|_| status.idle > 0))?;
    Some(reason.message.clone())
}

/// The jobs that `wanted` means: those of this name, or else the job with this ClusterId. `12.3` means proc 3 of job
/// 12; the second value is then the proc's number.
pub fn select<'a>(jobs: &'a [HTCJob], wanted: &str) -> (Vec<&'a HTCJob>, Option<i64>) {
    let named: Vec<&HTCJob> =
        jobs.iter().filter(|job| job.metadata.name.as_deref() == Some(wanted)).collect();
    if !named.is_empty() {
        return (named, None);
    }
    let (cluster, proc) = match wanted.split_once('.') {
        Some((cluster, proc)) => (cluster, proc.parse::<i64>().map(Some)),
        None => (wanted, Ok(None)),
    };
    let (Ok(cluster), Ok(proc)) = (cluster.parse::<i64>(), proc) else { return (Vec::new(), None) };
    let id = |job: &&HTCJob| job.status.as_ref().and_then(|status| status.cluster_id) == Some(cluster);
    (jobs.iter().filter(id).collect(), proc)
}

/// The line of one job, with its details. `slots` are all slots of the pool, or `None` if they could not be read.
/// With `proc`, the details list only that proc.
pub fn detailed(job: &HTCJob, slots: Option<&[Slot]>, proc: Option<i64>) -> JobLine {
    let status = job.status.clone().unwrap_or_default();
    let details = Details {
        completed_procs: status.completed_procs,
        failed_procs: status.failed_procs,
        running_procs: slots.map(|slots| procs(job, slots, proc)),
    };
    JobLine { details: Some(details), ..line(job) }
}

fn procs(job: &HTCJob, slots: &[Slot], proc: Option<i64>) -> Vec<ProcLine> {
    let of_job = |slot: &Slot| {
        let claim = slot.spec.claim.as_ref()?;
        // Jobs are compared by uid, because a deleted job of the same name may still have claims.
        (job.metadata.uid.as_deref() == Some(&claim.job.uid)).then_some(())?;
        let status = slot.status.as_ref();
        Some(ProcLine {
            job_id: claim.job_id.clone(),
            proc: claim.proc,
            slot: slot.spec.name.clone(),
            node: slot.spec.node.clone(),
            state: status.and_then(|status| status.state),
            activity: status.and_then(|status| status.activity),
            claimed_at: claim.claimed_at.clone(),
            pod: claim.pod.clone(),
        })
    };
    let mut procs: Vec<ProcLine> = slots.iter().filter_map(of_job).collect();
    procs.retain(|line| proc.is_none_or(|proc| line.proc == proc));
    procs.sort_by(|a, b| (a.proc, &a.slot).cmp(&(b.proc, &b.slot)));
    procs
}

/// The lines as a table for people, and the details of lines that have them. Reasons are shortened unless `wide`.
pub fn render(lines: &[JobLine], with_namespace: bool, wide: bool) -> String {
    let mut text = job_table(lines, with_namespace, wide).to_string();
    let _ = writeln!(text, "\n{}", summary(lines));
    for line in lines {
        if let Some(details) = &line.details {
            text.push_str(&render_details(line, details));
        }
    }
    text
}

fn job_table(lines: &[JobLine], with_namespace: bool, wide: bool) -> Table {
    let namespace = with_namespace.then_some(("NAMESPACE", Align::Left));
    let columns: Vec<_> = [("ID", Align::Right)]
        .into_iter()
        .chain(namespace)
        .chain([
            ("NAME", Align::Left),
            ("SUBMITTER", Align::Left),
            ("SUBMITTED", Align::Left),
            ("DONE", Align::Right),
            ("FAILED", Align::Right),
            ("RUN", Align::Right),
            ("IDLE", Align::Right),
            ("TOTAL", Align::Right),
            ("PRIO", Align::Right),
            ("STATUS", Align::Left),
            ("WHY", Align::Left),
        ])
        .collect();
    let mut table = Table::new(&columns);
    for line in lines {
        let why = line.why.as_deref().unwrap_or_default();
        let why = if wide { why.to_owned() } else { shortened(why, LONGEST_REASON) };
        let cells = [
            line.name.clone(),
            line.submitter.clone().unwrap_or_default(),
            line.submitted.as_ref().map(minute).unwrap_or_default(),
            line.completed.to_string(),
            line.failed.to_string(),
            line.running.to_string(),
            line.idle.to_string(),
            line.total.to_string(),
            line.priority.to_string(),
            line.status.clone().unwrap_or_default(),
            why,
        ];
        let id = line.cluster_id.map(|id| id.to_string()).unwrap_or_default();
        table.row([id].into_iter().chain(with_namespace.then(|| line.namespace.clone())).chain(cells));
    }
    table
}

fn summary(lines: &[JobLine]) -> String {
    let sum = |of: fn(&JobLine) -> i64| lines.iter().map(of).fold(0_i64, i64::saturating_add);
    let held = lines.iter().filter(|line| line.status.as_deref() == Some("Held")).count();
    format!(
        "Total for query: {} jobs, {held} held; procs: {} completed, {} failed, {} running, {} idle",
        lines.len(),
        sum(|line| line.completed),
        sum(|line| line.failed),
        sum(|line| line.running),
        sum(|line| line.idle),
    )
}

fn render_details(line: &JobLine, details: &Details) -> String {
    let mut text = format!("\n{}/{}\n", line.namespace, line.name);
    for (title, ranges) in
        [("Completed procs", &details.completed_procs), ("Failed procs", &details.failed_procs)]
    {
        if !ranges.is_empty() {
            let _ = writeln!(text, "{title}: {}", printable(ranges));
        }
    }
    match details.running_procs.as_deref() {
        None => text.push_str("Running procs: not known\n"),
        Some([]) => text.push_str("Running procs: none\n"),
        Some(procs) => {
            let _ = write!(text, "Running procs:\n{}", proc_table(procs));
        }
    }
    text
}

fn proc_table(procs: &[ProcLine]) -> Table {
    let mut table = Table::new(&[
        ("ID", Align::Right),
        ("SLOT", Align::Left),
        ("NODE", Align::Left),
        ("STATE", Align::Left),
        ("ACTIVITY", Align::Left),
        ("CLAIMED", Align::Left),
        ("POD", Align::Left),
    ]);
    for line in procs {
        table.row([
            line.job_id.clone(),
            line.slot.clone(),
            line.node.clone(),
            line.state.map(|state| format!("{state:?}")).unwrap_or_default(),
            line.activity.map(|activity| format!("{activity:?}")).unwrap_or_default(),
            line.claimed_at.as_ref().map(minute).unwrap_or_default(),
            line.pod.clone(),
        ]);
    }
    table
}

#[cfg(test)]
#[path = "q_tests.rs"]
mod tests;
