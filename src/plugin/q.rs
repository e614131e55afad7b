//! `kubectl slotwright q`: shows jobs, like `condor_q`.

use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;

use super::Error;
use super::status::served;
use super::text::{minute, shortened};
use api::condition::FULLY_APPLIED;
use api::{HTCJob, HTCJobStatus, Slot, SlotActivity, SlotState};
use model::pool::units::counted;
use table::{Align, Table, printable};

/// The fewest characters that a shortened reason keeps, however narrow the terminal is.
const SHORTEST_REASON: usize = 20;

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
    /// Procs that are held, and those of a spec that is not accepted.
    pub held: i64,
    /// Procs that ended with the exit code that counts as success.
    pub completed: i64,
    /// Procs that ended with an exit code that does not.
    pub failed: i64,
    /// Procs that were removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: i64,
    /// All procs: idle, running, held, completed, failed and removed ones.
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// Details of a job, which are shown only if the user names the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names, reason = "they are the keys of the JSON")]
pub struct Details {
    /// Which procs ended with the exit code that counts as success, as ranges.
    pub completed_procs: String,
    /// Which procs ended with an exit code that does not, as ranges.
    pub failed_procs: String,
    /// Which procs were removed, as ranges.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub removed_procs: String,
    /// Procs that have a claim, by number; `None` if the slots could not be read.
    pub running_procs: Option<Vec<ProcLine>>,
    /// How many procs run that no Slot shows, since they began a few seconds ago; 0 if one proc is asked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub young_procs: i64,
    /// The message of the condition FullyApplied, while that is False: a part of the spec may be mistaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_fully_applied: Option<String>,
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
    let ended = [status.completed, status.failed, status.removed];
    let counted = [status.idle, status.running, status.held].into_iter().chain(ended);
    let counted = counted.fold(0_i64, i64::saturating_add);
    // Procs that no count has yet: the operator has not seen them, or does not accept the spec that asks for them.
    let missing = job.spec.count.saturating_sub(counted).max(0);
    let seen = status.observed_generation.is_some() && job.metadata.generation <= status.observed_generation;
    let (waiting, held) = if seen { (0, missing) } else { (missing, 0) };
    JobLine {
        cluster_id: status.cluster_id,
        namespace: job.metadata.namespace.clone().unwrap_or_default(),
        name: job.metadata.name.clone().unwrap_or_default(),
        submitter: status.submitter.clone(),
        submitted: job.metadata.creation_timestamp.clone(),
        idle: status.idle.saturating_add(waiting),
        running: status.running,
        held: status.held.saturating_add(held),
        completed: status.completed,
        failed: status.failed,
        removed: status.removed,
        total: counted.saturating_add(missing),
        priority: job.spec.priority,
        status: status.summary.clone(),
        why: why(job, &status),
        details: None,
    }
}

/// Why procs wait or are held, as the operator says.
fn why(job: &HTCJob, status: &HTCJobStatus) -> Option<String> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if job.metadata.generation > status.observed_generation {
        return Some("the operator has not looked at the spec yet".to_owned());
    }
    status.why.clone()
}

/// The jobs that `wanted` means: those of this name, or else the job with this ClusterId. `12.3` means proc 3 of job
/// 12; the second value is then the proc's number.
pub fn select<'a>(jobs: &'a [HTCJob], wanted: &str) -> (Vec<&'a HTCJob>, Option<i64>) {
    let named: Vec<&HTCJob> =
        jobs.iter().filter(|job| job.metadata.name.as_deref() == Some(wanted)).collect();
    if !named.is_empty() {
        return (named, None);
    }
    let Some((cluster, proc)) = tools::job_id(wanted) else { return (Vec::new(), None) };
    let id = |job: &&HTCJob| job.status.as_ref().and_then(|status| status.cluster_id) == Some(cluster);
    (jobs.iter().filter(id).collect(), proc)
}

/// Checks that the job has a proc of this number.
///
/// # Errors
/// When the job has no such proc.
pub fn check_proc(job: &HTCJob, proc: i64) -> Result<(), Error> {
    let line = line(job);
    if (0..line.total).contains(&proc) {
        return Ok(());
    }
    let (cluster, job) = (line.cluster_id.unwrap_or_default(), format!("{}/{}", line.namespace, line.name));
    Err(Error::NoSuchProc { cluster, job, proc, last: line.total.saturating_sub(1) })
}

/// The line of one job, with its details. `slots` are all slots of the pool, or `None` if they could not be read.
/// With `proc`, the details list only that proc.
pub fn detailed(job: &HTCJob, slots: Option<&[Slot]>, proc: Option<i64>) -> JobLine {
    let status = job.status.clone().unwrap_or_default();
    let running_procs = slots.map(|slots| procs(job, slots, proc));
    let young = |shown: &Vec<ProcLine>| {
        let shown = i64::try_from(shown.len()).unwrap_or(i64::MAX);
        if proc.is_none() { status.running.saturating_sub(shown).max(0) } else { 0 }
    };
    let not_applied =
        |condition: &&Condition| condition.type_ == FULLY_APPLIED && condition.status == "False";
    let details = Details {
        not_fully_applied: status
            .conditions
            .iter()
            .find(not_applied)
            .map(|condition| condition.message.clone()),
        completed_procs: status.completed_procs,
        failed_procs: status.failed_procs,
        removed_procs: status.removed_procs,
        young_procs: running_procs.as_ref().map_or(0, young),
        running_procs,
    };
    JobLine { details: Some(details), ..line(job) }
}

