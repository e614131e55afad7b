//! Nodes: when their kubelets are heard, and what the cluster's own controllers do about nodes and about pods without
//! an owner.

use std::collections::BTreeMap;

use api::labels;
use serde_json::{Value, json};

use super::agents::Agent;
use super::marks;
use super::processes::{Fated, Process};
use super::store::{Key, is_deleting, meta};
use super::world::World;

/// How often a kubelet renews its Lease, in milliseconds.
const HEARTBEAT: u64 = 10_000;
/// After how long a silence the cluster marks a node, in milliseconds.
const SILENT: u64 = 40_000;

/// The exit code of a process that an agent kills.
pub const FENCED: i64 = 137;

/// The state of a machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub cpus: i64,
    /// Whether the machine is on.
    pub on: bool,
    /// Until when nobody hears the machine.
    pub cut_until: u64,
    /// How many more pods the kubelet refuses.
    pub refuses: u8,
    beat: u64,
    heard: u64,
    /// Since when the machine's Node is gone.
    gone: Option<u64>,
    /// Whether something took CPUs that the operator could not know of in time.
    pub crowded: bool,
    pub agent: Agent,
    /// By how many seconds the machine's clock is wrong, if a story says so.
    pub wrong: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Kubelets {
    pub machines: BTreeMap<String, Machine>,
    /// The processes, by pod uid.
    pub processes: BTreeMap<String, Process>,
    /// How programs are to behave that begin from now on, if a story says so.
    pub fated: Option<Fated>,
}

pub fn node_key(name: &str) -> Key {
    Key::new("nodes", "", name)
}

/// Whether a pod runs a proc of the pool.
pub fn is_ours(pod: &Value) -> bool {
    marks::label(pod, labels::JOB_UID).is_some()
}

/// Whether a pod does backfill work of the pool.
pub fn is_backfill(pod: &Value) -> bool {
    marks::label(pod, labels::BACKFILL).is_some()
}

/// Whether the operator made a pod.
pub fn is_of_pool(pod: &Value) -> bool {
    is_ours(pod) || is_backfill(pod)
}

pub fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Whether the pod's status says that all its containers have ended.
pub fn has_ended(pod: &Value) -> bool {
    let of = |field: &str| pod["status"][field].as_array().cloned().unwrap_or_default();
    let main = of("containerStatuses");
    let ended = |status: &Value| !status["state"]["terminated"].is_null();
    is_over(pod) || (!main.is_empty() && main.iter().chain(&of("initContainerStatuses")).all(ended))
}

/// Writes the condition `DisruptionTarget` on a pod. A condition that is there gets the new reason and keeps its time.
pub fn disrupt(pod: &mut Value, reason: &str, now: &str) {
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_it = |one: &Value| one["type"] == "DisruptionTarget";
    let old = conditions.iter().position(is_it).map(|at| conditions.remove(at));
    let since = old.filter(|old| old["status"] == "True").map(|old| old["lastTransitionTime"].clone());
    conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "no",
        "lastTransitionTime": since.unwrap_or_else(|| json!(now))}));
    pod["status"]["conditions"] = json!(conditions);
}

impl World {
    /// Runs all nodes for half a second.
    pub fn tick(&mut self) {
        let at = self.at();
        let names: Vec<String> = self.kubelets.machines.keys().cloned().collect();
        for name in names {
            let machine = self.kubelets.machines[&name].clone();
            let heard = machine.on && at >= machine.cut_until;
            if machine.on {
                self.run_processes(&name, at);
                self.run_agent(&name, at, heard);
            }
            if heard {
                self.heartbeat(&name, at);
                self.run_pods(&name, at);
            }
            if machine.on && self.store.get(&node_key(&name)).is_none() {
                self.give_up(&name, at, heard);
            }
            self.node_controller(&name, at);
        }
        self.collect_garbage();
        super::ends::forget(self);
    }

