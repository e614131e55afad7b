//! One kubelet: which pods it admits, what it tells their programs, and what it reports of their containers, in the
//! order in which a kubelet does so.
//!
//! When a pod ends, the kubelet first reports that the main container has ended, in phase Running. When all containers
//! have ended, about a second later, it reports the final phase. If somebody asked for the deletion of the pod, the
//! kubelet then deletes it with a grace period of 0.

mod starting;

pub use starting::inject;

use std::sync::Arc;

use serde_json::{Value, json};

use super::kubelets::{disrupt, is_of_pool, is_over};
use super::processes::{Beside, Over, Process};
use super::store::{Key, is_deleting, meta};
use super::world::World;

/// The reason that a kubelet gives for an image that is not even a valid name. The kubelet does not try again.
const HOPELESS: &str = "InvalidImageName";

/// The container beside the main one.
const BESIDE: &str = "proxy";

/// The reason why a pod's container does not start, as its status gives it; empty if there is none.
fn waits_for(pod: &Value) -> &str {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str().unwrap_or_default()
}

impl World {
    /// Runs the programs on a machine, whether anybody hears of it or not.
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
        // If the pod of a program is gone, the kubelet tells the program to end with the shortest grace period, unless
        // it told the program before.
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
        // A kubelet that evicts a pod ends all containers before it writes anything about them.
        let ended = match &over.evicted {
            Some(_) => Some(over.at),
            None => process.all_over(&uid, self.seed),
        };
        let seed = self.seed;
        let Some(since) = process.reported else {
            super::ends::reported(self, &process, &over, pod);
            self.kubelets.processes.get_mut(&uid).unwrap().reported = Some(at);
            self.report_end(key, &process, &over, ended.is_some_and(|ended| ended <= at));
            // Sometimes nobody sees a pod between the end of its container and its own end.
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

    /// Handles a pod whose containers have not run on this machine.
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

    /// Ends a pod that is deleted before it started. Some kubelets make up how its container ended.
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
            // The status no longer says what the container waited for.
            let state = json!({"waiting": {"reason": "ContainerCreating"}});
            self.edit(key, |pod| pod["status"]["containerStatuses"][0]["state"] = state);
        }
    }

    /// Tells the containers to end. If they were told before, that stays as it was.
    fn tell_to_end(&mut self, uid: &str, pod: &Value, at: u64) {
        let own = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(30);
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(own);
        let seed = self.seed;
        self.kubelets.processes.get_mut(uid).unwrap().tell(uid, grace, at, seed);
    }

    /// Reports that the main container has ended. The phase stays as it is.
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

    /// Reports the final phase once all containers have ended, unless somebody else has written one.
    fn settle(&mut self, key: &Key, uid: &str, over: &Over) {
        self.kubelets.processes.get_mut(uid).unwrap().settled = true;
        let now = self.text(self.at());
        // An ordinary container beside the main one ends because the kubelet tells it to. So it fails, and the pod with
        // it.
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
            // A kubelet knows no containers of a pod that it does not admit.
            pod["status"] = json!({"phase": "Failed", "reason": reason, "message": "no"});
            if conditions.is_array() {
                pod["status"]["conditions"] = conditions;
            }
        });
    }

    /// Ends a pod that the machine lost because it was off. The kubelet does not admit the pod again, or makes up how
    /// its containers ended, which the runtime does not know.
    fn lose(&mut self, node: &str, key: &Key, pod: &Value) {
        // The garbage collector does not change what a pod's status says of its containers. The kubelet corrects that.
        let collected = is_over(pod) && pod["status"]["containerStatuses"][0]["state"]["running"].is_object();
        if is_over(pod) && !collected {
            if is_deleting(pod) {
                self.delete(key, Some(0));
            }
            return;
        }
        let uid = meta(pod, "uid");
        self.coverage.fault("containers lost");
        let how = self.draw(&format!("lost {uid}"), 4);
        if how == 0 && !collected {
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
}
