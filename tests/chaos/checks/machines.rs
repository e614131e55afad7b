//! Checks that no machine is asked for more than it has.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::kubelets::{is_of_pool, is_over};
use super::super::people::is_unknown;
use super::super::store::Key;
use super::super::world::World;

/// Checks that the slots of a machine never add up to more than the machine has.
pub(super) fn carved(world: &mut World, key: &Key) {
    let Some(slot) = world.store.get(key) else { return };
    let node = slot["spec"]["node"].as_str().unwrap_or_default().to_owned();
    let counts = |name: &str, slot: &Value| {
        let id = slot["spec"]["claim"]["id"].as_str().unwrap_or_default();
        let uid = slot["metadata"]["uid"].as_str().unwrap_or_default();
        slot["spec"]["node"] == node.as_str()
            && world.checks.claims.contains(id)
            && !world.checks.tampered_slots.contains(name)
            && !world.checks.let_go.contains(uid)
    };
    let carved: Vec<&Value> = world
        .store
        .of("slots")
        .filter(|(key, slot)| counts(&key.name, slot))
        .map(|(_, slot)| &slot["spec"]["resources"])
        .collect();
    let sum: i64 = carved.iter().filter_map(|resources| resources["cpus"].as_i64()).sum();
    let mut held = BTreeSet::new();
    let devices = carved.iter().filter_map(|resources| resources["devices"].as_object()).flatten();
    let ids = devices.flat_map(|(_, ids)| ids.as_array().into_iter().flatten()).filter_map(Value::as_str);
    let twice: Vec<String> = ids.filter(|id| !held.insert(*id)).map(str::to_owned).collect();
    if !twice.is_empty() {
        world.violated(format!("two slots of {node} hold {twice:?}, now that {} is written", key.name));
    }
    let most = world.checks.most_cpus.get(&node).copied().unwrap_or(0);
    if sum > most {
        world.violated(format!(
            "the slots of {node} hold {sum} CPUs of {most}, now that {} is written",
            key.name
        ));
    }
}

/// Checks that the pods on a machine never request more than it has.
pub(super) fn pods_fit(world: &mut World, key: &Key) {
    let Some(node) = world.store.get(key).and_then(|pod| pod["spec"]["nodeName"].as_str().map(str::to_owned))
    else {
        return;
    };
    let lives = |pod: &Value| {
        is_of_pool(pod)
            && !is_unknown(pod)
            && pod["spec"]["nodeName"] == node.as_str()
            && !is_over(pod)
            && pod["metadata"]["deletionGracePeriodSeconds"] != 0
    };
    let cpus = |pod: &Value| {
        let text = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap_or("0");
        text.parse::<i64>().unwrap_or(0)
    };
    let sum: i64 = world.store.of("pods").filter(|(_, pod)| lives(pod)).map(|(_, pod)| cpus(pod)).sum();
    let most = world.checks.most_cpus.get(&node).copied().unwrap_or(0);
    if world.coverage.faults.contains_key("ghost of a call") {
        return;
    }
    if sum > most {
        world.violated(format!(
            "the pods on {node} request {sum} CPUs of {most}, now that {} is made",
            key.name
        ));
    }
}
