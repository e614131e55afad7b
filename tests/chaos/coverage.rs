//! Counts what runs reached: states, transitions, ends of procs, kinds of faults, and pairs of faults in one run.

use std::collections::{BTreeMap, BTreeSet};

use model::pool::State;
use model::startd::TRANSITIONS as TRANSITIONS_OF_THE_MANUAL;
use serde_json::Value;

use super::verbs::{Call, Verb};

/// The states in objects that runs must reach. Other states last for less time than an operator takes to write a
/// status.
const STATES: [&str; 15] = [
    "job Completed",
    "job Failed",
    "job Held",
    "job Idle",
    "job Removing",
    "job Running",
    "partitionable slot Owner/Idle",
    "partitionable slot Unclaimed/Idle",
    "partitionable slot Backfill/Busy",
    "slot Backfill/Busy",
    "slot Claimed/Busy",
    "slot Claimed/Idle",
    "pod Pending at Create",
    "pod Failed at Patch",
    "pod Running, deleting at Delete",
];

/// The events of claims that must happen in some run.
const CLAIMS: [&str; 5] = [
    "a claim is written",
    "a claim is used again",
    "a claim is mended",
    "a claim takes another's place",
    "a claim ends",
];

/// The transitions, by the manual's numbers, that runs must reach.
const TRANSITIONS: [&str; 9] = ["1", "2", "11", "14", "15", "18", "21", "22", "37"];

/// The kinds of faults. Each must happen in some run.
const FAULTS: [&str; 92] = [
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
    "kubelet cannot start a pod",
    "eviction",
    "pods end at once",
    "foreign pod",
    "foreign pod gone",
    "submit",
    "job edited",
    "job deleted",
    "job's finalizer taken",
    "procs held",
    "procs released",
    "procs removed",
    "procs vacated",
    "job held by its spec",
    "program that is retried",
    "pace of a job",
    "program that runs twice",
    "time to start",
    "expressions that act",
    "end written a second time",
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
    "limit",
    "limit deleted",
    "negotiator's policy",
    "policy",
    "owner's policy",
    "backfill work",
    "division into slots",
    "division that does not fit",
    "drain",
    "drain canceled",
    "agent comes",
    "agent falls silent",
    "agent cannot work",
    "owner is back",
    "out of service",
    "agent ends what it promised to",
    "Node deleted, machine on",
    "node starts again",
    "pod deleted again, sooner",
    "eviction API",
    "taint manager",
    "clock of a node wrong",
    "containers lost",
    "container that outlives the main one",
    "sidecar",
    "out of memory",
    "out of disk",
    "command does not exist",
    "pod that never started ends with 137",
    "init container fails",
    "pod's marks taken off",
    "webhook hangs and fails",
    "webhook hangs and is passed by",
    "object that cannot be decoded",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// In how many runs each state was reached.
    pub states: BTreeMap<String, u64>,
    /// The states and activities that slots of all kinds had.
    pub pairs_of_slots: BTreeMap<String, u64>,
    /// The transitions that objects showed, by number.
    pub transitions: BTreeMap<String, u64>,
    pub claims: BTreeMap<&'static str, u64>,
    pub faults: BTreeMap<&'static str, u64>,
    pub pairs: BTreeMap<(&'static str, &'static str), u64>,
}

impl Coverage {
    pub fn fault(&mut self, name: &'static str) {
        self.faults.insert(name, 1);
    }

    /// Counts that a pod is made under a claim that was written for another proc.
    pub fn used_again(&mut self) {
        self.claims.insert("a claim is used again", 1);
    }

