//! Nodes: kubelets that admit, run and end pods, and what the cluster's own controllers do about nodes and orphans.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels;
use serde_json::{Value, json};

use super::agents::Agent;
use super::store::{Key, is_deleting, meta};
use super::world::World;

/// How often kubelets renew their leases, in milliseconds.
const HEARTBEAT: u64 = 10_000;
/// How long a node may be silent before the cluster says so.
const SILENT: u64 = 40_000;

/// How a process ends that an agent ends.
pub const FENCED: i64 = 137;

/// A machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub cpus: i64,
    /// It is on.
    pub on: bool,
    /// Nobody hears it before then.
    pub cut_until: u64,
    /// It refuses so many pods.
    pub refuses: u8,
    beat: u64,
    heard: u64,
    /// Since when its node is gone.
    gone: Option<u64>,
    /// Something took CPUs that the operator could not know of in time.
    pub crowded: bool,
    pub agent: Agent,
}

/// A process in a pod.
#[derive(Clone, Debug)]
pub struct Process {
    pub node: String,
    pub pod: String,
    pub job: String,
    pub proc: u32,
    cpus: i64,
    ends: u64,
    code: i64,
    /// When it was told to end, and when it does then, with which code.
    pub told: Option<(u64, u64, i64)>,
    /// The shortest grace that the kubelet was told, in seconds.
    grace: u64,
    /// The agent holds it still.
    pub frozen: bool,
    /// Since when the agent was asked to.
    pub asked: Option<u64>,
    pub alive: bool,
    /// The lease of its claim, in seconds.
    pub lease: Option<u64>,
    /// When the agent ended it, having been cut off for that long.
    pub fenced: Option<u64>,
    /// Somebody took its pod away under it.
    pub disowned: bool,
}

impl Process {
    /// It ends by itself now.
    pub fn end_now(&mut self, at: u64) {
        if self.ends < u64::MAX / 2 {
            self.ends = self.ends.min(at);
        }
    }

    /// Its time does not pass for so long.
    pub fn stand_still(&mut self, span: u64) {
        if self.ends < u64::MAX / 2 {
            self.ends += span;
        }
    }

