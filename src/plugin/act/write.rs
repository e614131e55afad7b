//! Writes acts on a job's object.

use std::cell::RefCell;
use std::io::{self, Write};

use api::HTCJob;
use api::labels::{ACTS, OUT_OF_QUEUE};
use futures::stream::{self, StreamExt};
use model::pool::{Ranges, Verb};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::procs::JobProcs;
use super::{Request, tool_of};
use crate::cluster::{self, Cluster};
use crate::condor::harmless;
use crate::patient::{AT_ONCE, PATIENCE, PAUSE, Patient, TRIES};

/// The most acts that may wait on an object; the operator takes no more than 32.
const WAITING: usize = 24;
/// The most ranges of one act: up to 42 KB.
const RANGES: usize = 3000;
/// The longest text of all acts that wait on an object, in bytes. The operator takes no acts from a text of more than 64 KiB.
const LONGEST: usize = 60 << 10;
/// The most late jobs that are named.
const NAMED: usize = 5;
/// The longest reason, in characters.
const REASON: usize = 400;

/// An act to write: the verb of the request, on these procs of a job.
pub(super) struct Task<'a> {
    pub(super) job: &'a JobProcs<'a>,
    pub(super) which: Which,
}

/// The procs of an act.
pub(super) enum Which {
    All,
    These(Ranges),
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskOutcome {
    /// There was nothing to write, or nothing that the operator has to carry out.
    Done,
    /// The act of this number waits for the operator.
    Asked(u64),
    /// The job was deleted, since its spec was never accepted.
    Deleted,
    /// The API server does not let the user do that.
    Denied,
}

/// Writes acts on jobs, and then waits until the operator has carried them out. Returns what came of each task.
///
/// # Errors
/// When the API server does not answer, or refuses for another reason than that the user may not. Some tasks may have been
/// carried out then.
pub(super) async fn act(
    cluster: &Cluster,
    request: &Request,
    tasks: &[Task<'_>],
    err: &mut dyn Write,
) -> Result<Vec<TaskOutcome>, cluster::Error> {
    let patience = Patient::default();
    let failed = RefCell::new(None);
    let written = stream::iter(tasks).map(async |task| {
        // Once a call has failed, nothing more is begun.
        if failed.borrow().is_some() {
            return TaskOutcome::Done;
        }
        match ask(cluster, request, task).await {
            Ok(written) => written,
            Err(cluster::Error::Denied { .. }) => TaskOutcome::Denied,
            // The job was deleted meanwhile: nothing is left to do.
            Err(cluster::Error::Missing { .. }) => TaskOutcome::Done,
            Err(error) => {
                failed.borrow_mut().get_or_insert(error);
                TaskOutcome::Done
            }
        }
    });
    let written: Vec<TaskOutcome> = written.buffered(AT_ONCE).collect().await;
    let asked = tasks.iter().zip(&written).filter_map(|(task, written)| match written {
        TaskOutcome::Asked(id) if task.job.refusal().is_none() => Some((task.job, *id)),
        _ => None,
    });
    let late = stream::iter(asked).map(async |(job, id)| {
        let done = patience.wait(PAUSE, || is_carried_out(cluster, job, id)).await;
        (!done.unwrap_or(false)).then_some(job)
    });
    let late: Vec<Option<&JobProcs>> = late.buffered(AT_ONCE).collect().await;
    // Nobody may be there to read the notes.
    let _ = notes(tasks, &written, &late.into_iter().flatten().collect::<Vec<_>>(), err);
    failed.into_inner().map_or(Ok(written), Err)
}

fn notes(
    tasks: &[Task<'_>],
    written: &[TaskOutcome],
    late: &[&JobProcs<'_>],
    err: &mut dyn Write,
) -> io::Result<()> {
    for (Task { job, .. }, written) in tasks.iter().zip(written) {
        let place = format!("{}/{}", job.namespace, job.name);
        if *written == TaskOutcome::Deleted {
            writeln!(err, "note: {place} is deleted: its spec was never accepted")?;
        }
        if let (TaskOutcome::Asked(_), Some(why)) = (written, job.refusal()) {
            writeln!(
                err,
                "note: {place} has the request, which takes effect once its spec is correct: {}",
                harmless(why)
            )?;
        }
    }
    for job in late.iter().take(NAMED) {
        let place = format!("{}/{}", job.namespace, job.name);
        writeln!(err, "note: {place} has the request, and no operator has carried it out yet")?;
    }
    match late.len().saturating_sub(NAMED) {
        0 => Ok(()),
        others => {
            writeln!(err, "note: {others} more jobs have the request, and no operator has carried it out yet")
        }
    }
}

/// Writes an act on a job. Very many procs that do not follow one another take several acts.
async fn ask(cluster: &Cluster, request: &Request, task: &Task<'_>) -> Result<TaskOutcome, cluster::Error> {
    let Task { job, which } = task;
    let (mut left, mut others) = (Ranges::default(), Ranges::default());
    if let Which::These(procs) = which {
        for proc in procs.iter() {
            if job.is_left(proc) { &mut left } else { &mut others }.insert(proc);
        }
    } else if request.verb == Verb::Remove {
        left = job.left().clone();
    }
    if !left.is_empty() {
        take_out_of_queue(cluster, job, &left).await?;
    }
    let texts = match which {
        Which::All if job.is_over() => return Ok(TaskOutcome::Done),
        Which::All => vec![None],
        Which::These(_) if others.is_empty() => return Ok(TaskOutcome::Done),
        Which::These(_) => parts(&others.to_string()).into_iter().map(Some).collect(),
    };
    if request.forced {
        return Ok(TaskOutcome::Done);
    }
    let all = matches!(which, Which::All);
    if all && request.verb == Verb::Remove && job.refusal().is_some() && job.is_untouched() {
        cluster.remove::<HTCJob>(Some(&job.namespace), &job.name, job.uid()).await?;
        return Ok(TaskOutcome::Deleted);
    }
    let mut written = TaskOutcome::Done;
    for procs in texts {
        written = TaskOutcome::Asked(write(cluster, job, request, procs.as_deref(), all).await?);
    }
    Ok(written)
}

/// Takes procs out of the queue that have ended and that `LeaveJobInQueue` left there. The operator has nothing to do with that.
async fn take_out_of_queue(
    cluster: &Cluster,
    job: &JobProcs<'_>,
    procs: &Ranges,
) -> Result<(), cluster::Error> {
    for _ in 0..TRIES {
        let object = cluster.read(&job.namespace, &job.name).await?;
        if object.pointer("/metadata/uid").and_then(Value::as_str) != Some(job.uid()) {
            // The job has gone, and another has its name.
            return Ok(());
        }
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
        let text = annotations.and_then(|all| all.get(OUT_OF_QUEUE)).and_then(Value::as_str);
        let mut out = Ranges::parse(text.unwrap_or_default()).unwrap_or_default();
        for proc in procs.iter() {
            out.insert(proc);
        }
        let version = object.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let notes = json!({OUT_OF_QUEUE: out.to_string()});
        let patch = json!({"metadata": {"resourceVersion": version, "annotations": notes}});
        match cluster.merge::<HTCJob>(Some(&job.namespace), &job.name, &patch).await {
            Err(cluster::Error::Contended { .. }) => tokio::time::sleep(PAUSE).await,
            written => return written,
        }
    }
    Err(contended(job))
}

fn contended(job: &JobProcs<'_>) -> cluster::Error {
    cluster::Error::Contended { verb: "change", object: format!("HTCJob {}/{}", job.namespace, job.name) }
}

/// Ranges in parts that are not too long.
fn parts(ranges: &str) -> Vec<String> {
    let all: Vec<&str> = ranges.split(',').collect();
    all.chunks(RANGES).map(|part| part.join(",")).collect()
}

/// Writes one act, and returns its number. If too much waits for the operator, the act waits until there is room on the object.
async fn write(
    cluster: &Cluster,
    job: &JobProcs<'_>,
    request: &Request,
    procs: Option<&str>,
    all: bool,
) -> Result<u64, cluster::Error> {
    let begun = Instant::now();
    let mut tries = 0..TRIES;
    loop {
        let object = cluster.read(&job.namespace, &job.name).await?;
        let last = last_act(&object);
        let pending = pending(&object, job.uid(), last);
        let id = next(&pending, last);
        let text = annotation(job.uid(), &pending, &new(id, request, procs));
        if has_room(&pending, &text) {
            let patch = patch(&object, &text, request, all);
            match cluster.merge::<HTCJob>(Some(&job.namespace), &job.name, &patch).await {
                Err(cluster::Error::Contended { .. }) if tries.next().is_some() => {}
                written => return written.map(|()| id),
            }
        } else if begun.elapsed() >= PATIENCE {
            return Err(contended(job));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The number of an act beside those that wait on an object of which the operator has carried out the acts up to `last`.
fn next(pending: &[Value], last: u64) -> u64 {
    pending.iter().filter_map(number).max().unwrap_or(0).max(last).saturating_add(1)
}

/// The number of an act that anybody may have written. The operator takes no higher number than that of a status.
fn number(act: &Value) -> Option<u64> {
    act.get("id").and_then(Value::as_i64).and_then(|id| u64::try_from(id).ok())
}

/// Whether an object takes one more act beside those that wait on it: `text` has all of them. An object takes any one act.
const fn has_room(pending: &[Value], text: &str) -> bool {
    pending.is_empty() || pending.len() < WAITING && text.len() <= LONGEST
}

fn new(id: u64, request: &Request, procs: Option<&str>) -> Value {
    let tool = format!("via {}", tool_of(request.verb));
    let reason: String = request.reason.as_deref().unwrap_or(&tool).chars().take(REASON).collect();
    let act = json!({"id": id, "act": request.verb.name(), "reason": reason});
    let procs = procs.map(|procs| ("procs", procs.into()));
    let subcode = (request.subcode != 0).then(|| ("subcode", request.subcode.into()));
    with(act, procs.into_iter().chain(subcode))
}

/// An object with more fields.
fn with(mut object: Value, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    if let Some(known) = object.as_object_mut() {
        known.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    object
}

/// The acts on an object that are not carried out yet. An act whose number the operator does not take is left out: the operator takes no
/// act from a text with such an act.
fn pending(object: &Value, uid: &str, last: u64) -> Vec<Value> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let text = annotations.and_then(|all| all.get(ACTS)).and_then(Value::as_str).unwrap_or_default();
    let Ok(written) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    if written.get("job").and_then(Value::as_str).is_some_and(|job| job != uid) {
        return Vec::new();
    }
    let acts = written.get("acts").and_then(Value::as_array).cloned().unwrap_or_default();
    acts.into_iter().filter(|act| number(act).is_some_and(|id| id > last)).collect()
}

/// The text of the acts that wait on a job, and of one more.
fn annotation(uid: &str, pending: &[Value], act: &Value) -> String {
    let acts: Vec<&Value> = pending.iter().chain([act]).collect();
    json!({"job": uid, "acts": acts}).to_string()
}

/// The patch that writes acts. It names the object's version, so that nobody else's act is lost.
fn patch(object: &Value, acts: &str, request: &Request, all: bool) -> Value {
    let version = object.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {ACTS: acts}}});
    // A release of the whole job also takes `hold` off the spec: otherwise the spec would still hold the job.
    let held = object.pointer("/spec/hold").and_then(Value::as_bool) == Some(true);
    let spec = (all && held && request.verb == super::Verb::Release).then(|| ("spec", json!({"hold": null})));
    with(patch, spec)
}

/// Whether the operator has carried out the act of this number, and all acts before it.
async fn is_carried_out(cluster: &Cluster, job: &JobProcs<'_>, id: u64) -> Result<bool, cluster::Error> {
    is_done(cluster.read(&job.namespace, &job.name).await, job.uid(), id)
}

/// Whether nothing is left to do for an act: by the job's object, or by why the object cannot be read.
fn is_done(read: Result<Value, cluster::Error>, uid: &str, id: u64) -> Result<bool, cluster::Error> {
    match read {
        Ok(object) => {
            // An object with another uid is another job of the same name.
            let is_other = object.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid);
            Ok(is_other || last_act(&object) >= id || object.pointer("/metadata/deletionTimestamp").is_some())
        }
        Err(cluster::Error::Missing { .. }) => Ok(true),
        Err(error) if error.is_transient() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The number of the last act that the operator has carried out.
fn last_act(object: &Value) -> u64 {
    object.pointer("/status/lastAct").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Selection;
    use super::*;

    fn request(verb: Verb) -> Request {
        Request {
            verb,
            selection: Selection::default(),
            reason: None,
            subcode: 0,
            forced: false,
            totals: false,
            namespace: None,
            owners_everywhere: false,
        }
    }

    /// The acts that are carried out go, those that wait stay, and nobody else's act is lost.
    #[test]
    fn an_act_is_added_to_those_that_wait() {
        let text =
            json!({"job": "u1", "acts": [{"id": 3, "act": "Hold"}, {"id": 4, "act": "Remove"}]}).to_string();
        let object = json!({"metadata": {"resourceVersion": "77", "annotations": {ACTS: text}},
                            "spec": {"hold": true}, "status": {"lastAct": 3}});
        let waiting = pending(&object, "u1", 3);
        let act = new(5, &request(Verb::Release), Some("0-4"));
        let patch = patch(&object, &annotation("u1", &waiting, &act), &request(Verb::Release), true);
        assert_eq!(patch["metadata"]["resourceVersion"], "77");
        assert_eq!(patch["spec"], json!({"hold": null}));
        let written: Value =
            serde_json::from_str(patch["metadata"]["annotations"][ACTS].as_str().unwrap()).unwrap();
        assert_eq!(
            written,
            json!({"job": "u1", "acts": [{"id": 4, "act": "Remove"},
                {"id": 5, "act": "Release", "procs": "0-4", "reason": "via condor_release"}]})
        );
        // A copy of another job has that job's acts, which are not this one's.
        assert_eq!(pending(&object, "u2", 0), Vec::<Value>::new());
    }

    #[test]
    fn a_number_that_the_operator_does_not_take_is_left_out() {
        let text =
            r#"{"acts": [{"id": 18446744073709551615}, {"id": -1}, {"id": 9223372036854775808}, {"id": 7}]}"#;
        let object = json!({"metadata": {"annotations": {ACTS: text}}});
        let waiting = pending(&object, "u1", 3);
        assert_eq!(waiting, [json!({"id": 7})]);
        assert_eq!((next(&waiting, 3), next(&[], 3), next(&[], u64::MAX)), (8, 4, u64::MAX));
    }

    /// A job that was deleted does not wait for the operator.
    #[test]
    fn an_act_is_done_once_it_is_carried_out_or_the_job_is_gone() {
        let object =
            |uid: &str, last: u64| Ok(json!({"metadata": {"uid": uid}, "status": {"lastAct": last}}));
        let deleting = json!({"metadata": {"uid": "u1", "deletionTimestamp": "2030-01-01T00:00:00Z"}});
        let missing = cluster::Error::Missing { object: "HTCJob ns/pi".to_owned() };
        let silent = cluster::Error::NoAnswer {
            resource: String::new(),
            server: String::new(),
            message: String::new(),
        };
        for (read, expected) in [
            (object("u1", 4), false),
            (object("u1", 5), true),
            (object("u2", 0), true),
            (Ok(deleting), true),
            (Err(missing), true),
            (Err(silent), false),
        ] {
            let shown = format!("{read:?}");
            assert_eq!(is_done(read, "u1", 5).unwrap(), expected, "{shown}");
        }
        let unknown = cluster::Error::NotInstalled { resource: "htcjobs.slotwright.dev".to_owned() };
        assert!(is_done(Err(unknown), "u1", 5).is_err());
    }

    #[test]
    fn very_many_ranges_take_several_acts() {
        let text: Vec<String> = (0..7000).map(|n| (2 * n).to_string()).collect();
        let parts = parts(&text.join(","));
        assert_eq!((parts.len(), parts.join(",")), (3, text.join(",")));
        assert!(parts.iter().all(|part| part.len() < 24_000));
    }

    /// From a text of more than 64 KiB, the operator would take no act at all.
    #[test]
    fn acts_that_are_too_long_together_wait_for_each_other() {
        let widest: Vec<String> = (0..RANGES).map(|n| format!("{0}-{0}", 100_000 + n)).collect();
        let act = |id: u64| new(id, &request(Verb::Hold), Some(&widest.join(",")));
        let fits = |pending: &[Value]| has_room(pending, &annotation("u1", pending, &act(9)));
        assert!(fits(&[]) && !fits(&[act(1)]));
        assert!(annotation("u1", &[], &act(1)).len() <= LONGEST);
        let short: Vec<Value> = (0..24).map(|id| new(id, &request(Verb::Hold), Some("0-4"))).collect();
        assert!(has_room(&short[..23], "") && !has_room(&short, ""));
    }
}