    /// Counts what a call wrote.
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
                    self.pairs_of_slots.insert(format!("{state}/{activity}"), 1);
                }
                match &status["lastTransition"]["number"] {
                    Value::Null => {}
                    Value::String(number) => drop(self.transitions.insert(number.clone(), 1)),
                    number => drop(self.transitions.insert(number.to_string(), 1)),
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

    /// Counts what a call did to a claim or a slot, if no status shows it, or none shows it for long enough.
    fn claims(&mut self, call: &Call, before: Option<&Value>, object: Option<&Value>) {
        let text = |object: Option<&Value>, path: &str| {
            object.and_then(|o| o.pointer(path)).filter(|value| !value.is_null()).cloned()
        };
        let (old, new) = (text(before, "/spec/claim/proc"), text(object, "/spec/claim/proc"));
        let (old_id, new_id) = (text(before, "/spec/claim/id"), text(object, "/spec/claim/id"));
        match (call.key.kind, call.sub.as_str()) {
            ("slots", "") => {
                let what = match (call.verb, old, new) {
                    (Verb::Create | Verb::Patch, None, Some(_)) => "a claim is written",
                    (Verb::Patch, Some(_), None) | (Verb::Delete, Some(_), _) => "a claim ends",
                    (Verb::Patch, Some(_), Some(_)) if old_id != new_id => "a claim takes another's place",
                    (Verb::Patch, Some(old), Some(new)) if old != new => {
                        "a claim is written for another proc"
                    }
                    (Verb::Patch, Some(_), Some(_)) => "a claim is mended",
                    _ => return,
                };
                self.claims.insert(what, 1);
            }
            // A partitionable slot's object shows no transitions: only its states before and after are known.
            ("partitionableslots", "status") => {
                let pair = |object: Option<&Value>| {
                    let part = |path| text(object, path)?.as_str().map(str::to_owned);
                    Some((part("/status/state")?, part("/status/activity")?))
                };
                let is = |state: State, (name, activity): &(String, String)| {
                    state.state() == name && state.activity() == activity
                };
                let Some((old, new)) = pair(before).zip(pair(object)) else { return };
                let taken =
                    TRANSITIONS_OF_THE_MANUAL.iter().find(|arrow| is(arrow.from, &old) && is(arrow.to, &new));
                self.transitions.extend(taken.map(|arrow| (arrow.number.to_string(), 1)));
            }
            _ => {}
        }
    }

    /// Counts the pairs of faults of one run, at its end.
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
        sum(&mut self.pairs_of_slots, &other.pairs_of_slots);
        sum(&mut self.transitions, &other.transitions);
        sum(&mut self.claims, &other.claims);
        sum(&mut self.faults, &other.faults);
        sum(&mut self.pairs, &other.pairs);
    }

    /// The states, transitions, events of claims and faults that runs must reach and did not.
    pub fn missing(&self) -> Vec<String> {
        let missing =
            STATES.iter().filter(|state| !self.states.contains_key(**state)).map(|state| (*state).to_owned());
        let transitions = TRANSITIONS.iter().filter(|number| !self.transitions.contains_key(**number));
        let claims = CLAIMS.iter().filter(|name| !self.claims.contains_key(*name));
        let transitions = transitions
            .map(|number| format!("transition {number}"))
            .chain(claims.map(|name| (*name).to_owned()));
        let faults = FAULTS
            .iter()
            .filter(|fault| !self.faults.contains_key(**fault))
            .map(|fault| format!("fault {fault}"));
        missing.chain(transitions).chain(faults).collect()
    }

    /// Prints the manual's states, activities and transitions, and which of them objects showed.
    fn print_table(&self) {
        let states: BTreeSet<State> =
            TRANSITIONS_OF_THE_MANUAL.iter().flat_map(|arrow| [arrow.from, arrow.to]).collect();
        println!("{} of {} pairs of state and activity:", self.pairs_of_slots.len(), states.len());
        for state in states {
            let pair = format!("{}/{}", state.state(), state.activity());
            println!("  {:>7}  {pair}", self.pairs_of_slots.get(&pair).unwrap_or(&0));
        }
        println!("{} of 38 transitions, as statuses told of them:", self.transitions.len());
        for arrow in TRANSITIONS_OF_THE_MANUAL {
            let n = self.transitions.get(&arrow.number.to_string()).unwrap_or(&0);
            let (from, to) = (arrow.from, arrow.to);
            println!(
                "  {n:>7}  {:>3} {}/{} to {}/{}",
                arrow.number.to_string(),
                from.state(),
                from.activity(),
                to.state(),
                to.activity()
            );
        }
    }

    pub fn print(&self, runs: u64) {
        println!("{runs} runs reached {} states:", self.states.len());
        for (state, n) in &self.states {
            println!("  {n:>7}  {state}");
        }
        for (what, n) in &self.claims {
            println!("  {n:>7}  {what}");
        }
        self.print_table();
        println!("{} kinds of faults:", self.faults.len());
        for (fault, n) in &self.faults {
            println!("  {n:>7}  {fault}");
        }
        let all = self.faults.len() * self.faults.len().saturating_sub(1) / 2;
        println!("{} of {all} pairs of faults in one run", self.pairs.len());
    }
}
