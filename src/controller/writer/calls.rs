//! Calls to the API server: which failures are retried, and which calls a task makes.

use std::future::Future;
use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::{error::Elapsed, sleep, timeout};

use super::places::LIMIT;
use super::{Context, Reply, Task, backfill, leases, notices, pods, reports, slots};
use crate::cache::{Answer, CachedObject, ObjectKey};
use crate::kinds::job;
use crate::render;
use answers::Item;
use answers::wire;
use api::labels::{FIELD_MANAGER, JOB_FINALIZER, STATUS_MANAGER};
use model::pool::{ClaimPlan, Document, Effect, JobKey, Outcome, Retry};

/// How many times a call is made at most, without those that were answered by 429.
const ATTEMPTS: u32 = 8;
/// For how long a call pauses at most because its answers are 429, Too Many Requests. The API server lives then, and says when to ask
/// again, mostly after a second. A pod that is given up makes its job rest, and so a call is not given up after a few such answers.
const THROTTLED: Duration = Duration::from_secs(30);
/// The pause before the second attempt; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Why a call did not succeed.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// An object of that name exists.
    #[error("already exists")]
    AlreadyExists,
    /// The object is not as it was expected to be.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The API server refuses; asking again changes nothing.
    #[error("{0}")]
    Refused(String),
    /// The API server does not answer, or cannot at present.
    #[error("given up after {attempts} attempts: {why}")]
    GivenUp {
        /// How many times the call was made.
        attempts: u32,
        /// Why the last attempt failed.
        why: String,
    },
}

/// Makes a call once, when there is a place for it.
///
/// # Errors
/// When no answer has come within this limit.
pub async fn once<T>(
    context: &Context,
    limit: Duration,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<Result<T, kube::Error>, Elapsed> {
    let mut place = context.place().await;
    place.begins();
    let answer = timeout(limit, call).await;
    match &answer {
        Ok(Ok(_)) => {}
        Ok(Err(kube::Error::Api(status))) => context.tools.failed.count(Some(status.code)),
        Ok(Err(_)) | Err(_) => context.tools.failed.count(None),
    }
    if let Ok(Err(error)) = &answer {
        if is_throttled(error) {
            context.tools.places.throttled(&context.lane);
        }
        if !is_answer(error) {
            place.failed();
        }
    }
    answer
}

/// Whether an error is the API server's answer to the call, and not that the server was not reached or cannot answer at present.
fn is_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code < 500) && !is_throttled(error)
}

/// Whether the API server, or a webhook, asks for fewer requests.
fn is_throttled(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 429)
}

/// Makes a call, and repeats the call while that may help: [`ATTEMPTS`] times at most, and for [`THROTTLED`] while the answers are 429.
///
/// # Errors
/// A [`Failure`] that says whether the object, the request or the server is the reason.
pub async fn attempt<T, F, Fut>(context: &Context, call: F) -> Result<T, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    attempts(context, call, false).await
}

/// As [`attempt`], for a creation, which is repeated after a conflict too. A creation names no version that could be old:
/// the conflict is about the namespace's ResourceQuota, which another creation has just changed.
///
/// # Errors
/// As [`attempt`].
pub async fn attempt_to_create<T, F, Fut>(context: &Context, call: F) -> Result<T, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    attempts(context, call, true).await
}

async fn attempts<T, F, Fut>(context: &Context, call: F, through_conflicts: bool) -> Result<T, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    let mut pause = FIRST_PAUSE;
    let mut limit = context.tools.places.limit(&context.lane);
    let (mut attempts, mut failed, mut throttled) = (0, 0, Duration::ZERO);
    loop {
        attempts += 1;
        let (why, asked) = match once(context, limit, call()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(kube::Error::Api(status))) => match status.code {
                404 => return Err(Failure::NotFound),
                409 if status.is_already_exists() => return Err(Failure::AlreadyExists),
                409 if !through_conflicts => return Err(Failure::Conflict(status.message.clone())),
                429 => (status.message.clone(), Some(pause_asked_for(&status))),
                409 | 500.. => (status.message.clone(), None),
                _ => return Err(Failure::Refused(status.message.clone())),
            },
            Ok(Err(error)) => (error.to_string(), None),
            Err(_) => {
                let why = format!("no answer within {limit:?}");
                // Now the one limit and now the other: either a webhook hangs, or a connection is dead.
                limit = if limit == LIMIT { context.tools.places.limit(&context.lane) } else { LIMIT };
                (why, None)
            }
        };
        // There is a pause after the last attempt too: an attempt that takes effect late has done so before the failure
        // is told.
        if let Some(asked) = asked {
            throttled += asked;
            sleep(asked).await;
        } else {
            failed += 1;
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        if failed >= ATTEMPTS || throttled >= THROTTLED {
            return Err(Failure::GivenUp { attempts, why });
        }
    }
}

