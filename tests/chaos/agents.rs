//! The nodes' agents: how late they are, and how they fail. The code of the real agent decides what these agents do to processes,
//! and what they report and when.

use std::collections::BTreeSet;

use agent::report::{Figures, Problem, Reporter, Senses};
use agent::{Act, Pod, ProcessState, next_act};
use api::{LastInput, NodeReport, PodUsage, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use super::kubelets::{FENCED, is_over, node_key};
use super::plan::Presence;
use super::processes::{Over, Standing};
use super::store::Key;
use super::world::World;

/// How often an agent renews its Lease, in milliseconds.
const HEARTBEAT: u64 = 10_000;
/// The virtual time from one tick of the world to the next, in milliseconds.
const TICK: u64 = 500;

/// The state of a machine's agent.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub presence: Option<Presence>,
    /// Until when the owner is at the machine.
    pub owner_until: u64,
    beat: u64,
    /// The report of the agent; none before its first report. An agent that starts anew knows nothing.
    reporter: Option<Reporter>,
    /// When the agent last renewed its Lease with the promise to end pods whose claim's lease passes before the next
    /// renewal.
    promised: Option<u64>,
    /// The pods of which the agent has learned, by uid. The agent names these pods, and ends no others.
    permit: BTreeSet<String>,
}

/// How long after its start an agent learns of a pod, at most, in milliseconds.
const LEARNS_WITHIN: u64 = 6000;
/// By how much an agent may be late in keeping its promise, in milliseconds: half of what the operator waits after a
/// lease has passed.
const KEPT_WITHIN: u64 = 15_000;

fn lease_key(node: &str) -> Key {
    Key::new("leases", "kube-node-lease", &format!("{}{node}", labels::AGENT_LEASE_PREFIX))
}

fn report_key(node: &str) -> Key {
    Key::new("nodereports", "", node)
}

impl World {
    /// Installs an agent on a node, takes it off, or lets it fail from now on.
    pub fn install(&mut self, node: &str, presence: Presence) {
        let Some(machine) = self.kubelets.machines.get_mut(node) else { return };
        machine.agent.presence = Some(presence);
        machine.agent.beat = 0;
        machine.agent.reporter = None;
        if presence == Presence::TakenOff {
            self.delete(&report_key(node), None);
            self.delete(&lease_key(node), None);
            self.kubelets.machines.get_mut(node).unwrap().agent.promised = None;
            // When the agent goes, processes that it held still go on.
            for process in self.kubelets.processes.values_mut().filter(|process| process.node == node) {
                process.let_go_on();
            }
        }
    }

    /// Runs the agent of a machine that is on for half a second. `heard` tells whether the machine is connected.
    pub fn run_agent(&mut self, node: &str, at: u64, heard: bool) {
        for process in self.kubelets.processes.values_mut() {
            if process.node == node && process.stands_still() && process.alive {
                process.stand_still(TICK);
            }
        }
        self.fence(node, at);
        let promises = self.draw(&format!("fences {node}"), 4) != 0;
        let Some(machine) = self.kubelets.machines.get_mut(node) else { return };
        let works = matches!(machine.agent.presence, Some(Presence::Works));
        let speaks = works || machine.agent.presence == Some(Presence::CannotWork);
        if !speaks || !heard {
            return;
        }
        let beats = machine.agent.beat == 0 || at >= machine.agent.beat + HEARTBEAT;
        let owner_until = machine.agent.owner_until;
        if beats {
            machine.agent.beat = at;
        }
        if self.store.get(&node_key(node)).is_none() {
            return;
        }
        if beats {
            let time = self.wall_at(at).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
            let spec = json!({"holderIdentity": "agent", "leaseDurationSeconds": 40, "renewTime": time});
            let annotations = json!({labels::FENCES: promises.to_string()});
            self.put(lease_key(node), json!({"metadata": {"annotations": annotations}, "spec": spec}));
            self.kubelets.machines.get_mut(node).unwrap().agent.promised = promises.then_some(at);
        }
        self.learn(node, at);
        if works {
            self.obey(node, at);
        }
        self.report(node, at, works, owner_until);
    }

    /// Learns of the processes that began some time ago. A node may be cut off before.
    fn learn(&mut self, node: &str, at: u64) {
        let late = |uid: &str| self.draw(&format!("learns {uid}"), LEARNS_WITHIN);
        let processes = self.kubelets.processes.iter();
        let there = processes.filter(|(_, process)| process.node == node && process.may_run());
        let permit =
            there.filter(|(uid, process)| at >= process.began + late(uid)).map(|(uid, _)| uid.clone());
        let permit = permit.collect();
        if let Some(machine) = self.kubelets.machines.get_mut(node) {
            machine.agent.permit = permit;
        }
    }