    /// Somebody other than its kubelet kills it, which was told to end.
    pub fn kill_now(&mut self, at: u64) {
        if let Some((told, ..)) = self.told.filter(|(_, dies, _)| *dies > at) {
            self.told = Some((told, at, 137));
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Kubelets {
    pub machines: BTreeMap<String, Machine>,
    /// By pod uid.
    pub processes: BTreeMap<String, Process>,
}

pub fn node_key(name: &str) -> Key {
    Key::new("nodes", "", name)
}

/// Whether a pod is of a job of the pool.
pub fn is_ours(pod: &Value) -> bool {
    pod["metadata"]["labels"][labels::JOB_UID].is_string()
}

/// Whether a pod does backfill work.
pub fn is_backfill(pod: &Value) -> bool {
    pod["metadata"]["labels"][labels::BACKFILL].is_string()
}

/// Whether a pod is the operator's.
pub fn is_of_pool(pod: &Value) -> bool {
    is_ours(pod) || is_backfill(pod)
}

pub fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn cpus_of(pod: &Value) -> i64 {
    let text =
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap_or("0").to_owned();
    text.strip_suffix('m')
        .map_or_else(|| text.parse::<i64>().unwrap_or(0) * 1000, |milli| milli.parse().unwrap_or(0))
        / 1000
}

/// What a kubelet says of an image that is not even a name: it does not try again.
const HOPELESS: &str = "InvalidImageName";

/// What keeps a pod's container from starting.
fn waits_for(pod: &Value) -> &str {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str().unwrap_or_default()
}

impl World {
    /// Half a second of all nodes.
    pub fn tick(&mut self) {
        let at = self.at();
        let names: Vec<String> = self.kubelets.machines.keys().cloned().collect();
        for name in names {
            let machine = self.kubelets.machines[&name].clone();
            if machine.on {
                self.run_agent(&name, at, at >= machine.cut_until);
            }
            if machine.on && at >= machine.cut_until {
                self.heartbeat(&name, at);
                self.run_pods(&name, at);
            }
            self.node_controller(&name, at);
        }
        self.collect_garbage();
    }

    fn heartbeat(&mut self, name: &str, at: u64) {
        let machine = self.kubelets.machines.get_mut(name).unwrap();
        machine.heard = at;
        if machine.beat != 0 && at < machine.beat + HEARTBEAT {
            return;
        }
        machine.beat = at;
        let key = Key::new("leases", "kube-node-lease", name);
        let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": at.to_string()});
        let spec = {
            let mut spec = spec;
            spec["renewTime"] = json!(self.wall_at(at).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
            spec
        };
        self.put(key, json!({"metadata": {}, "spec": spec}));
        self.set_ready(name, "True");
    }

    fn set_ready(&mut self, name: &str, ready: &str) {
        self.edit(&node_key(name), |node| {
            node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        });
    }

    fn run_pods(&mut self, node: &str, at: u64) {
        let pods: Vec<(Key, Arc<Value>)> = self
            .store
            .of("pods")
            .filter(|(_, pod)| is_of_pool(pod) && pod["spec"]["nodeName"] == node)
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect();
        for (key, pod) in &pods {
            self.run_pod(node, key, pod, at);
        }
        // A process whose pod is gone is ended.
        let uids: Vec<&str> = pods.iter().map(|(_, pod)| meta(pod, "uid")).collect();
        for (uid, process) in &mut self.kubelets.processes {
            if process.node == node && process.alive && !uids.contains(&uid.as_str()) {
                process.alive = false;
            }
        }
    }

    fn run_pod(&mut self, node: &str, key: &Key, pod: &Value, at: u64) {
        let uid = meta(pod, "uid").to_owned();
        let deleting = is_deleting(pod);
        if is_over(pod) {
            if deleting {
                self.delete(key, Some(0));
            }
            return;
        }
        let Some(process) = self.kubelets.processes.get(&uid).cloned() else {
            if deleting {
                // It says no longer what the container waited for.
                if !waits_for(pod).is_empty() {
                    let state = json!({"waiting": {"reason": "ContainerCreating"}});
                    self.edit(key, |pod| pod["status"]["containerStatuses"][0]["state"] = state);
                }
                self.delete(key, Some(0));
            } else if pod["status"]["phase"] == "Pending" && waits_for(pod) != HOPELESS {
                self.admit(node, key, pod);
            }
            return;
        };
        if let Some(fenced) = process.fenced {
            if process.ends <= fenced {
                self.exit(key, &uid, process.code, process.ends, process.told.is_none() && !deleting);
            } else {
                self.exit(key, &uid, FENCED, fenced, false);
            }
            return;
        }
        if !process.alive {
            // The machine was off meanwhile: the pod is not admitted again, or the runtime does not know what became of it.
            if self.draw(&format!("lost {uid}"), 2) == 0 {
                self.fail(key, "UnexpectedAdmissionError");
            } else {
                self.lose(key);
            }
            return;
        }
        if process.ends <= at && process.told.is_none_or(|(_, dies, _)| process.ends < dies) {
            self.exit(key, &uid, process.code, process.ends, process.told.is_none() && !deleting);
        } else if deleting {
            let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
            self.tell_to_end(&uid, &process, grace, at);
            match self.kubelets.processes[&uid].told {
                Some((_, dies, code)) if dies <= at && process.told.is_some() => {
                    self.exit(key, &uid, code, at, false);
                }
                _ => {}
            }
        }
    }

    /// The kubelet tells a process to end, or that it has less time for it than it was told first.
    fn tell_to_end(&mut self, uid: &str, process: &Process, grace: u64, at: u64) {
        // Some obey, some do not, and of some the kubelet does not get rid even then, for a while.
        let (own, stuck, code) = match self.draw(&format!("obeys {uid}"), 5) {
            0 => (300, 0, 0),
            1 => (2000, 0, 143),
            2 => (5000, 0, 0),
            3 => (u64::MAX / 2, 0, 137),
            _ => (u64::MAX / 2, 45_000, 137),
        };
        let own = if process.frozen { u64::MAX / 2 } else { own };
        let killed = at + grace * 1000 + stuck;
        let told = match process.told {
            None if own <= grace * 1000 => (at, at + own, code),
            None => (at, killed, 137),
            Some((told, dies, _)) if grace < process.grace && killed < dies => (told, killed, 137),
            Some(told) => told,
        };
        let process = self.kubelets.processes.get_mut(uid).unwrap();
        (process.told, process.grace) = (Some(told), grace);
    }

    fn exit(&mut self, key: &Key, uid: &str, code: i64, when: u64, by_itself: bool) {
        let time = self.text(when);
        let process = self.kubelets.processes.get_mut(uid).unwrap();
        process.alive = false;
        let process = process.clone();
        super::checks::exited(self, &process, (code, when), by_itself);
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let message = (process.fenced.is_some() && code == FENCED).then_some(labels::FENCED);
        let state = json!({"terminated": {"exitCode": code, "finishedAt": time, "message": message}});
        self.note(|| {
            format!(
                "the kubelet: {} ends with {code}{}",
                key.name,
                if by_itself { "" } else { ", having been told to" }
            )
        });
        self.edit(key, |pod| {
            let conditions = pod["status"]["conditions"].take();
            pod["status"] = json!({"phase": phase, "containerStatuses": [{"name": "main", "state": state}]});
            // What others say of a pod the kubelet leaves as it is.
            if conditions.is_array() {
                pod["status"]["conditions"] = conditions;
            }
        });
    }

    fn fail(&mut self, key: &Key, reason: &str) {
        self.note(|| format!("the kubelet: {} fails: {reason}", key.name));
        self.edit(key, |pod| pod["status"] = json!({"phase": "Failed", "reason": reason, "message": "no"}));
    }

    /// The runtime makes up how a container ended that it does not find after the machine has started again.
    fn lose(&mut self, key: &Key) {
        self.note(|| format!("the kubelet: {} is not found", key.name));
        let time = self.text(self.at());
        let state = json!({"terminated": {"exitCode": 255, "reason": "Unknown", "finishedAt": time}});
        self.edit(key, |pod| {
            let conditions = pod["status"]["conditions"].take();
            pod["status"] =
                json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": state}]});
            if conditions.is_array() {
                pod["status"]["conditions"] = conditions;
            }
        });
    }

    /// Whether a container of the pod cannot start now. Those of stories can.
    fn meets_obstacle(&self, uid: &str, pod: &Value) -> bool {
        let meets = if waits_for(pod).is_empty() {
            self.draw(&format!("starts {uid}"), 40) == 0
        } else {
            self.draw(&format!("starts {uid} {}", self.at()), 10) != 0
        };
        self.seed != 0 && meets
    }

    /// The pod's image cannot be had, for now or for ever.
    fn cannot_start(&mut self, key: &Key, uid: &str) {
        let reason = if self.draw(&format!("hopeless {uid}"), 2) == 0 { HOPELESS } else { "ErrImagePull" };
        self.coverage.fault("kubelet cannot start a pod");
        self.note(|| format!("the kubelet: {} cannot start: {reason}", key.name));
        let state = json!({"waiting": {"reason": reason, "message": "no"}});
        self.edit(key, |pod| {
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
        });
    }

    fn admit(&mut self, node: &str, key: &Key, pod: &Value) {
        let cpus = cpus_of(pod);
        let alive = self.kubelets.processes.values().filter(|process| process.node == node && process.alive);
        let (used, disowned) = alive.fold((0, false), |(used, disowned), process| {
            (used + process.cpus, disowned || process.disowned)
        });
        let foreign = self.foreign_cpus(node);
        let machine = self.kubelets.machines.get_mut(node).unwrap();
        let full = used + foreign + cpus > machine.cpus;
        let injected = machine.refuses > 0;
        machine.refuses = machine.refuses.saturating_sub(1);
        let machine = machine.clone();
        let uid = meta(pod, "uid").to_owned();
        if !full && !is_backfill(pod) && self.meets_obstacle(&uid, pod) {
            return self.cannot_start(key, &uid);
        }
        if injected || full {
            let excused = injected || machine.crowded || disowned || foreign > 0;
            if !excused {
                let have = machine.cpus;
                self.violated(format!(
                    "{} of {cpus} CPUs does not fit on {node}: {used} of {have} are in use",
                    key.name
                ));
            }
            self.fail(key, "OutOfcpu");
            return;
        }
        let at = self.at();
        let (job, proc) = super::checks::proc_of(pod);
        let own = self.draw(&format!("span {} {proc}", key.name), 40);
        // Little backfill work ends by itself.
        let endless = is_backfill(pod) && self.draw(&format!("fills {uid}"), 4) != 0;
        let forever = endless || key.name.starts_with("forever");
        let ends = if forever { u64::MAX / 2 } else { at + 1000 + own * 1000 };
        let code = i64::from(self.draw(&format!("code {job} {proc}"), 5) == 0) * 3;
        let process = Process {
            node: node.to_owned(),
            pod: key.name.clone(),
            job,
            proc,
            cpus,
            ends,
            code,
            told: None,
            grace: u64::MAX,
            frozen: false,
            asked: None,
            alive: true,
            lease: pod["metadata"]["annotations"][labels::LEASE_SECONDS]
                .as_str()
                .and_then(|seconds| seconds.parse().ok()),
            fenced: None,
            disowned: false,
        };
        super::checks::started(self, &process);
        self.note(|| format!("the kubelet: {} runs on {node}", key.name));
        self.kubelets.processes.insert(uid, process);
        self.edit(key, |pod| pod["status"] = json!({"phase": "Running"}));
    }

    fn foreign_cpus(&self, node: &str) -> i64 {
        let there =
            self.store.of("pods").filter(|(_, pod)| !is_of_pool(pod) && pod["spec"]["nodeName"] == node);
        there.map(|(_, pod)| cpus_of(pod)).sum()
    }

    /// Says that a node is silent; fails and deletes the pods of one that is gone.
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
            for key in pods {
                self.edit(&key, |pod| {
                    if !is_over(pod) {
                        pod["status"] = json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget",
                            "status": "True", "reason": "DeletionByPodGC", "message": "node no longer exists"}]});
                    }
                });
                self.delete(&key, Some(0));
            }
        }
    }

    /// Pods go after the job or policy that owns them.
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

    /// The machine goes off, and with it what ran there.
    pub fn switch_off(&mut self, name: &str) {
        if let Some(machine) = self.kubelets.machines.get_mut(name) {
            machine.on = false;
        }
        for process in self.kubelets.processes.values_mut().filter(|process| process.node == name) {
            process.alive = false;
        }
    }
}