    /// Excuses the operator for programs on a machine that is on although somebody deleted its Node. If nobody hears
    /// the machine, the deletion states what is not so. And without a Node nobody can know of a program that outlives
    /// its grace period.
    pub fn give_up(&mut self, name: &str, at: u64, heard: bool) {
        for process in self.kubelets.processes.values_mut().filter(|process| process.node == name) {
            let outlives = process.told.is_some_and(|told| told.granted <= at && told.dies > told.granted);
            process.disowned |= !heard || outlives;
        }
    }

    fn heartbeat(&mut self, name: &str, at: u64) {
        let machine = self.kubelets.machines.get_mut(name).unwrap();
        machine.heard = at;
        // A kubelet creates neither its Node anew nor a Lease for a missing Node.
        if (machine.beat != 0 && at < machine.beat + HEARTBEAT) || self.store.get(&node_key(name)).is_none() {
            return;
        }
        self.kubelets.machines.get_mut(name).unwrap().beat = at;
        let key = Key::new("leases", "kube-node-lease", name);
        let time = self.wall_at(at).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": time});
        self.put(key, json!({"metadata": {}, "spec": spec}));
        self.set_ready(name, "True");
    }

    fn set_ready(&mut self, name: &str, ready: &str) {
        self.edit(&node_key(name), |node| {
            node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        });
    }

    /// By how many seconds the clock of a node is wrong.
    fn clock_of(&self, node: &str) -> i64 {
        let set = self.kubelets.machines.get(node).map_or(0, |machine| machine.wrong);
        if set != 0 || self.seed == 0 || self.draw(&format!("clock {node}"), 3) != 0 {
            return set;
        }
        i64::try_from(self.draw(&format!("wrong {node}"), 61)).unwrap() - 30
    }

    /// A time as the node's kubelet writes it: in whole seconds, by its own clock.
    pub fn text_of(&mut self, node: &str, at: u64) -> String {
        let wrong = self.clock_of(node);
        if wrong != 0 {
            self.coverage.fault("clock of a node wrong");
        }
        let time = self.wall_at(at).as_second() + wrong;
        jiff::Timestamp::from_second(time).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Marks a node that is silent. If its Node has been gone for long, fails and deletes its pods.
    fn node_controller(&mut self, name: &str, at: u64) {
        let there = self.store.get(&node_key(name)).is_some();
        let machine = self.kubelets.machines.get_mut(name).unwrap();
        machine.gone = if there { None } else { Some(machine.gone.unwrap_or(at)) };
        let (gone, heard) = (machine.gone, machine.heard);
        if there && at > heard + SILENT {
            self.set_ready(name, "Unknown");
        }
        if gone.is_some_and(|since| at > since + SILENT) {
            let pods: Vec<Key> = self
                .store
                .of("pods")
                .filter(|(_, pod)| pod["spec"]["nodeName"] == name)
                .map(|(key, _)| key.clone())
                .collect();
            let now = self.text(at);
            for key in pods {
                self.edit(&key, |pod| {
                    if !is_over(pod) {
                        pod["status"]["phase"] = json!("Failed");
                        disrupt(pod, "DeletionByPodGC", &now);
                    }
                });
                self.delete(&key, Some(0));
            }
        }
    }

    /// Deletes pods whose owner, a job or policy, is gone.
    fn collect_garbage(&mut self) {
        let owners = self.store.of("htcjobs").chain(self.store.of("nodepolicies"));
        let owners: Vec<String> = owners.map(|(_, owner)| meta(owner, "uid").to_owned()).collect();
        let orphans: Vec<Key> = self
            .store
            .of("pods")
            .filter(|(_, pod)| {
                let owner = pod["metadata"]["ownerReferences"][0]["uid"].as_str();
                !is_deleting(pod) && owner.is_some_and(|uid| !owners.iter().any(|known| known == uid))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in orphans {
            self.delete(&key, None);
        }
    }

    /// Switches the machine off. All processes there end.
    pub fn switch_off(&mut self, name: &str) {
        if let Some(machine) = self.kubelets.machines.get_mut(name) {
            machine.on = false;
        }
        for process in self.kubelets.processes.values_mut().filter(|process| process.node == name) {
            // A container that had ended before is found again when the machine is back.
            process.settled |= process.alive;
            (process.alive, process.beside) = (false, None);
        }
    }
}
