//! The actions of users on jobs.

use api::labels::ACTS;
use model::pool::Ranges;
use serde_json::{Value, json};

use super::super::checks::Again;
use super::super::plan::{A_GPU, Order, What, phantom};
use super::super::store::Key;
use super::super::world::World;
use super::{GROUPS, OWNERS};

const JOBS: [&str; 5] = ["sweep", "scan", "fold", "train", "forever"];
const REQUIREMENTS: [Option<&str>; 4] =
    [None, Some("TARGET.Cpus >= 1"), Some("TARGET.NoSuchThing > 1"), Some("((")];
/// The length of the lease of each job's claims, in seconds.
const LEASES: [Option<&str>; 5] = [Some("45"), None, Some("60"), Some("0"), Some("40")];
/// The concurrency limits of each job.
const WANTS: [Option<&str>; 5] = [None, Some("lic"), Some("LIC:2"), None, Some("lic")];
const VERBS: [&str; 5] = ["Hold", "Release", "Remove", "Vacate", "VacateFast"];
const RETENTIONS: [&str; 3] = ["Keep", "KeepFailed", "Delete"];

pub(super) fn job_key(n: u8) -> Key {
    let n = usize::from(n) % JOBS.len();
    Key::new("htcjobs", OWNERS[n % OWNERS.len()], JOBS[n])
}

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What) -> bool {
    match what {
        What::Submit(order) => submit(world, order),
        What::Edit(order) => {
            let key = job_key(order.job);
            let spec = spec(order);
            world.edit(&key, |job| job["spec"] = spec);
        }
        What::Remove(n) => world.delete(&job_key(*n), None),
        What::Unhold(n) => world.edit(&job_key(*n), |job| job["metadata"]["finalizers"] = json!([])),
        What::Act(n, verb, procs) => act(world, &job_key(*n), VERBS[usize::from(*verb) % 5], *procs),
        What::Hold(n, held) => hold(world, &job_key(*n), *held),
        What::Retry(n) => retry(world, &job_key(*n)),
        What::Attributes(n, which) => attributes(world, &job_key(*n), *which),
        _ => return false,
    }
    true
}

fn spec(order: &Order) -> Value {
    let mut spec = json!({
        "count": order.count,
        "requests": {"cpus": order.cpus, "memory": "128Mi", "disk": "1Mi", "gpus": i32::from(order.device == A_GPU)},
        "podRetention": RETENTIONS[usize::from(order.retention) % 3],
        "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    if let Some(resource) = phantom(order.device) {
        spec["requests"]["resources"] = json!({resource: 1});
    }
    if let Some(lease) = LEASES[usize::from(order.job) % LEASES.len()] {
        spec["attributes"] = json!({"JobLeaseDuration": lease});
    }
    if let Some(wants) = WANTS[usize::from(order.job) % WANTS.len()] {
        spec["concurrencyLimits"] = json!([wants]);
    }
    if let Some(requirements) = REQUIREMENTS[usize::from(order.requirements) % 4] {
        spec["requirements"] = json!(requirements);
    }
    if let Some(group) = order.group {
        spec["accountingGroup"] = json!(GROUPS[usize::from(group) % 4]);
    }
    spec
}

/// Writes an act on a job, as the plugin does: acts that are carried out go, and those that wait stay.
fn act(world: &mut World, key: &Key, verb: &str, procs: u8) {
    world.edit(key, |job| {
        let last = job["status"]["lastAct"].as_u64().unwrap_or(0);
        let text = job["metadata"]["annotations"][ACTS].as_str().unwrap_or("{}");
        let written: Value = serde_json::from_str(text).unwrap_or_default();
        let acts = written["acts"].as_array().cloned().unwrap_or_default();
        let mut acts: Vec<Value> = acts.into_iter().filter(|act| act["id"].as_u64() > Some(last)).collect();
        let id = acts.iter().filter_map(|act| act["id"].as_u64()).max().unwrap_or(0).max(last) + 1;
        let mut act = json!({"id": id, "act": verb, "reason": "chaos"});
        let mut meant = Ranges::default();
        for proc in (0..8_u32).filter(|proc| procs >> proc & 1 == 1) {
            meant.insert(proc);
        }
        if !meant.is_empty() {
            act["procs"] = json!(meant.to_string());
        }
        acts.push(act);
        let uid = job["metadata"]["uid"].clone();
        job["metadata"]["annotations"][ACTS] = json!(json!({"job": uid, "acts": acts}).to_string());
    });
}

fn hold(world: &mut World, key: &Key, hold: bool) {
    world.edit(key, |job| job["spec"]["hold"] = json!(hold));
}

/// The transform of a proc that would be held.
const MORE: &str =
    "\"REQUIREMENTS VacateReasonCode == 34 && NumJobStarts < 3\\nEVALSET RequestMemory RequestMemory + 1\"";

/// Attributes that act. None holds or vacates a proc for ever, so that everything settles.
const ATTRIBUTES: [&[(&str, &str)]; super::super::plan::ATTRIBUTES as usize] = [
    &[("PeriodicHold", "JobStatus == 2 && NumHolds < 1"), ("PeriodicRelease", "NumHolds < 3")],
    &[("PeriodicRemove", "JobStatus == 1 && time() - QDate > 40")],
    &[("PeriodicVacate", "JobStatus == 2 && NumJobStarts < 2")],
    &[("OnExitHold", "ExitCode =!= 0 && NumHolds < 1"), ("PeriodicRelease", "HoldReasonCode == 3")],
    &[("LeaveJobInQueue", "true"), ("JobMaterializeLimit", "2")],
    &[("JobMaterializeMaxIdle", "1"), ("NextJobStartDelay", "5")],
    &[("OnExitRemove", "NumJobCompletions > 1")],
    &[
        ("CronMinute", "\"*\""),
        ("DeferralPrepTime", "20"),
        ("DeferralWindow", "30"),
        ("OnExitRemove", "NumJobCompletions > 1"),
    ],
    &[("DeferralTime", "QDate + 40"), ("DeferralWindow", "1000000")],
    // A proc that went over its memory or its disk runs again with more, at most twice.
    &[("TransformOnEvict", "\"More\""), ("TransformBody_More", MORE)],
];

fn attributes(world: &mut World, key: &Key, which: u8) {
    let which = usize::from(which) % ATTRIBUTES.len();
    let reason = match which {
        3 => Some(Again::Failed(1)),
        // PeriodicHold counts when a program ends, too.
        0 => Some(Again::Ended(0)),
        6 | 7 => Some(Again::Ended(1)),
        _ => None,
    };
    again(world, key, reason);
    world.edit(key, |job| {
        for (name, text) in ATTRIBUTES[which] {
            job["spec"]["attributes"][*name] = json!(text);
        }
    });
}

/// Takes what happens at some time off all jobs: crontabs, deferral times, and the removal of procs that wait for long. As long as
/// procs wait in vain, the operator writes which time of the crontab is next; a proc whose window is over by the short window of
/// another edit is held after each release; and an operator whose clock is slow removes procs when everything should rest.
pub(super) fn take_times_off(world: &mut World) {
    const TIMES: [&str; 3] = ["CronMinute", "DeferralTime", "PeriodicRemove"];
    let is_timed = |job: &Value| TIMES.iter().any(|time| job["spec"]["attributes"][*time].is_string());
    let timed = world.store.of("htcjobs").filter(|(_, job)| is_timed(job));
    for key in timed.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
        world.edit(&key, |job| {
            if let Some(attributes) = job["spec"]["attributes"].as_object_mut() {
                attributes.retain(|name, _| !TIMES.contains(&name.as_str()));
            }
        });
    }
}

