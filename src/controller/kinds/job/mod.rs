//! HTCJobs: what is submitted, and what has become of it.

mod acts;
mod held;
mod life;
mod requests;
mod size;
mod submission;
mod template;
mod waiting;
mod warnings;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use self::held::held_procs;
use super::conditions::{Says, accepted, condition};
use super::document::{count, size};
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::kube_time;
use crate::creators::CreatorAnnotations;
use crate::render::KeptTemplate;
use api::{HTCJob, HTCJobStatus, JobPolicy, ProcUsage, condition as types};
use model::pool::units::counted;
use model::pool::{Document, Event, Job, JobKey, JobUid, Pool, Problem, Time, Transformed, Usage};
use model::schedd::group_problem;
use model::schedd::why::why;

pub use self::submission::{facts, owner, submission, template_of};
pub(super) use self::template::{NO_CONTAINERS, NO_SPEC};
pub use self::warnings::warnings;

impl Custom for HTCJob {
    type Kept = ();
    const KIND: Kind = Kind::of(&("HTCJob", "htcjobs"));
    const STAGE: Stage = Stage::Jobs;
    /// A job may have more than a megabyte.
    const PAGE: u32 = 50;

    fn keep(_: &Self) {}

    fn there(job: Self, (): &()) -> Vec<News> {
        let Some(facts) = facts(&job) else { return Vec::new() };
        // The template is kept as the operator understands it, and not as its author wrote it: fields that pods do
        // not have are dropped.
        let template = template_of(&job).ok().and_then(|template| KeptTemplate::of(&job, &template));
        let template = template.map(|kept| News::Template(facts.key.uid.clone(), Some(Arc::new(kept))));
        let annotations = CreatorAnnotations::of(&job);
        template.into_iter().chain([News::Job(Box::new(facts), Box::new(annotations))]).collect()
    }

    fn document(job: &Self, (): &()) -> Option<Document> {
        job.uid().map(|uid| Document::Job(uid.into()))
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        let uid = JobUid::from(names.uid.to_string());
        vec![News::Template(uid.clone(), None), Event::JobGone(uid).into()]
    }
}

impl Shown for HTCJob {
    type Subject = JobUid;

    fn subject(document: &Document) -> Option<&JobUid> {
        match document {
            Document::Job(uid) => Some(uid),
            _ => None,
        }
    }

    fn object(pool: &Pool, uid: &JobUid) -> Option<ObjectKey> {
        Some(key(&pool.jobs().get(uid)?.key))
    }

    fn render(pool: &Pool, uid: &JobUid, old: &[Condition], now: Time) -> Rendered {
        let job = pool.jobs().get(uid);
        job.map_or(Rendered::Nothing, |job| Rendered::status(&status(pool, job, old, now)))
    }
}

/// The object of a job.
pub fn key(job: &JobKey) -> ObjectKey {
    ObjectKey { kind: HTCJob::KIND, namespace: Some(job.namespace.clone()), name: (*job.name).into() }
}

fn status(pool: &Pool, job: &Job, old: &[Condition], now: Time) -> HTCJobStatus {
    let mut problems = job.problems.clone();
    problems.extend(group_problem(pool, job));
    let archived = !pool.awaits_history(&job.key.uid);
    let complete = job.is_complete() && !job.removing && archived;
    let [succeeded, failed] = pool.recordable_ends(job);
    let suspended = pool.suspended_procs(job);
    let mut conditions = vec![accepted(old, &problems, job.generation, now)];
    if problems.is_empty() && !job.removing {
        conditions.extend(applied(job, old, now));
        conditions.extend(waiting::conditions(job, old, now));
    }
    if complete || (problems.is_empty() && !job.removing) {
        conditions.push(completion(job, suspended, complete, old, now));
    }
    HTCJobStatus {
        observed_generation: Some(job.generation),
        cluster_id: Some(job.cluster_id),
        submitter: job.submitter.as_ref().map(ToString::to_string),
        summary: Some(summary(job, suspended, complete, &problems).to_owned()),
        why: why(job, &problems, now).map(|why| why.chars().take(4096).collect()),
        idle: size(job.idle.len()),
        running: count(job.running()),
        suspended: (suspended > 0).then(|| count(suspended)),
        completed: size(job.succeeded.len()),
        failed: size(job.failed.len()),
        held: count(job.on_hold.len()),
        removed: size(job.removed.len()),
        completed_procs: succeeded.to_string(),
        failed_procs: failed.to_string(),
        removed_procs: pool.recordable_removals(job).to_string(),
        last_act: last_act(pool, job),
        runs: life::runs(&job.history),
        defaults: job.defaults.record(),
        owner: job.owner.as_deref().map(str::to_owned),
        policy: policy(&job.transformed),
        transformed_procs: life::transformed(job),
        held_procs: held_procs(&pool.recordable_holds(job)),
        start_time: job.first_start.map(kube_time),
        completion_time: job.completed_at.filter(|_| complete).map(kube_time),
        usage: usage(&job.used),
        conditions,
    }
}