/// For how long the API server asks not to repeat a call that it had too many requests for. Its priority and fairness ask
/// for a second, in a header that the client does not hand on.
fn pause_asked_for(status: &kube::core::Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds).clamp(1, 10))
}

/// Makes the calls of a task, and returns what came of them.
pub(super) async fn perform(context: &Context, task: Task) -> Vec<Reply> {
    match task {
        Task::Effect(effect, template) => match effect {
            Effect::WriteSlot(plan) => {
                let ClaimPlan { slot, resources, claim, again } = *plan;
                slots::write(context, slot, &resources, claim, again).await
            }
            Effect::DeleteSlot { slot, claim: Some(claim), before } if slot.dynamic.is_none() => {
                slots::clear(context, slot, claim, &before).await
            }
            Effect::DeleteSlot { slot, claim, .. } => slots::delete(context, slot, claim).await,
            Effect::CreatePod(plan) => pods::create(context, *plan, template).await,
            Effect::DeletePod { pod, slot, grace, granted, off, why } => {
                let deletion = pods::Deletion { grace, granted, off };
                pods::evict(context, pod, slot, &deletion, why).await
            }
            Effect::Suspend { pod, slot, suspended } => {
                pods::ask_agent(context, pod, slot, render::suspend(suspended)).await
            }
            Effect::KillByAgent { pod, slot } => pods::ask_agent(context, pod, slot, render::kill()).await,
            Effect::CreateBackfill(plan) => backfill::create(context, &plan).await,
            Effect::LookForBackfill { slot, namespace } => backfill::look(context, slot, &namespace).await,
            Effect::DeleteBackfill { pod, machine, grace, off } => {
                backfill::delete(context, pod, machine, (grace, off)).await
            }
            Effect::Benchmark { machine, asked, so_far } => {
                reports::benchmark(context, &machine, asked, so_far).await
            }
            Effect::Cron { machine, tab } => reports::cron(context, &machine, &tab).await,
            Effect::LookAtPod { pod, slot } => pods::look(context, pod, slot).await,
            Effect::ReadAgentLease { machine } => leases::read(context, machine).await,
            Effect::UntrackPod { pod, delete } => pods::untrack(context, pod, delete).await,
            Effect::AddJobFinalizer(job) => finalize(context, job, true).await,
            Effect::RemoveJobFinalizer(job) => finalize(context, job, false).await,
            Effect::Tell(notice) => notices::tell(context, notice).await,
        },
        Task::Status { document, object, uid, version, patch } => {
            write_status(context, document, (object, uid), &version, &patch).await
        }
        Task::Unread(object) => notices::unread(context, *object).await,
        Task::Create { document, object, body } => create(context, document, object, &body).await,
        Task::Delete { document, object, uid, version } => {
            delete(context, document, (object, uid), version).await
        }
    }
}

/// The API of an object's kind, in its namespace.
pub(super) fn api(context: &Context, key: &ObjectKey) -> Api<Item<Answer>> {
    let resource = key.kind.resource();
    match &key.namespace {
        Some(namespace) => Api::namespaced_with(context.tools.client.clone(), namespace, &resource),
        None => Api::all_with(context.tools.client.clone(), &resource),
    }
}

/// Parameters of a patch by the operator.
pub(super) fn patch_params(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

pub(super) fn post_params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

pub(super) fn of_uid(uid: &str) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::background()
    }
}

async fn write_status(
    context: &Context,
    document: Document,
    (key, uid): (ObjectKey, String),
    version: &str,
    patch: &Value,
) -> Vec<Reply> {
    let api = api(context, &key);
    let body = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "status": patch}));
    let params = patch_params(STATUS_MANAGER);
    match attempt(context, || api.patch_status(&key.name, &params, &body)).await {
        Ok(object) => vec![Reply::Seen(key, CachedObject::of(object))],
        // A watch may never tell of this: a watch that begins anew does not show objects that were made and deleted
        // meanwhile.
        Err(Failure::NotFound) => {
            let missing = match &document {
                Document::Slot(slot) => Some(Reply::Outcome(Outcome::SlotMissing(slot.clone()))),
                _ => None,
            };
            [Reply::Forgotten(key, uid), Reply::Stale(document)].into_iter().chain(missing).collect()
        }
        // Another writer changed the object. The watch will show the change; this read does, if the watch is slow.
        Err(Failure::Conflict(_)) => {
            let mut replies = refresh(context, &api, &key).await;
            replies.push(Reply::Stale(document));
            replies
        }
        Err(failure) => {
            tracing::warn!(kind = key.kind.name(), object = key.name, error = %failure, "a status was not written");
            vec![Reply::Failing(document)]
        }
    }
}

