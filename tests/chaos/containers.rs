//! One kubelet: which pods it admits, what it tells their programs, and what it reports of their containers, in its order.
//!
//! Of a pod that ends it reports first that the main container has ended, in phase Running; when all containers have, about a
//! second later, the terminal phase; and then it deletes the pod with grace 0, if somebody asked for its deletion.

use std::sync::Arc;

use api::labels;
use serde_json::{Value, json};

use super::kubelets::{disrupt, is_backfill, is_of_pool, is_over};
use super::processes::{Beside, Fate, Fated, NEVER, Over, Process};
use super::store::{Key, is_deleting, meta};
use super::world::World;

/// What a kubelet says of an image that is not even a name: it does not try again.
const HOPELESS: &str = "InvalidImageName";
/// The container beside the main one.
const BESIDE: &str = "proxy";

fn cpus_of(pod: &Value) -> i64 {
    let text =
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap_or("0").to_owned();
    text.strip_suffix('m')
        .map_or_else(|| text.parse::<i64>().unwrap_or(0) * 1000, |milli| milli.parse().unwrap_or(0))
        / 1000
}

/// What keeps a pod's container from starting.
fn waits_for(pod: &Value) -> &str {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str().unwrap_or_default()
}

/// What a webhook puts beside the main container of a pod that is to be made.
pub fn inject(world: &mut World, body: &Value) -> Option<Value> {
    if body["metadata"]["labels"][labels::JOB_UID].is_null() {
        return None;
    }
    let drawn = world.draw(&format!("beside {} {}", meta(body, "name"), world.at()), 40);
    let beside = match (world.kubelets.fated, drawn) {
        (Some(Fated::Beside(beside)), _) => beside,
        (None, 0) if world.seed != 0 => Beside::Container,
        (None, 1 | 2) if world.seed != 0 => Beside::Sidecar,
        _ => return None,
    };
    let mut pod = body.clone();
    let container = json!({"name": BESIDE, "image": "proxy"});
    match beside {
        Beside::Container => {
            world.coverage.fault("container that outlives the main one");
            pod["spec"]["containers"].as_array_mut()?.push(container);
        }
        Beside::Sidecar => {
            world.coverage.fault("sidecar");
            let mut sidecar = container;
            sidecar["restartPolicy"] = json!("Always");
            pod["spec"]["initContainers"] = json!([sidecar]);
        }
    }
    Some(pod)
}

fn beside(pod: &Value) -> Option<Beside> {
    let of = |field: &str| {
        pod["spec"][field].as_array().is_some_and(|list| list.iter().any(|c| c["name"] == BESIDE))
    };
    if of("containers") { Some(Beside::Container) } else { of("initContainers").then_some(Beside::Sidecar) }
}

impl World {
    /// What the programs on a machine do, whether anybody hears of it or not.
    pub fn run_processes(&mut self, node: &str, at: u64) {
        for process in self.kubelets.processes.values_mut().filter(|process| process.node == node) {
            process.live(at);
        }
    }

    pub fn run_pods(&mut self, node: &str, at: u64) {
        let pods: Vec<(Key, Arc<Value>)> = self
            .store
            .of("pods")
            .filter(|(_, pod)| is_of_pool(pod) && pod["spec"]["nodeName"] == node)
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect();
        for (key, pod) in &pods {
            self.run_pod(node, key, pod, at);
        }
        // A program whose pod is gone is told to end, with the least grace, unless it was before.
        let uids: Vec<&str> = pods.iter().map(|(_, pod)| meta(pod, "uid")).collect();
        let seed = self.seed;
        for (uid, process) in &mut self.kubelets.processes {
            if process.node == node && !process.settled && !uids.contains(&uid.as_str()) {
                process.tell(uid, 0, at, seed);
                process.settled = process.all_over(uid, seed).is_some_and(|over| over <= at);
            }
        }
    }

