//! Checks that all work is done once faults have stopped.

use api::labels;
use serde_json::Value;

use super::super::archive;
use super::super::kubelets::{is_backfill, is_ours, is_over, node_key};
use super::super::layouts::{Division, LAYOUTS};
use super::super::store::finalizers;
use super::super::world::World;
use super::{recorded, removed};

/// Describes something that is not finished; `None` if everything is. After faults have stopped, everything must
/// finish.
pub fn unfinished(world: &World) -> Option<String> {
    let division = &LAYOUTS[usize::from(world.layout)];
    if let Some((key, _)) = world
        .store
        .of("slots")
        .find(|(_, slot)| slot["spec"]["claim"].is_object() || slot["spec"]["slotType"] != "Static")
    {
        return Some(format!("the Slot {} is left", key.name));
    }
    for (key, pod) in world.store.of("pods").filter(|(_, pod)| is_ours(pod)) {
        let tracked = finalizers(pod).iter().any(|name| name == labels::TRACKING_FINALIZER);
        if tracked || !is_over(pod) {
            return Some(format!("the pod {} is left: {}", key.name, pod["status"]));
        }
    }
    // By now no policy asks for backfill work.
    if let Some((key, pod)) = world.store.of("pods").find(|(_, pod)| is_backfill(pod)) {
        return Some(format!("the backfill pod {} is left: {}", key.name, pod["status"]));
    }
    for (key, job) in world.store.of("htcjobs") {
        if job["metadata"]["deletionTimestamp"].is_string() {
            return Some(format!("the job {} is being deleted", key.name));
        }
        let possible =
            !matches!(job["spec"]["requirements"].as_str(), Some("error" | "((" | "TARGET.NoSuchThing > 1"))
                && job["spec"]["requests"]["resources"].is_null()
                && job["spec"]["requests"]["cpus"].as_i64().unwrap_or(0) <= division.largest;
        let (well, ill) = recorded(job);
        let count = u32::try_from(job["spec"]["count"].as_i64().unwrap_or(0)).unwrap_or(0);
        let gone = removed(job);
        let is_over = |proc| well.contains(proc) || ill.contains(proc) || gone.contains(proc);
        if possible && !(0..count).all(is_over) {
            return Some(format!("the job {} is not done: {}", key.name, job["status"]));
        }
        let number = |field: &str| job["status"][field].as_u64().unwrap_or(0);
        let told = (number("completed"), number("failed"), number("running"));
        if possible && told != (well.len(), ill.len(), 0) {
            return Some(format!("the job {} says {}", key.name, job["status"]));
        }
    }
    for (key, submitter) in world.store.of("submitters") {
        let status = &submitter["status"];
        if status["resourcesUsed"].as_i64().unwrap_or(0) != 0
            || status["weightedResourcesUsed"].as_f64().unwrap_or(0.0) != 0.0
        {
            return Some(format!("{} is charged: {status}", key.name));
        }
    }
    for (key, slot) in world.store.of("partitionableslots") {
        let status = &slot["status"];
        let node = slot["spec"]["node"].as_str().unwrap_or_default();
        if world.store.get(&node_key(node)).is_none() {
            return Some(format!("{} is left without its node", key.name));
        }
        if status["available"] != status["total"] || status["dynamicSlots"].as_i64().unwrap_or(0) != 0 {
            return Some(format!("{} is not whole: {status}", key.name));
        }
    }
    for (key, _) in world.store.of("absentmachines") {
        if world.store.get(&node_key(&key.name)).is_some() {
            return Some(format!("{} is absent though its node is there", key.name));
        }
    }
    if let Some(amiss) = archive::amiss(world) {
        return Some(amiss);
    }
    world.store.of("nodes").find_map(|(key, _)| undivided(world, &key.name, division))
}

/// Describes why a node is not divided into slots as its policy says, with each slot there once, and free; `None` if it
/// is.
fn undivided(world: &World, node: &str, division: &Division) -> Option<String> {
    let of = |kind| world.store.of(kind).filter(move |(_, slot)| slot["spec"]["node"] == node);
    let (fixed, partitionable) = (of("slots").count(), of("partitionableslots").count());
    if (fixed, partitionable) != (division.fixed, division.partitionable) {
        return Some(format!("{node} has {fixed} static and {partitionable} partitionable slots"));
    }
    let taken =
        of("slots").chain(of("partitionableslots")).find(|(_, slot)| slot["status"]["state"] != "Unclaimed");
    if let Some((key, slot)) = taken {
        return Some(format!("{} is not unclaimed: {}", key.name, slot["status"]));
    }
    let of_fixed = of("slots").map(|(_, slot)| &slot["spec"]["resources"]["cpus"]);
    let of_others = of("partitionableslots").map(|(_, slot)| &slot["status"]["total"]["cpus"]);
    let cpus: i64 = of_fixed.chain(of_others).filter_map(Value::as_i64).sum();
    (cpus != 8).then(|| format!("the slots of {node} have {cpus} CPUs of 8"))
}