    /// Ends processes whose claims' leases have passed since the agent last renewed its Lease, with all containers of their pods. The
    /// promise holds even if the agent is cut off or dead.
    fn fence(&mut self, node: &str, at: u64) {
        let Some(agent) = self.kubelets.machines.get(node).map(|machine| &machine.agent) else { return };
        let Some(promised) = agent.promised else { return };
        let processes = self.kubelets.processes.iter();
        let there = processes.filter(|(uid, process)| {
            process.node == node && process.may_run() && agent.permit.contains(*uid)
        });
        let over: Vec<String> = there
            .filter(|(uid, process)| {
                let late = self.draw(&format!("fence {uid}"), KEPT_WITHIN);
                process.lease.is_some_and(|lease| at >= promised + lease * 1000 + late)
            })
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in over {
            let process = self.kubelets.processes.get_mut(&uid).unwrap();
            if !process.alive {
                process.beside = None;
                continue;
            }
            let message = Some(labels::FENCED.to_owned());
            process.killed(Over { at, code: FENCED, reason: "Error", own: false, message, evicted: None });
            let name = process.pod.clone();
            self.coverage.fault("agent ends what it promised to");
            self.note(|| format!("the agent of {node}, cut off for a lease, ends {name}"));
        }
    }

    /// Does to processes what the agent decides: at once, late, or never.
    fn obey(&mut self, node: &str, at: u64) {
        let pods = self.store.of("pods").filter(|(_, pod)| pod["spec"]["nodeName"] == node && !is_over(pod));
        let read = |pod: &serde_json::Value| {
            let meta: ObjectMeta = serde_json::from_value(pod["metadata"].clone()).unwrap();
            // The agent knows what it holds, whoever takes the pod's labels off.
            let process = meta.uid.as_ref().and_then(|uid| self.kubelets.processes.get(uid));
            let held = process.is_some_and(|process| process.standing != Standing::No);
            if held { Pod::read_known(&meta) } else { Pod::read(&meta) }
        };
        let pods: Vec<Pod> = pods.filter_map(|(_, pod)| read(pod)).collect();
        for pod in pods {
            let late = [0, 0, 2000, 8000, u64::MAX][self.draw(&format!("agent {}", pod.uid), 5) as usize];
            let Some(process) = self.kubelets.processes.get_mut(&*pod.uid).filter(|process| process.alive)
            else {
                continue;
            };
            let seen = match process.standing {
                Standing::No => ProcessState::Running,
                Standing::Asked(_) => ProcessState::Freezing,
                Standing::Still(_) => ProcessState::Frozen,
            };
            match next_act(pod.wanted(), seen) {
                Some(Act::Freeze) if late != u64::MAX => process.hold_still(at, late),
                Some(Act::Thaw) => process.standing = Standing::No,
                Some(Act::Kill) => process.kill_now(at),
                Some(Act::Freeze) | None => {}
            }
        }
    }

    /// Writes the agent's report if a write is due.
    fn report(&mut self, node: &str, at: u64, works: bool, owner_until: u64) {
        let (now, key) = (self.wall_at(at), report_key(node));
        let senses = self.senses(node, at, works, owner_until);
        let Some(machine) = self.kubelets.machines.get_mut(node) else { return };
        let mut reporter = machine.agent.reporter.take().unwrap_or_else(|| Reporter::new(now));
        reporter.observe(senses, now);
        match self.store.get(&key) {
            None => reporter.report_deleted(),
            Some(report) if report["spec"]["benchmark"] != report["status"]["benchmarkedAt"] => {
                let mut seen = NodeReport::new(node, serde_json::from_value(report["spec"].clone()).unwrap());
                seen.status = serde_json::from_value(report["status"].clone()).unwrap();
                reporter.observe_report(&seen);
            }
            Some(_) => {}
        }
        if reporter.wants_benchmark() {
            reporter.benchmarked(Figures { mips: 20_000, kflops: 1_000_000 }, now);
        }
        if let Some(write) = reporter.due_write(now) {
            if self.store.get(&key).is_none() {
                self.put(key.clone(), json!({"metadata": {}, "spec": {}}));
            }
            let status = serde_json::to_value(&write.status).unwrap();
            self.edit(&key, |report| report["status"] = status);
            reporter.record_write(write.status, now);
        }
        if let Some(machine) = self.kubelets.machines.get_mut(node) {
            machine.agent.reporter = Some(reporter);
        }
    }

    fn senses(&self, node: &str, at: u64, works: bool, owner_until: u64) -> Senses {
        let busy = at < owner_until;
        let input = if busy { LastInput::Ongoing } else { LastInput::At(Time(self.wall_at(owner_until))) };
        let processes = self.kubelets.processes.iter();
        let covered = self.kubelets.machines.get(node).map(|machine| machine.agent.permit.clone());
        let covered = covered.unwrap_or_default();
        let pool_load = covered.iter().map(|_| 1.0).sum::<f64>();
        let still =
            processes.filter(|(_, process)| process.node == node && process.alive && process.stands_still());
        Senses {
            keyboard: Some(input.clone()),
            console: Some(input),
            load: Some(f64::from(u8::from(busy)) + pool_load),
            pool_load: Some(pool_load),
            usage: covered.into_iter().map(|uid| PodUsage { uid, ..PodUsage::default() }).collect(),
            suspended: still.map(|(uid, _)| uid.as_str().into()).collect(),
            problem: (!works).then(|| Problem { reason: "Told", message: String::new() }),
            ..Senses::default()
        }
    }
}