    fn run_pod(&mut self, node: &str, key: &Key, pod: &Value, at: u64) {
        let uid = meta(pod, "uid").to_owned();
        if !self.kubelets.processes.contains_key(&uid) {
            return self.run_unstarted(node, key, pod);
        }
        if is_deleting(pod) || is_over(pod) {
            self.tell_to_end(&uid, pod, at);
        }
        let process = self.kubelets.processes[&uid].clone();
        let Some(over) = process.over.clone() else {
            if !process.alive {
                self.lose(node, key, pod);
            }
            return;
        };
        // A kubelet that evicts a pod ends all containers before it writes anything of them.
        let ended = match &over.evicted {
            Some(_) => Some(over.at),
            None => process.all_over(&uid, self.seed),
        };
        let seed = self.seed;
        let Some(since) = process.reported else {
            super::ends::reported(self, &process, &over, pod);
            self.kubelets.processes.get_mut(&uid).unwrap().reported = Some(at);
            self.report_end(key, &process, &over, ended.is_some_and(|ended| ended <= at));
            // Now and then nobody sees a pod between the end of its container and its own.
            if process.beside.is_none() && self.draw(&format!("at once {uid}"), 8) == 0 && seed != 0 {
                self.settle(key, &uid, &over);
            }
            return;
        };
        let Some(ended) = ended.filter(|ended| *ended <= at) else { return };
        let takes = [500, 1000, 1000, 1500, 3000][self.draw(&format!("takes {uid}"), 5) as usize];
        if process.settled {
            if is_deleting(pod) {
                self.delete(key, Some(0));
            }
        } else if at >= ended.max(since) + takes {
            self.report_end(key, &process, &over, true);
            self.settle(key, &uid, &over);
        }
    }

    /// A pod whose containers have not run here.
    fn run_unstarted(&mut self, node: &str, key: &Key, pod: &Value) {
        if is_over(pod) || is_deleting(pod) {
            if !is_over(pod) {
                self.end_unstarted(key, pod);
            }
            if is_deleting(pod) {
                self.delete(key, Some(0));
            }
        } else if pod["status"]["phase"] == "Pending" && waits_for(pod) != HOPELESS {
            self.admit(node, key, pod);
        }
    }