async fn refresh(context: &Context, api: &Api<Item<Answer>>, key: &ObjectKey) -> Vec<Reply> {
    match attempt(context, || api.get(&key.name)).await {
        Ok(object) => vec![Reply::Seen(key.clone(), CachedObject::of(object))],
        Err(_) => Vec::new(),
    }
}

async fn create(context: &Context, document: Document, key: ObjectKey, body: &Value) -> Vec<Reply> {
    let api = api(context, &key);
    let params = post_params();
    match attempt(context, || wire::make(&api, &params, body)).await {
        Ok(made) => vec![Reply::Seen(key, CachedObject::of(made)), Reply::Stale(document)],
        Err(Failure::AlreadyExists) => {
            let mut replies = refresh(context, &api, &key).await;
            replies.push(Reply::Stale(document));
            replies
        }
        Err(failure) => {
            tracing::warn!(kind = key.kind.name(), object = key.name, error = %failure, "an object of the operator's own was not made");
            vec![Reply::Failing(document)]
        }
    }
}

/// Deletes an object of the operator's own, unless somebody has changed the object since: perhaps the object is needed now.
async fn delete(
    context: &Context,
    document: Document,
    (key, uid): (ObjectKey, String),
    version: String,
) -> Vec<Reply> {
    let api = api(context, &key);
    let of_uid = of_uid(&uid);
    let preconditions =
        of_uid.preconditions.map(|of| Preconditions { resource_version: Some(version), ..of });
    let params = DeleteParams { preconditions, ..of_uid };
    match attempt(context, || wire::remove(&api, &key.name, &params)).await {
        Ok(_) | Err(Failure::NotFound) => vec![Reply::Forgotten(key, uid)],
        // Somebody changed the object, or deleted the object and made another under its name.
        Err(Failure::Conflict(_)) => {
            let shown = refresh(context, &api, &key).await;
            [Reply::Forgotten(key, uid)].into_iter().chain(shown).chain([Reply::Stale(document)]).collect()
        }
        Err(failure) => {
            tracing::warn!(kind = key.kind.name(), object = key.name, error = %failure, "an object of the operator's own was not deleted");
            vec![Reply::Failing(document)]
        }
    }
}

/// Puts the finalizer on a job, or takes the finalizer off. A job made later under the same name is left alone.
async fn finalize(context: &Context, job: JobKey, add: bool) -> Vec<Reply> {
    let key = job::key(&job);
    let api = api(context, &key);
    for _ in 0..5 {
        let found = match attempt(context, || api.get(&key.name)).await {
            Ok(found) if found.metadata().uid.as_deref() == Some(job.uid.as_str()) => found,
            Ok(_) | Err(Failure::NotFound) => return Vec::new(),
            Err(_) => break,
        };
        let deleting = found.metadata().deletion_timestamp.is_some();
        let mut finalizers = found.metadata().finalizers.clone().unwrap_or_default();
        let known = CachedObject::of(found);
        let before = finalizers.len();
        finalizers.retain(|finalizer| finalizer != JOB_FINALIZER);
        if add && finalizers.len() < before {
            // An earlier attempt took effect, and its answer was lost. If the job has been deleted since, this finalizer
            // keeps the job until its pods have ended.
            let outcome = Outcome::JobFinalizerSet(job.uid);
            return vec![Reply::Seen(key, known), Reply::Outcome(outcome)];
        }
        if add && deleting {
            return Vec::new();
        }
        if add {
            finalizers.push(JOB_FINALIZER.to_owned());
        }
        let version = known.version.to_string();
        let body = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}}));
        let params = patch_params(FIELD_MANAGER);
        match attempt(context, || api.patch(&key.name, &params, &body)).await {
            Ok(object) if add => {
                let outcome = Outcome::JobFinalizerSet(job.uid);
                return vec![Reply::Seen(key, CachedObject::of(object)), Reply::Outcome(outcome)];
            }
            Ok(_) | Err(Failure::NotFound) => return Vec::new(),
            Err(Failure::Conflict(_)) => {}
            Err(failure) => {
                tracing::warn!(job = %job.name, error = %failure, "the job's finalizer was not written");
                break;
            }
        }
    }
    vec![Reply::Outcome(Outcome::Failed(Retry::Job(job.uid)))]
}
