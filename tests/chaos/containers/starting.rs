//! How a pod starts: what a webhook adds to it, whether its kubelet admits it, what keeps its containers from running,
//! and which program begins.

use api::labels;
use serde_json::{Value, json};

use super::super::checks::{proc_of, started};
use super::super::ends::reported;
use super::super::kubelets::{is_backfill, is_of_pool};
use super::super::people::is_unknown;
use super::super::processes::{Beside, Fate, Fated, NEVER, Over, Process, Standing};
use super::super::store::{Key, meta};
use super::super::world::World;
use super::{BESIDE, HOPELESS, waits_for};

fn cpus_of(pod: &Value) -> i64 {
    let text =
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap_or("0").to_owned();
    text.strip_suffix('m')
        .map_or_else(|| text.parse::<i64>().unwrap_or(0) * 1000, |milli| milli.parse().unwrap_or(0))
        / 1000
}

/// The memory in MiB that the main container requests. The operator writes whole MiB or GiB.
fn memory_of(pod: &Value) -> i64 {
    let text = pod["spec"]["containers"][0]["resources"]["requests"]["memory"].as_str().unwrap_or("0");
    let units = [("Gi", 1024), ("Mi", 1)];
    let found =
        units.into_iter().find_map(|(unit, mib)| Some(text.strip_suffix(unit)?.parse::<i64>().ok()? * mib));
    found.unwrap_or_else(|| text.parse::<i64>().unwrap_or(0) >> 20)
}

/// The pod with what a webhook adds beside its main container when the pod is made; `None` if the webhook adds nothing.
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
    /// Whether something keeps a container of the pod from starting now. In stories nothing does.
    fn meets_obstacle(&self, uid: &str, pod: &Value) -> bool {
        let meets = if waits_for(pod).is_empty() {
            self.draw(&format!("starts {uid}"), 40) == 0
        } else {
            self.draw(&format!("starts {uid} {}", self.at()), 10) != 0
        };
        self.seed != 0 && meets
    }

    /// Reports that the pod's image cannot be pulled, for now or for ever.
    fn cannot_start(&mut self, key: &Key, uid: &str) {
        let reason = if self.draw(&format!("hopeless {uid}"), 2) == 0 { HOPELESS } else { "ErrImagePull" };
        self.coverage.fault("kubelet cannot start a pod");
        self.note(|| format!("the kubelet: {} cannot start: {reason}", key.name));
        let state = json!({"waiting": {"reason": reason, "message": "no"}});
        self.edit(key, |pod| {
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
        });
    }

    /// Reports that the container's command does not exist. The program never runs, and the kubelet does not try again.
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
        let (job, proc) = proc_of(pod);
        let own = self.draw(&format!("span {} {proc}", key.name), 40);
        // Most backfill work does not end by itself.
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

    pub(super) fn admit(&mut self, node: &str, key: &Key, pod: &Value) {
        let cpus = cpus_of(pod);
        // The CPUs that a pod takes count until the kubelet has seen the end of all its containers.
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
            let unknown = || self.on_node(node).any(is_unknown);
            let excused = injected || machine.crowded || disowned || foreign > 0 || unknown();
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

    /// Fails an init container of the job. The main container never starts, and the pod fails.
    fn init_fails(&mut self, node: &str, key: &Key, pod: &Value) {
        const CODE: i64 = 3;
        self.coverage.fault("init container fails");
        self.note(|| format!("the kubelet: an init container of {} fails", key.name));
        let at = self.at();
        let over = Over { at, code: CODE, reason: "Error", own: true, message: None, evicted: None };
        let mut process = self.process(node, key, pod, 0);
        (process.alive, process.reported, process.settled) = (false, Some(at), true);
        process.over = Some(over.clone());
        reported(self, &process, &over, pod);
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

    /// Begins the program of a pod that the kubelet admitted.
    fn begin(&mut self, node: &str, key: &Key, pod: &Value, cpus: i64) {
        let process = self.process(node, key, pod, cpus);
        started(self, &process);
        self.note(|| format!("the kubelet: {} runs on {node}", key.name));
        self.kubelets.processes.insert(meta(pod, "uid").to_owned(), process);
        let state = json!({"running": {"startedAt": self.text_of(node, self.at())}});
        self.edit(key, |pod| {
            pod["status"]["phase"] = json!("Running");
            pod["status"]["containerStatuses"] = json!([{"name": "main", "state": state}]);
        });
    }

    fn process(&mut self, node: &str, key: &Key, pod: &Value, cpus: i64) -> Process {
        let (at, (job, proc)) = (self.at(), proc_of(pod));
        let (span, fate) = self.fate(key, pod);
        Process {
            node: node.to_owned(),
            pod: key.name.clone(),
            job,
            proc,
            cpus,
            memory: memory_of(pod),
            began: at,
            ends: if span == NEVER { NEVER } else { at + span },
            fate,
            beside: beside(pod),
            told: None,
            standing: Standing::No,
            alive: true,
            over: None,
            reported: None,
            settled: false,
            lease: super::super::marks::annotation(pod, labels::LEASE_SECONDS)
                .and_then(|seconds| seconds.parse().ok()),
            handler: match self.kubelets.fated {
                Some(Fated::Handler(n)) => Some(n),
                _ => None,
            },
            disowned: false,
        }
    }

    fn foreign_cpus(&self, node: &str) -> i64 {
        self.on_node(node).filter(|pod| !is_of_pool(pod)).map(cpus_of).sum()
    }

    fn on_node<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Value> {
        self.store.of("pods").map(|(_, pod)| &**pod).filter(move |pod| pod["spec"]["nodeName"] == node)
    }
}
