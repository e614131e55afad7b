//! The nodes' agents: what they sense, what they suspend and kill when the operator asks them to, and how they fail.

use api::labels;
use serde_json::{Value, json};

use super::kubelets::{FENCED, is_ours, is_over, node_key};
use super::plan::Presence;
use super::processes::{Over, Standing};
use super::store::{Key, meta};
use super::world::World;

/// How often an agent renews its Lease, in milliseconds.
const HEARTBEAT: u64 = 10_000;
/// The virtual time from one tick of the world to the next, in milliseconds.
const TICK: u64 = 500;

/// The state of a machine's agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agent {
    pub presence: Option<Presence>,
    /// Until when the owner is at the machine.
    pub owner_until: u64,
    beat: u64,
    /// When the agent last renewed its Lease with the promise to end pods whose claim's lease passes before the next
    /// renewal.
    promised: Option<u64>,
}

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
        if works {
            self.obey(node, at);
        }
        self.report(node, at, works, owner_until);
    }

    /// Ends processes whose claims' leases have passed since the agent last renewed its Lease. The promise holds even
    /// if the agent is cut off or dead.
    fn fence(&mut self, node: &str, at: u64) {
        let Some(promised) = self.kubelets.machines.get(node).and_then(|machine| machine.agent.promised)
        else {
            return;
        };
        let processes = self.kubelets.processes.iter();
        let there = processes.filter(|(_, process)| process.node == node && process.alive);
        let over: Vec<String> = there
            .filter(|(uid, process)| {
                let late = self.draw(&format!("fence {uid}"), KEPT_WITHIN);
                process.lease.is_some_and(|lease| at >= promised + lease * 1000 + late)
            })
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in over {
            let process = self.kubelets.processes.get_mut(&uid).unwrap();
            let message = Some(labels::FENCED.to_owned());
            process.killed(Over { at, code: FENCED, reason: "Error", own: false, message, evicted: None });
            let name = process.pod.clone();
            self.coverage.fault("agent ends what it promised to");
            self.note(|| format!("the agent of {node}, cut off for a lease, ends {name}"));
        }
    }

    /// Suspends and kills pods as the operator asks on them: at once, late, or never.
    fn obey(&mut self, node: &str, at: u64) {
        let pods: Vec<(String, bool, bool)> = self
            .store
            .of("pods")
            .filter(|(_, pod)| is_ours(pod) && pod["spec"]["nodeName"] == node && !is_over(pod))
            .map(|(_, pod)| {
                let asks = |name: &str| pod["metadata"]["annotations"][name] == "true";
                (meta(pod, "uid").to_owned(), asks(labels::SUSPEND), asks(labels::KILL))
            })
            .collect();
        for (uid, still, kill) in pods {
            let late = [0, 0, 2000, 8000, u64::MAX][self.draw(&format!("agent {uid}"), 5) as usize];
            let Some(process) = self.kubelets.processes.get_mut(&uid).filter(|process| process.alive) else {
                continue;
            };
            if !still {
                process.standing = Standing::No;
            } else if !process.stands_still() && late != u64::MAX {
                process.hold_still(at, late);
            }
            if kill {
                process.kill_now(at);
            }
        }
    }

    /// Writes the agent's report if there is something new in it.
    fn report(&mut self, node: &str, at: u64, works: bool, owner_until: u64) {
        let busy = at < owner_until;
        let input = if busy { json!("ongoing") } else { json!(self.text(owner_until)) };
        let frozen: Vec<&String> = self
            .kubelets
            .processes
            .iter()
            .filter(|(_, process)| process.node == node && process.alive && process.stands_still())
            .map(|(uid, _)| uid)
            .collect();
        let condition = json!({"type": "Ready", "status": if works { "True" } else { "False" }, "reason": "Told",
            "message": "", "lastTransitionTime": self.text(0)});
        let mut status = json!({"lastInput": {"keyboard": input, "console": input}, "load": f64::from(u8::from(busy)),
            "poolLoad": 0.0, "suspendedPods": frozen, "conditions": [condition]});
        let key = report_key(node);
        if self.store.get(&key).is_none() {
            self.put(key.clone(), json!({"metadata": {}, "spec": {}}));
        }
        let asked = self.store.get(&key).map(|report| report["spec"]["benchmark"].clone());
        if let Some(Value::String(when)) = asked {
            status["mips"] = json!(20_000);
            status["kflops"] = json!(1_000_000);
            status["benchmarkedAt"] = json!(when);
        }
        if self.store.get(&key).is_some_and(|report| report["status"] != status) {
            self.edit(&key, |report| report["status"] = status);
        }
    }
}
