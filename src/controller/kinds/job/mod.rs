//! HTCJobs: what is submitted, and what has become of it.

mod held;
mod size;
mod submission;
mod waiting;
mod warnings;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use self::held::held_procs;
use super::conditions::{Says, accepted, condition};
use super::document::{count, size};
use super::{Custom, Names, News, Rendered, Shown, Stage};
use crate::cache::{Kind, ObjectKey};
use crate::convert::kube_time;
use api::{HTCJob, HTCJobStatus, JobPolicy, condition as types};
use model::pool::units::counted;
use model::pool::{Document, Event, Job, JobKey, JobUid, Pool, Problem, Time, Transformed};
use model::schedd::group_problem;
use model::schedd::why::why;

pub(super) use self::submission::{NO_CONTAINERS, NO_SPEC};
pub use self::submission::{facts, owner, submission, template_of};
pub use self::warnings::warnings;

impl Custom for HTCJob {
    type Kept = ();
    const KIND: Kind = Kind { name: "HTCJob", plural: "htcjobs" };
    const STAGE: Stage = Stage::Jobs;
    /// A job may have more than a megabyte.
    const PAGE: u32 = 50;

    fn keep(_: &Self) {}

    fn there(job: Self) -> Vec<News> {
        let Some(facts) = facts(&job) else { return Vec::new() };
        // As it is understood, and not as it was written: fields that pods do not have are not kept.
        let template = template_of(&job).ok().and_then(|template| serde_json::to_string(&template).ok());
        let template = template.map(|text| News::Template(facts.key.uid.clone(), Some(text.into())));
        template.into_iter().chain([Event::Job(facts).into()]).collect()
    }

    fn gone(names: &Names, (): ()) -> Vec<News> {
        let uid = JobUid::from(names.uid.as_str());
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
    ObjectKey { kind: HTCJob::KIND, namespace: Some(job.namespace.clone()), name: job.name.to_string() }
}

fn status(pool: &Pool, cluster: &Job, old: &[Condition], now: Time) -> HTCJobStatus {
    let mut problems = cluster.problems.clone();
    problems.extend(group_problem(pool, cluster));
    let complete = cluster.is_complete() && problems.is_empty() && !cluster.removing;
    let mut conditions = vec![accepted(old, &problems, cluster.generation, now)];
    if problems.is_empty() && !cluster.removing {
        conditions.extend(applied(cluster, old, now));
        conditions.extend(waiting::conditions(cluster, old, now));
        conditions.push(completion(cluster, complete, old, now));
    }
    HTCJobStatus {
        observed_generation: Some(cluster.generation),
        cluster_id: Some(cluster.cluster),
        submitter: cluster.spec.as_ref().map(|spec| spec.submitter.to_string()),
        summary: Some(summary(cluster, complete, &problems).to_owned()),
        why: why(cluster, &problems).map(|why| why.chars().take(4096).collect()),
        idle: size(cluster.idle.len()),
        running: count(cluster.active.len()),
        completed: size(cluster.succeeded.len()),
        failed: size(cluster.failed.len()),
        held: count(cluster.on_hold.len()),
        completed_procs: cluster.succeeded.to_string(),
        failed_procs: cluster.failed.to_string(),
        defaults: cluster.defaults.record(),
        policy: policy(&cluster.transformed),
        held_procs: held_procs(&cluster.on_hold),
        start_time: cluster.first_start.map(kube_time),
        completion_time: cluster.completed_at.filter(|_| complete).map(kube_time),
        conditions,
    }
}

/// The record of what policy made of a job; none if policy changed nothing.
fn policy(transformed: &Transformed) -> Option<JobPolicy> {
    (!transformed.is_empty()).then(|| JobPolicy {
        transforms: transformed.names.clone(),
        attributes: transformed.attributes(),
        removed: transformed.removed().to_vec(),
    })
}

/// `FullyApplied` is False while the job says something in vain. Most jobs do not, and have no such condition.
fn applied(cluster: &Job, old: &[Condition], now: Time) -> Option<Condition> {
    let first = cluster.warnings.first()?;
    let text: Vec<String> = cluster.warnings.iter().map(ToString::to_string).collect();
    let says = Says {
        type_: types::FULLY_APPLIED,
        status: Some(false),
        reason: first.reason,
        message: text.join("; "),
    };
    Some(condition(old, says, cluster.generation, now))
}

fn summary(cluster: &Job, complete: bool, problems: &[Problem]) -> &'static str {
    if cluster.removing {
        "Removing"
    } else if complete && cluster.failed.is_empty() {
        "Completed"
    } else if complete {
        "Failed"
    } else if !cluster.active.is_empty() {
        "Running"
    } else if problems.is_empty() && (cluster.on_hold.is_empty() || !cluster.idle.is_empty()) {
        "Idle"
    } else {
        "Held"
    }
}

fn completion(cluster: &Job, complete: bool, old: &[Condition], now: Time) -> Condition {
    let (reason, message) = match (complete, cluster.failed.len()) {
        (false, _) => ("ProcsLeft", left(cluster)),
        (true, 0) => ("AllSucceeded", "every proc ended with exit code 0".to_owned()),
        (true, failed) => (
            "SomeFailed",
            format!("{} ended with another exit code than 0: {}", counted(failed, "proc"), cluster.failed),
        ),
    };
    condition(
        old,
        Says { type_: types::COMPLETE, status: Some(complete), reason, message },
        cluster.generation,
        now,
    )
}

/// Which procs have not ended.
fn left(cluster: &Job) -> String {
    let active = u64::try_from(cluster.active.len()).unwrap_or(u64::MAX);
    let held = u64::try_from(cluster.on_hold.len()).unwrap_or(u64::MAX);
    let parts = [(cluster.idle.len(), "idle"), (active, "running"), (held, "held")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let text: Vec<String> = parts.map(|(count, state)| format!("{count} {state}")).collect();
    if text.is_empty() { "procs are left".to_owned() } else { format!("procs left: {}", text.join(", ")) }
}