    /// A pod that is deleted before it started: some kubelets make up how its container ended.
    fn end_unstarted(&mut self, key: &Key, pod: &Value) {
        if self.draw(&format!("unstarted {}", meta(pod, "uid")), 2) == 0 {
            self.coverage.fault("pod that never started ends with 137");
            let state = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": null,
                "message": "The container could not be located when the pod was deleted."}});
            self.edit(key, |pod| {
                pod["status"]["phase"] = json!("Failed");
                pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
            });
        } else if !waits_for(pod).is_empty() {
            // It says no longer what the container waited for.
            let state = json!({"waiting": {"reason": "ContainerCreating"}});
            self.edit(key, |pod| pod["status"]["containerStatuses"][0]["state"] = state);
        }
    }

    /// The kubelet tells the containers to end. What it is told later does not change what it told them.
    fn tell_to_end(&mut self, uid: &str, pod: &Value, at: u64) {
        let own = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(30);
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(own);
        let seed = self.seed;
        self.kubelets.processes.get_mut(uid).unwrap().tell(uid, grace, at, seed);
    }

    /// Says that the main container has ended; the phase stays.
    fn report_end(&mut self, key: &Key, process: &Process, over: &Over, all: bool) {
        let time = self.text_of(&process.node, over.at);
        let Over { code, reason, message, own, .. } = over;
        let state = json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": time, "message": message}});
        let stopped = if process.beside == Some(Beside::Container) { 143 } else { 0 };
        let other = if all { json!({"terminated": {"exitCode": stopped}}) } else { json!({"running": {}}) };
        let told = if *own { "" } else { ", though not by itself" };
        self.note(|| format!("the kubelet: {} has ended with {code}{told}", key.name));
        let beside = process.beside;
        self.edit(key, |pod| {
            let main = json!({"name": "main", "state": state});
            let other = json!({"name": BESIDE, "state": other});
            pod["status"]["containerStatuses"] = match beside {
                Some(Beside::Container) => json!([main, other]),
                _ => json!([main]),
            };
            if beside == Some(Beside::Sidecar) {
                pod["status"]["initContainerStatuses"] = json!([other]);
            }
        });
    }

    /// All containers have ended: the terminal phase, unless somebody else has written one.
    fn settle(&mut self, key: &Key, uid: &str, over: &Over) {
        self.kubelets.processes.get_mut(uid).unwrap().settled = true;
        let now = self.text(self.at());
        // A container beside the main one ends because it is told to, and so it has failed, and its pod with it.
        let failed = over.code != 0 || self.kubelets.processes[uid].beside == Some(Beside::Container);
        let phase = if failed { "Failed" } else { "Succeeded" };
        self.note(|| format!("the kubelet: {} is {phase}", key.name));
        self.edit(key, |pod| {
            if is_over(pod) {
                return;
            }
            pod["status"]["phase"] = json!(phase);
            if let Some(message) = &over.evicted {
                pod["status"]["phase"] = json!("Failed");
                pod["status"]["reason"] = json!("Evicted");
                pod["status"]["message"] = json!(message);
                disrupt(pod, "TerminationByKubelet", &now);
            }
        });
    }

    fn fail(&mut self, key: &Key, reason: &str) {
        self.note(|| format!("the kubelet: {} fails: {reason}", key.name));
        self.edit(key, |pod| {
            let conditions = pod["status"]["conditions"].take();
            // Of a pod that it does not admit a kubelet knows no containers.
            pod["status"] = json!({"phase": "Failed", "reason": reason, "message": "no"});
            if conditions.is_array() {
                pod["status"]["conditions"] = conditions;
            }
        });
    }

    /// The machine was off meanwhile: the pod is not admitted again, or the runtime does not know what became of it and the
    /// kubelet makes something up.
    fn lose(&mut self, node: &str, key: &Key, pod: &Value) {
        if is_over(pod) {
            if is_deleting(pod) {
                self.delete(key, Some(0));
            }
            return;
        }
        let uid = meta(pod, "uid");
        self.coverage.fault("containers lost");
        let how = self.draw(&format!("lost {uid}"), 4);
        if how == 0 {
            return self.fail(key, "UnexpectedAdmissionError");
        }
        self.note(|| format!("the kubelet: {} is not found", key.name));
        let time = self.text_of(node, self.at());
        let status = if how == 1 {
            json!({"name": "main", "state": {"terminated": {"exitCode": 255, "reason": "Unknown", "finishedAt": time}}})
        } else {
            json!({"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": null,
                "message": "The container could not be located when the pod was terminated"}}})
        };
        self.edit(key, |pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["containerStatuses"] = json!([status]);
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

    /// The command does not exist: the program never runs, and the kubelet does not try again.
    fn has_no_command(&mut self, node: &str, key: &Key) {
        self.coverage.fault("command does not exist");
        self.note(|| format!("the kubelet: {} has no such command", key.name));
        let now = self.text_of(node, self.at());
        let state = json!({"terminated": {"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z",
            "finishedAt": now, "message": "exec: \"nope\": executable file not found in $PATH"}});
        self.edit(key, |pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
        });
    }

    /// How a program ends if nobody tells it to, and after how many milliseconds.
    fn fate(&mut self, key: &Key, pod: &Value) -> (u64, Fate) {
        let uid = meta(pod, "uid");
        let (job, proc) = super::checks::proc_of(pod);
        let own = self.draw(&format!("span {} {proc}", key.name), 40);
        // Little backfill work ends by itself.
        let endless = is_backfill(pod) && self.draw(&format!("fills {uid}"), 4) != 0;
        let forever = endless || key.name.starts_with("forever");
        let code = i64::from(self.draw(&format!("code {job} {proc}"), 5) == 0) * 3;
        let unlucky = match self.kubelets.fated {
            Some(Fated::OutOfMemory) => 0,
            Some(Fated::OutOfDisk) => 1,
            Some(_) => 99,
            None if self.seed == 0 || is_backfill(pod) => 99,
            None => self.draw(&format!("fate {uid}"), 60),
        };
        match unlucky {
            0 => {
                self.coverage.fault("out of memory");
                (1000 + own * 500, Fate::OutOfMemory)
            }
            1 => {
                self.coverage.fault("out of disk");
                (1000 + own * 500, Fate::OutOfDisk)
            }
            _ if forever => (NEVER, Fate::Exits(code)),
            _ => (1000 + own * 1000, Fate::Exits(code)),
        }
    }

    fn admit(&mut self, node: &str, key: &Key, pod: &Value) {
        let cpus = cpus_of(pod);
        // What has ended counts until the kubelet has seen the end of all containers of the pod.
        let there = self.kubelets.processes.values().filter(|p| p.node == node && (p.alive || !p.settled));
        let (used, disowned) = there.fold((0, false), |(used, disowned), process| {
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
        if !full && !injected && !is_backfill(pod) {
            let drawn = match self.kubelets.fated {
                Some(Fated::NoCommand) => 0,
                Some(Fated::InitFails) => 2,
                None if self.seed != 0 => self.draw(&format!("command {uid}"), 160),
                _ => 99,
            };
            match drawn {
                0 | 1 => return self.has_no_command(node, key),
                2 if !pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("forever")) => {
                    return self.init_fails(node, key, pod);
                }
                _ => {}
            }
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
        self.begin(node, key, pod, cpus);
    }

    /// An init container of the job fails: the main container never starts, and the pod has failed.
    fn init_fails(&mut self, node: &str, key: &Key, pod: &Value) {
        const CODE: i64 = 3;
        self.coverage.fault("init container fails");
        self.note(|| format!("the kubelet: an init container of {} fails", key.name));
        let at = self.at();
        let over = Over { at, code: CODE, reason: "Error", own: true, message: None, evicted: None };
        let mut process = self.process(node, key, pod, 0);
        (process.alive, process.reported, process.settled) = (false, Some(at), true);
        process.over = Some(over.clone());
        super::ends::reported(self, &process, &over, pod);
        self.kubelets.processes.insert(meta(pod, "uid").to_owned(), process);
        let time = self.text_of(node, at);
        let ended = json!({"terminated": {"exitCode": CODE, "reason": "Error", "finishedAt": time}});
        let waits = json!({"waiting": {"reason": "PodInitializing"}});
        self.edit(key, |pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["initContainerStatuses"] = json!([{"name": "setup", "state": ended}]);
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": waits}]);
        });
    }

    /// The program of an admitted pod begins.
    fn begin(&mut self, node: &str, key: &Key, pod: &Value, cpus: i64) {
        let process = self.process(node, key, pod, cpus);
        super::checks::started(self, &process);
        self.note(|| format!("the kubelet: {} runs on {node}", key.name));
        self.kubelets.processes.insert(meta(pod, "uid").to_owned(), process);
        let state = json!({"running": {"startedAt": self.text_of(node, self.at())}});
        self.edit(key, |pod| {
            pod["status"]["phase"] = json!("Running");
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
        });
    }

    fn process(&mut self, node: &str, key: &Key, pod: &Value, cpus: i64) -> Process {
        let (at, (job, proc)) = (self.at(), super::checks::proc_of(pod));
        let (span, fate) = self.fate(key, pod);
        Process {
            node: node.to_owned(),
            pod: key.name.clone(),
            job,
            proc,
            cpus,
            ends: if span == NEVER { NEVER } else { at + span },
            fate,
            beside: beside(pod),
            told: None,
            frozen: false,
            asked: None,
            alive: true,
            over: None,
            reported: None,
            settled: false,
            lease: pod["metadata"]["annotations"][labels::LEASE_SECONDS]
                .as_str()
                .and_then(|seconds| seconds.parse().ok()),
            handler: match self.kubelets.fated {
                Some(Fated::Handler(n)) => Some(n),
                _ => None,
            },
            disowned: false,
        }
    }

    fn foreign_cpus(&self, node: &str) -> i64 {
        let there =
            self.store.of("pods").filter(|(_, pod)| !is_of_pool(pod) && pod["spec"]["nodeName"] == node);
        there.map(|(_, pod)| cpus_of(pod)).sum()
    }
}
