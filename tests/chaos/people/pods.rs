//! The happenings of pods: who ends them, and who asks them to go.

use serde_json::{Value, json};

use super::super::checks::proc_of;
use super::super::kubelets::{disrupt, is_of_pool, is_over};
use super::super::plan::What;
use super::super::processes::Over;
use super::super::store::{Key, finalizers, is_deleting, meta};
use super::super::world::World;
use super::node;

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What, at: u64) -> bool {
    match what {
        What::Evict(n) => {
            if let Some(key) = world.pick("pods", *n, |pod| is_of_pool(pod) && !is_over(pod)) {
                evicted_by_kubelet(world, &key, at);
            }
        }
        What::EndNow(n) => {
            let name = node(*n);
            for process in world.kubelets.processes.values_mut().filter(|process| process.node == name) {
                process.end_now(at);
            }
        }
        What::DeletePod(n, force) => {
            if let Some(key) = world.pick("pods", *n, is_of_pool) {
                // Without the tracking finalizer the pod is gone at once, and nobody can say when its program ends.
                if *force && world.store.get(&key).is_some_and(|pod| finalizers(&pod).is_empty()) {
                    disown(world, &key, true);
                }
                world.delete(&key, force.then_some(0));
            }
        }
        What::DeleteSooner(n, grace) => {
            let going = world.pick("pods", *n, |pod| is_of_pool(pod) && is_deleting(pod));
            if let Some(key) = going.or_else(|| world.pick("pods", *n, is_of_pool)) {
                // Without the tracking finalizer the pod is gone at once, and nobody can say when its program ends.
                if *grace == 0 && world.store.get(&key).is_some_and(|pod| finalizers(&pod).is_empty()) {
                    disown(world, &key, true);
                }
                world.delete(&key, Some(u64::from(*grace)));
            }
        }
        What::ApiEvict(n) => {
            if let Some(key) = world.pick("pods", *n, |pod| is_of_pool(pod) && !is_over(pod)) {
                disrupted(world, &key, "EvictionByEvictionAPI");
            }
        }
        What::TaintEvict(n) => {
            let on = |pod: &Value| is_of_pool(pod) && !is_over(pod) && pod["spec"]["nodeName"] == node(*n);
            let pods: Vec<Key> =
                world.store.of("pods").filter(|(_, pod)| on(pod)).map(|(key, _)| key.clone()).collect();
            for key in pods {
                disrupted(world, &key, "DeletionByTaintManager");
            }
        }
        What::StripPod(n) => {
            if let Some(key) = world.pick("pods", *n, is_of_pool) {
                disown(world, &key, true);
                world.edit(&key, |pod| pod["metadata"]["finalizers"] = json!([]));
                world.delete(&key, Some(0));
            }
        }
        What::Foreign(pod, n, cpus) => {
            let key = Key::new("pods", "kube-system", &format!("foreign{pod}"));
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.crowded = true;
            }
            let requests = json!({"cpu": cpus.to_string()});
            let spec = json!({"nodeName": node(*n), "containers": [{"name": "main", "resources": {"requests": requests}}]});
            if world.store.get(&key).is_none() {
                world.put(key, json!({"metadata": {}, "spec": spec}));
            }
        }
        What::ForeignGone(pod) => {
            world.delete(&Key::new("pods", "kube-system", &format!("foreign{pod}")), Some(0));
        }
        _ => return false,
    }
    true
}

/// The node is short of memory: its kubelet kills the program in a pod, and says so.
fn evicted_by_kubelet(world: &mut World, key: &Key, at: u64) {
    const WHY: &str = "The node was low on resource: memory. ";
    let Some(pod) = world.store.get(key) else { return };
    let now = world.text(at);
    match world.kubelets.processes.get_mut(meta(&pod, "uid")) {
        Some(process) if process.alive => {
            let evicted = Some(WHY.to_owned());
            process.killed(Over { at, code: 137, reason: "Error", own: false, message: None, evicted });
        }
        Some(_) => {}
        None => world.edit(key, |pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["reason"] = json!("Evicted");
            pod["status"]["message"] = json!(WHY);
            disrupt(pod, "TerminationByKubelet", &now);
        }),
    }
}

/// Somebody gives a reason in the pod's condition, and deletes the pod.
fn disrupted(world: &mut World, key: &Key, reason: &str) {
    let now = world.text(world.at());
    world.edit(key, |pod| disrupt(pod, reason, &now));
    world.delete(key, None);
}

/// Somebody takes a pod away while its process runs. The operator cannot know how the process ends.
fn disown(world: &mut World, key: &Key, lives_on: bool) {
    let Some(pod) = world.store.get(key) else { return };
    let unseen = !finalizers(&pod).is_empty();
    if unseen {
        world.checks.lost.insert(proc_of(&pod));
    }
    if let Some(process) = world.kubelets.processes.get_mut(meta(&pod, "uid")) {
        process.disowned = true;
        process.alive &= lives_on;
    }
}