/// The most that one proc used; none if no agent has told of a proc.
fn usage(used: &Usage) -> Option<ProcUsage> {
    (*used != Usage::default()).then(|| ProcUsage {
        memory_mib: used.memory_mib,
        resident_kib: used.resident_kib,
        disk_kib: used.disk_kib,
        cpus: used.cpus,
        block_reads: used.block_reads,
        block_writes: used.block_writes,
        block_read_kib: used.block_read_kib,
        block_write_kib: used.block_write_kib,
        metrics: used.metrics.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
    })
}

/// The record of what policy made of a job; none if policy changed nothing.
fn policy(transformed: &Transformed) -> Option<JobPolicy> {
    (!transformed.is_empty()).then(|| JobPolicy {
        transforms: transformed.names.clone(),
        attributes: transformed.attributes(),
        removed: transformed.removed().to_vec(),
    })
}

/// The condition `FullyApplied`: False while a part of the job has no effect. `None` for a job without such parts,
/// which does not have the condition.
fn applied(job: &Job, old: &[Condition], now: Time) -> Option<Condition> {
    let first = job.warnings.first()?;
    let text: Vec<String> = job.warnings.iter().map(ToString::to_string).collect();
    let says = Says {
        type_: types::FULLY_APPLIED,
        status: Some(false),
        reason: first.reason,
        message: text.join("; "),
    };
    Some(condition(old, says, Some(job.generation), now))
}

/// The number of the last act that the status may record; none if there was no act.
fn last_act(pool: &Pool, job: &Job) -> Option<i64> {
    i64::try_from(pool.recordable_act(job)).ok().filter(|act| *act > 0)
}

fn summary(job: &Job, suspended: usize, complete: bool, problems: &[Problem]) -> &'static str {
    let running = job.running();
    if job.removing {
        "Removing"
    } else if complete && !job.failed.is_empty() {
        "Failed"
    } else if complete && job.succeeded.is_empty() && !job.removed.is_empty() {
        "Removed"
    } else if complete {
        "Completed"
    } else if running > 0 && suspended == running {
        "Suspended"
    } else if running > 0 {
        "Running"
    } else if problems.is_empty() && (job.on_hold.is_empty() || !job.idle.is_empty()) {
        "Idle"
    } else {
        "Held"
    }
}

fn completion(job: &Job, suspended: usize, complete: bool, old: &[Condition], now: Time) -> Condition {
    let (reason, message) = match (complete, job.failed.len(), job.removed.len()) {
        (false, ..) => ("ProcsLeft", left(job, suspended)),
        (true, 0, 0) => {
            ("AllSucceeded", "every proc ended with the exit code that counts as success".to_owned())
        }
        (true, 0, removed) => (
            "SomeRemoved",
            format!(
                "{} removed, and every other ended with the exit code that counts as success",
                were(removed)
            ),
        ),
        (true, failed, removed) => {
            let more = if removed == 0 { String::new() } else { format!("; {} removed", were(removed)) };
            let some = counted(failed, "proc");
            (
                "SomeFailed",
                format!(
                    "{some} ended with an exit code that does not count as success: {}{more}",
                    job.failed
                ),
            )
        }
    };
    condition(
        old,
        Says { type_: types::COMPLETE, status: Some(complete), reason, message },
        Some(job.generation),
        now,
    )
}

fn were(procs: u64) -> String {
    format!("{} {}", counted(procs, "proc"), if procs == 1 { "was" } else { "were" })
}

/// Which procs have not ended.
fn left(job: &Job, suspended: usize) -> String {
    let some = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (active, held, suspended) = (some(job.running()), some(job.on_hold.len()), some(suspended));
    let running = active.saturating_sub(suspended);
    let parts = [(job.idle.len(), "idle"), (running, "running"), (suspended, "suspended"), (held, "held")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let text: Vec<String> = parts.map(|(count, state)| format!("{count} {state}")).collect();
    if text.is_empty() { "procs are left".to_owned() } else { format!("procs left: {}", text.join(", ")) }
}