fn procs(job: &HTCJob, slots: &[Slot], proc: Option<i64>) -> Vec<ProcLine> {
    let of_job = |slot: &Slot| {
        let claim = slot.spec.claim.as_ref()?;
        // Jobs are compared by uid, because a deleted job of the same name may still have claims.
        (job.metadata.uid.as_deref() == Some(&claim.job.uid)).then_some(())?;
        let (status, served) = (slot.status.as_ref(), served(slot)?);
        Some(ProcLine {
            job_id: served.job_id.to_owned(),
            proc: served.proc,
            slot: slot.spec.name.clone(),
            node: slot.spec.node.clone(),
            state: status.and_then(|status| status.state),
            activity: status.and_then(|status| status.activity),
            claimed_at: claim.claimed_at.clone(),
            pod: served.pod.to_owned(),
        })
    };
    let mut procs: Vec<ProcLine> = slots.iter().filter_map(of_job).collect();
    procs.retain(|line| proc.is_none_or(|proc| line.proc == proc));
    procs.sort_by(|a, b| (a.proc, &a.slot).cmp(&(b.proc, &b.slot)));
    procs
}

/// The lines as a table for people, and the details of lines that have them. Reasons are cut so that lines fit into `width`
/// characters, if it is given.
pub fn render(lines: &[JobLine], with_namespace: bool, width: Option<usize>) -> String {
    let whole = job_table(lines, with_namespace, None);
    let table = match width {
        None => whole,
        Some(width) => {
            let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let others = longest(&job_table(lines, with_namespace, Some(0)).to_string());
            // Without reasons, the last column is as wide as its title.
            let room = (width + "WHY".len()).saturating_sub(others).max(SHORTEST_REASON);
            job_table(lines, with_namespace, Some(room))
        }
    };
    let mut text = table.to_string();
    let _ = writeln!(text, "\n{}", summary(lines));
    for line in lines {
        if let Some(details) = &line.details {
            text.push_str(&render_details(line, details));
        }
    }
    text
}

fn job_table(lines: &[JobLine], with_namespace: bool, longest: Option<usize>) -> Table {
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
            ("HELD", Align::Right),
            ("TOTAL", Align::Right),
            ("PRIO", Align::Right),
            ("STATUS", Align::Left),
            ("WHY", Align::Left),
        ])
        .collect();
    let mut table = Table::new(&columns);
    for line in lines {
        let why = line.why.as_deref().unwrap_or_default();
        let why = longest.map_or_else(|| why.to_owned(), |longest| shortened(why, longest));
        let cells = [
            line.name.clone(),
            line.submitter.clone().unwrap_or_default(),
            line.submitted.as_ref().map(minute).unwrap_or_default(),
            line.completed.to_string(),
            line.failed.to_string(),
            line.running.to_string(),
            line.idle.to_string(),
            line.held.to_string(),
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
    let removed = match sum(|line| line.removed) {
        0 => String::new(),
        removed => format!(", {removed} removed"),
    };
    format!(
        "Total for query: {}; {}: {} completed, {} failed, {} running, {} idle, {} held{removed}",
        counted(u64::try_from(lines.len()).unwrap_or(u64::MAX), "job"),
        counted(u64::try_from(sum(|line| line.total)).unwrap_or(0), "proc"),
        sum(|line| line.completed),
        sum(|line| line.failed),
        sum(|line| line.running),
        sum(|line| line.idle),
        sum(|line| line.held),
    )
}

fn render_details(line: &JobLine, details: &Details) -> String {
    let mut text = format!("\n{}/{}\n", line.namespace, line.name);
    for (title, ranges) in [
        ("Completed procs", &details.completed_procs),
        ("Failed procs", &details.failed_procs),
        ("Removed procs", &details.removed_procs),
    ] {
        if !ranges.is_empty() {
            let _ = writeln!(text, "{title}: {}", printable(ranges));
        }
    }
    if let Some(message) = &details.not_fully_applied {
        let _ = writeln!(text, "FullyApplied is False: {}", printable(message));
    }
    match details.running_procs.as_deref() {
        None => text.push_str("Running procs: not known\n"),
        Some([]) if details.young_procs == 0 => text.push_str("Running procs: none\n"),
        Some([]) => text.push_str("Running procs:\n"),
        Some(procs) => {
            let _ = write!(text, "Running procs:\n{}", proc_table(procs));
        }
    }
    // A claim of a plain kind gets its Slot once its proc has lasted.
    if details.young_procs > 0 {
        let procs = counted(u64::try_from(details.young_procs).unwrap_or(0), "proc");
        let _ = writeln!(text, "  {procs} began less than about 5 s ago: no Slot shows that yet");
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

#[cfg(test)]
#[path = "reasons_tests.rs"]
mod reasons;
