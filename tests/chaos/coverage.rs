//! What runs reached: states, transitions, ends of procs, kinds of faults, and pairs of them in one run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::verbs::{Call, Verb};

/// States that the operator writes, which runs have to reach. Others pass in less time than a status takes.
const STATES: [&str; 13] = [
    "job Completed",
    "job Failed",
    "job Held",
    "job Idle",
    "job Removing",
    "job Running",
    "partitionable slot Owner/Idle",
    "partitionable slot Unclaimed/Idle",
    "slot Claimed/Busy",
    "slot Claimed/Idle",
    "pod Pending at Create",
    "pod Failed at Patch",
    "pod Running, deleting at Delete",
];

/// Transitions by the manual's numbers, as far as objects show them.
const TRANSITIONS: [&str; 7] = [
    "01",
    "02",
    "06, 09: a claim is written",
    "11",
    "12: a claim is used again",
    "a claim is mended",
    "08, 10, 22: a claim ends",
];

/// Every kind of fault.
const FAULTS: [&str; 47] = [
    "error",
    "error after effect",
    "throttled",
    "conflict",
    "reset",
    "reset after effect",
    "no answer",
    "no answer after effect",
    "late",
    "late answer",
    "ghost of a call",
    "kill",
    "kill after polls",
    "stop",
    "second operator",
    "stall",
    "cut off",
    "watch lags",
    "watch dropped",
    "watch gone",
    "compaction",
    "node gone",
    "node cut off",
    "node back or resized",
    "cordon",
    "taint",
    "kubelet refuses",
    "eviction",
    "pods end at once",
    "foreign pod",
    "foreign pod gone",
    "submit",
    "job edited",
    "job deleted",
    "job's finalizer taken",
    "pod deleted",
    "pod deleted by force",
    "pod's finalizer taken",
    "slot deleted",
    "slot edited",
    "slot made up",
    "partitionable slot deleted",
    "quota",
    "quota deleted",
    "ceiling",
    "submitter deleted",
    "policy",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// How many runs reached it.
    pub states: BTreeMap<String, u64>,
    pub transitions: BTreeMap<String, u64>,
    pub faults: BTreeMap<&'static str, u64>,
    pub pairs: BTreeMap<(&'static str, &'static str), u64>,
}

impl Coverage {
    pub fn fault(&mut self, name: &'static str) {
        self.faults.insert(name, 1);
    }

    /// What a call wrote.
    pub fn saw(&mut self, call: &Call, before: Option<&Value>, object: Option<&Value>) {
        self.claims(call, before, object);
        let Some(object) = object else { return };
        let status = &object["status"];
        match call.key.kind {
            "slots" | "partitionableslots" => {
                let kind = if call.key.kind == "slots" { "slot" } else { "partitionable slot" };
                if let (Some(state), Some(activity)) = (status["state"].as_str(), status["activity"].as_str())
                {
                    self.states.insert(format!("{kind} {state}/{activity}"), 1);
                }
                if let Some(number) = status["lastTransition"]["number"].as_i64() {
                    self.transitions.insert(format!("{number:02}"), 1);
                }
            }
            "htcjobs" => {
                if let Some(summary) = status["summary"].as_str() {
                    self.states.insert(format!("job {summary}"), 1);
                }
            }
            "pods" => {
                let deleting =
                    if object["metadata"]["deletionTimestamp"].is_string() { ", deleting" } else { "" };
                let phase = status["phase"].as_str().unwrap_or_default();
                self.states.insert(format!("pod {phase}{deleting} at {:?}", call.verb), 1);
            }
            _ => {}
        }
    }

    /// What became of a claim, and of a node's offer: transitions that no status says for long enough.
    fn claims(&mut self, call: &Call, before: Option<&Value>, object: Option<&Value>) {
        let text = |object: Option<&Value>, path: &str| object.and_then(|o| o.pointer(path)).cloned();
        let (old, new) = (text(before, "/spec/claim/proc"), text(object, "/spec/claim/proc"));
        match (call.key.kind, call.sub.as_str()) {
            ("slots", "") => {
                let what = match (call.verb, old, new) {
                    (Verb::Create, _, Some(_)) => "06, 09: a claim is written",
                    (Verb::Patch, old, new) if old != new => "12: a claim is used again",
                    (Verb::Patch, ..) => "a claim is mended",
                    (Verb::Delete, ..) => "08, 10, 22: a claim ends",
                    _ => return,
                };
                self.transitions.insert(what.to_owned(), 1);
            }
            ("partitionableslots", "status") => {
                match (text(before, "/status/state"), text(object, "/status/state")) {
                    (Some(old), Some(new)) if old != new => {
                        let number = if new == "Unclaimed" { "01" } else { "02" };
                        self.transitions.insert(number.to_owned(), 1);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Counts the pairs of faults of one run.
    pub fn close(&mut self) {
        let names: BTreeSet<&'static str> = self.faults.keys().copied().collect();
        for one in &names {
            for other in names.iter().filter(|other| *other > one) {
                self.pairs.insert((one, other), 1);
            }
        }
    }

    pub fn add(&mut self, other: &Self) {
        fn sum<K: Clone + Ord>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (key, n) in from {
                *into.entry(key.clone()).or_default() += n;
            }
        }
        sum(&mut self.states, &other.states);
        sum(&mut self.transitions, &other.transitions);
        sum(&mut self.faults, &other.faults);
        sum(&mut self.pairs, &other.pairs);
    }

    /// What should be reached and is not.
    pub fn missing(&self) -> Vec<String> {
        let missing =
            STATES.iter().filter(|state| !self.states.contains_key(**state)).map(|state| (*state).to_owned());
        let transitions = TRANSITIONS.iter().filter(|name| !self.transitions.contains_key(**name));
        let transitions = transitions.map(|name| format!("transition {name}"));
        let faults = FAULTS
            .iter()
            .filter(|fault| !self.faults.contains_key(**fault))
            .map(|fault| format!("fault {fault}"));
        missing.chain(transitions).chain(faults).collect()
    }

    pub fn print(&self, runs: u64) {
        println!("{runs} runs reached {} states:", self.states.len());
        for (state, n) in &self.states {
            println!("  {n:>7}  {state}");
        }
        println!("{} transitions:", self.transitions.len());
        for (number, n) in &self.transitions {
            println!("  {n:>7}  {number}");
        }
        println!("{} kinds of faults:", self.faults.len());
        for (fault, n) in &self.faults {
            println!("  {n:>7}  {fault}");
        }
        let all = self.faults.len() * self.faults.len().saturating_sub(1) / 2;
        println!("{} of {all} pairs of faults in one run", self.pairs.len());
    }
}
