//! The history of final ads: a model of the directory in which operators write, and what must be in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::labels;
use classad::{Ad, Env};
use controller::archive::Shelf;
use serde_json::Value;
use tokio::time::sleep;

use super::checks::{recorded, removed};
use super::store::{Key, finalizers};
use super::verbs::Call;
use super::world::{Shared, World};

/// The ads that operators wrote. As the history's files do, the model leaves out an ad of a proc of which it has one, unless the proc
/// completed and the model has only its removal.
#[derive(Debug, Default)]
pub struct Archive {
    /// The procs that completed: the job's uid, and the number of the proc.
    completed: BTreeSet<(String, u32)>,
    /// The procs that were removed, and the operator that wrote so.
    removed: BTreeMap<(String, u32), usize>,
    /// How many batches were begun.
    begun: u64,
    /// The uids of jobs whose specs somebody made unreadable: an operator that never understood a spec has no ad to write.
    unread: BTreeSet<String>,
}

impl Archive {
    /// Takes an ad of a proc from an operator. Returns whether the ad is new to the history.
    fn take(&mut self, key: (String, u32), completed: bool, who: usize) -> bool {
        if completed || self.completed.contains(&key) {
            return self.completed.insert(key);
        }
        let new = !self.removed.contains_key(&key);
        self.removed.entry(key).or_insert(who);
        new
    }

    fn has(&self, job: &Value, proc: u32) -> bool {
        let key = (uid(job), proc);
        self.unread.contains(&key.0) || self.completed.contains(&key) || self.removed.contains_key(&key)
    }

    fn has_completion(&self, job: &Value, proc: u32) -> bool {
        self.unread.contains(&uid(job)) || self.completed.contains(&(uid(job), proc))
    }

    /// Notes that somebody made the spec of a job unreadable.
    pub fn cannot_read(&mut self, job: &Value) {
        self.unread.insert(uid(job));
    }
}

/// The shelf of an operator. An operator that dies while a batch is under way may or may not have written the batch.
pub fn shelf(world: &Shared, who: usize) -> Shelf {
    let world = Arc::clone(world);
    Shelf::kept_by(move |ads| {
        let world = Arc::clone(&world);
        Box::pin(async move {
            let (before, after) = {
                let mut world = world.lock().unwrap();
                let begun = world.archive.as_mut().map_or(0, |archive| {
                    archive.begun += 1;
                    archive.begun
                });
                let batch = format!("batch {begun}");
                (world.draw(&batch, 2000), world.draw(&format!("answer to {batch}"), 2000))
            };
            sleep(Duration::from_millis(before)).await;
            write(&mut world.lock().unwrap(), who, &ads);
            sleep(Duration::from_millis(after)).await;
        })
    })
}

fn write(world: &mut World, who: usize, ads: &[Ad]) {
    for ad in ads {
        let env = Env::at(0);
        let text = |name: &str| ad.eval_attr(name, None, &env).as_str().unwrap_or_default().to_owned();
        let number = |name: &str| ad.eval_attr(name, None, &env).as_int();
        let id = text("GlobalJobId");
        world.note(|| format!("operator {who} writes the end of {id} in the history"));
        world.hash(id.as_bytes());
        let Some((_, uid)) = id.rsplit_once('#') else {
            return world.violated(format!("the history gets an ad with the GlobalJobId {id:?}"));
        };
        let proc = number("ProcId").and_then(|proc| u32::try_from(proc).ok()).unwrap_or(u32::MAX);
        let key = (uid.to_owned(), proc);
        let completed = number("JobStatus") == Some(4);
        if completed {
            let code = number("ExitCode").or_else(|| Some(128 + number("ExitSignal")?));
            let happened = world.checks.ends.get(&key).cloned().unwrap_or_default();
            if !code.is_some_and(|code| happened.contains(&code)) {
                world.violated(format!(
                    "the history has an end of {id} with {code:?} that never was: {happened:?}"
                ));
            }
        }
        if !world.archive.as_mut().is_none_or(|archive| archive.take(key, completed, who)) {
            world.coverage.fault("end written a second time");
        }
    }
}

/// Checks that the ends that a job's status records are in the history.
pub fn archived(world: &mut World, key: &Key) {
    let (Some(job), Some(archive)) = (world.store.get(key), &world.archive) else { return };
    if let Some(proc) = ends(&job).find(|proc| !archive.has(&job, *proc)) {
        let text = format!("the job {} records the end of proc {proc} before the history has it", key.name);
        world.violated(text);
    }
}

/// Checks that all procs of a job are in the history when an operator takes its finalizer off the job.
pub fn all_archived(world: &mut World, call: &Call) {
    let (Some(job), Some(archive)) = (world.store.get(&call.key), &world.archive) else { return };
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let accepted = conditions.into_iter().any(|one| one["type"] == "Accepted" && one["status"] == "True");
    let holds = |object: &Value| finalizers(object).iter().any(|name| name == labels::JOB_FINALIZER);
    let version = call.body["metadata"]["resourceVersion"].as_str();
    let stale = version != job["metadata"]["resourceVersion"].as_str();
    if stale || !accepted || holds(&call.body) || !holds(&job) {
        return;
    }
    if let Some(proc) = (0..count(&job)).find(|proc| !archive.has(&job, *proc)) {
        let text = format!("the job {} is let go without proc {proc} in the history", call.key.name);
        world.violated(text);
    }
}

/// Describes a proc whose final ad is missing, or is there though the proc has not ended; `None` if there is none.
pub fn amiss(world: &World) -> Option<String> {
    let archive = world.archive.as_ref()?;
    for (key, job) in world.store.of("htcjobs") {
        if let Some(proc) = ends(job).find(|proc| !archive.has(job, *proc)) {
            return Some(format!("the history lacks proc {proc} of the job {}", key.name));
        }
        let (well, ill) = recorded(job);
        if let Some(proc) = well.iter().chain(ill.iter()).find(|proc| !archive.has_completion(job, *proc)) {
            return Some(format!("the history lacks the completion of proc {proc} of the job {}", key.name));
        }
        let ended: BTreeSet<u32> = ends(job).collect();
        let of_job = (uid(job), 0)..=(uid(job), u32::MAX);
        let completed = archive.completed.range(of_job.clone());
        // A removal by an operator that another has replaced may not hold: the spec that removed the proc was edited meanwhile.
        let removed = archive.removed.range(of_job).filter(|(_, who)| world.checks.leads(**who));
        let early = completed.chain(removed.map(|(key, _)| key)).map(|(_, proc)| *proc);
        if let Some(proc) = early.into_iter().find(|proc| !ended.contains(proc)) {
            return Some(format!("the history has proc {proc} of the job {}, which has not ended", key.name));
        }
    }
    None
}

fn uid(job: &Value) -> String {
    job["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn count(job: &Value) -> u32 {
    job["spec"]["count"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// The procs that a job's status records as ended or removed.
fn ends(job: &Value) -> impl Iterator<Item = u32> {
    let (well, ill) = recorded(job);
    let all: Vec<u32> = well.iter().chain(ill.iter()).chain(removed(job).iter()).collect();
    all.into_iter()
}
