//! The happenings of nodes and of their agents.

use serde_json::json;

use super::super::kubelets::node_key;
use super::super::plan::{Presence, What};
use super::super::store::Key;
use super::super::world::World;
use super::node;

pub(super) fn is_out_of_service(what: &What) -> bool {
    matches!(what, What::Taint(n, true) if *n >= 9)
}

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What, at: u64) -> bool {
    match what {
        What::NodeGone(n) => {
            world.switch_off(node(*n));
            world.delete(&node_key(node(*n)), None);
            world.delete(&Key::new("leases", "kube-node-lease", node(*n)), None);
            world.install(node(*n), Presence::TakenOff);
        }
        What::Reboot(n) => {
            let was_on = world.kubelets.machines.get(node(*n)).is_some_and(|machine| machine.on);
            world.switch_off(node(*n));
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.on = was_on;
            }
        }
        What::Clock(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.wrong = i64::from(*seconds);
            }
        }
        What::NodeDeleted(n) => {
            // The garbage collector deletes what the Node owned. The machine works on, and so does its kubelet.
            world.delete(&node_key(node(*n)), None);
            world.delete(&Key::new("leases", "kube-node-lease", node(*n)), None);
            // The operator may act on the deletion before the world looks at its nodes again (seed 9518606).
            let machine = world.kubelets.machines.get(node(*n)).filter(|machine| machine.on);
            if let Some(heard) = machine.map(|machine| at >= machine.cut_until) {
                world.give_up(node(*n), at, heard);
            }
        }
        What::NodeCut(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.cut_until = at + u64::from(*seconds) * 1000;
            }
        }
        What::NodeBack(n, cpus) => node_back(world, node(*n), i64::from(*cpus)),
        What::Cordon(n, on) => {
            world.edit(&node_key(node(*n)), |node| node["spec"]["unschedulable"] = json!(on));
        }
        What::Taint(n, on) => {
            let off = is_out_of_service(what);
            if off {
                world.switch_off(node(*n));
            }
            let key = if off { "node.kubernetes.io/out-of-service" } else { "maintenance" };
            world.edit(&node_key(node(*n)), |node| {
                let taint = json!([{"key": key, "effect": "NoSchedule"}]);
                node["spec"]["taints"] = if *on { taint } else { json!([]) };
            });
        }
        What::Refuse(n, times) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.refuses = *times;
            }
        }
        What::Agent(n, presence) => world.install(node(*n), *presence),
        What::Owner(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.agent.owner_until = at + u64::from(*seconds) * 1000;
            }
        }
        What::Fated(how) => world.kubelets.fated = *how,
        _ => return false,
    }
    true
}

/// Lets a node join, or changes its size.
pub(super) fn node_back(world: &mut World, name: &str, cpus: i64) {
    let machine = world.kubelets.machines.entry(name.to_owned()).or_default();
    let shrinks = cpus < machine.cpus;
    machine.crowded |= shrinks;
    (machine.cpus, machine.on, machine.cut_until) = (cpus, true, 0);
    let most = world.checks.most_cpus.entry(name.to_owned()).or_default();
    *most = (*most).max(cpus);
    let status = json!({
        "allocatable": {"cpu": cpus.to_string(), "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}]});
    let key = node_key(name);
    if world.store.get(&key).is_some() {
        world.edit(&key, |node| node["status"] = status);
    } else {
        let labels = json!({
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "nvidia.com/gpu.memory": "16000"});
        world.put(key, json!({"metadata": {"labels": labels}, "spec": {}, "status": status}));
    }
}