/// Notes why programs of a job run once more.
fn again(world: &mut World, key: &Key, reason: Option<Again>) {
    let uid = world.store.get(key).map(|job| job["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
    if let (Some(uid), Some(reason)) = (uid, reason) {
        world.checks.again.entry(uid).or_default().insert(reason);
    }
}

fn retry(world: &mut World, key: &Key) {
    again(world, key, Some(Again::Failed(0)));
    world.edit(key, |job| {
        job["spec"]["attributes"]["OnExitRemove"] = json!("NumJobCompletions > 1 || ExitCode =?= 0");
    });
}

fn submit(world: &mut World, order: &Order) {
    let key = job_key(order.job);
    if world.store.get(&key).is_none() {
        world.put(key, json!({"metadata": {}, "spec": spec(order)}));
    }
}

/// Edits jobs that have held procs, so that the reason for the hold is gone, and releases those that people or expressions hold.
pub fn release(world: &mut World) {
    let by_people = |job: &Value| {
        let held = job["status"]["heldProcs"].as_array().into_iter().flatten();
        held.into_iter().any(|held| held["code"] == 3 || (held["code"] == 1 && held["reason"] == "chaos"))
    };
    let waits = |job: &Value| {
        let text = job["metadata"]["annotations"][ACTS].as_str().unwrap_or("{}");
        let written: Value = serde_json::from_str(text).unwrap_or_default();
        let acts = written["acts"].as_array().cloned().unwrap_or_default();
        acts.iter().any(|act| act["id"].as_u64() > job["status"]["lastAct"].as_u64())
    };
    let held = world.store.of("htcjobs").filter(|(_, job)| by_people(job) && !waits(job));
    for key in held.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
        act(world, &key, "Release", 0);
    }
    let frozen = world.store.of("htcjobs").filter(|(_, job)| job["spec"]["hold"] == true);
    for key in frozen.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
        hold(world, &key, false);
    }
    let held = world.store.of("htcjobs").filter(|(_, job)| is_held(job)).map(|(key, _)| key.clone());
    for key in held.collect::<Vec<_>>() {
        world.edit(&key, |job| {
            let image = format!("busybox:{}", job["metadata"]["generation"]);
            job["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        });
    }
}

/// Whether procs of a job are held under its present spec, and an edit releases them. No edit does if the spec is
/// wrong.
fn is_held(job: &Value) -> bool {
    let held = job["status"]["heldProcs"].as_array();
    let holds = held.is_some_and(|held| held.iter().any(|held| held["code"] != 1 && held["code"] != 3));
    let wrong = job["spec"]["requirements"] == "((";
    holds && !wrong && job["status"]["observedGeneration"] == job["metadata"]["generation"]
}
