//! What users do with jobs.

use serde_json::{Value, json};

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

fn submit(world: &mut World, order: &Order) {
    let key = job_key(order.job);
    if world.store.get(&key).is_none() {
        world.put(key, json!({"metadata": {}, "spec": spec(order)}));
    }
}

/// Edits jobs that have held procs, so that the reason for the hold is gone.
pub fn release(world: &mut World) {
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
    let holds = job["status"]["heldProcs"].as_array().is_some_and(|held| !held.is_empty());
    let wrong = job["spec"]["requirements"] == "((";
    holds && !wrong && job["status"]["observedGeneration"] == job["metadata"]["generation"]
}
