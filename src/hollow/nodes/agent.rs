//! The agent of a hollow node: what it reports, given what it sees and is asked. No clock, no I/O: the shell brings both.
//!
//! It writes only what is different. Of the load only a move by a tenth counts, and that at most once in
//! [`LOAD_PACE`]: a real load is an average over a minute.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::devices::fnv64;
use super::life::after;
use super::owner::{Owner, Sight};
use super::shape::NodeShape;
use api::{LastInput, LastInputs, NodeReport, NodeReportStatus, condition};

/// The least time between two writes of nothing but load.
pub const LOAD_PACE: Duration = Duration::from_secs(5);
/// A load that moves by less is the same.
const LOAD_STEP: f64 = 0.1;

/// What an agent sees of the pods of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Uids of those that it holds still.
    pub suspended: BTreeSet<String>,
    /// Millicores that the pool's running pods request: hollow containers use what they request.
    pub pool_milli: i64,
    /// The same of others' pods.
    pub other_milli: i64,
}

/// One agent at work. Lost when it dies.
#[derive(Debug, Clone)]
pub struct Agent {
    owner: Owner,
    start: Timestamp,
    /// What the owner was told to do, in place of the script.
    by_hand: Option<Sight>,
    held: Held,
    mips: i64,
    kflops: i64,
    benchmarked: Option<Timestamp>,
    generation: Option<i64>,
    written: Option<(NodeReportStatus, Timestamp)>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// What the status is to say.
    pub status: NodeReportStatus,
    /// A merge patch that makes it say so.
    pub patch: Value,
}

impl Agent {
    /// An agent that just started on a node of this shape. Its machine has a speed of its own, the same after a restart.
    pub fn new(shape: &NodeShape, now: Timestamp) -> Self {
        let hash = fnv64(&shape.name) >> 32;
        let spread = |least: i64, most: i64| {
            let part = i64::try_from(hash % 1000).unwrap_or(0);
            least + (most - least) * part / 1000
        };
        Self {
            owner: shape.agent.clone().unwrap_or_default(),
            start: now,
            by_hand: None,
            held: Held::default(),
            mips: spread(18_000, 28_000),
            kflops: spread(1_400_000, 2_600_000),
            benchmarked: None,
            generation: None,
            written: None,
        }
    }

    /// Takes note of what the node's pods do.
    pub fn sees(&mut self, held: Held) {
        self.held = held;
    }

    /// The owner comes, with this load, or goes; from now on nothing follows from the script.
    pub fn owner(&mut self, present: Option<f64>, now: Timestamp) {
        self.by_hand = Some(Sight { present, last_input: now, next: None });
    }

    /// Takes note of the report as the API server has it, and runs the benchmarks that it asks for.
    pub fn reads(&mut self, report: &NodeReport, now: Timestamp) {
        let second = |time: &Time| time.0.as_second();
        let done = report.status.as_ref().and_then(|status| status.benchmarked_at.as_ref()).map(second);
        let done = done.max(self.benchmarked.map(Timestamp::as_second));
        self.generation = report.metadata.generation;
        if let Some(asked) = &report.spec.benchmark
            && done.is_none_or(|done| done < second(asked))
        {
            // Clocks differ: the run ends no earlier than it was asked for.
            self.benchmarked = Some(now.max(asked.0));
        }
    }

    /// The report is gone from the API server: it is written anew.
    pub fn lost(&mut self) {
        self.written = None;
    }

    /// What is to be written now.
    pub fn write(&self, now: Timestamp) -> Option<Write> {
        if self.due(now).is_none_or(|due| due > now) {
            return None;
        }
        let status = self.status(now);
        let mut patch = serde_json::to_value(&status).unwrap_or_default();
        if let Some(fields) = patch.as_object_mut() {
            // An empty list is left out by the type, and a merge patch leaves what is left out.
            fields.insert("suspendedPods".to_owned(), json!(status.suspended_pods));
        }
        Some(Write { status, patch: json!({"status": patch}) })
    }

    /// The API server has taken a write that was made at `now`.
    pub fn wrote(&mut self, status: NodeReportStatus, now: Timestamp) {
        self.written = Some((status, now));
    }

    /// When to ask for the next write.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.due(now).into_iter().chain(self.sight(now).next).min()
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let Some((written, at)) = &self.written else { return Some(now) };
        let status = self.status(now);
        let same = NodeReportStatus {
            load: written.load,
            pool_load: written.pool_load,
            observed_generation: written.observed_generation,
            ..status.clone()
        };
        if same != *written {
            return Some(now);
        }
        let moved = |a: Option<f64>, b: Option<f64>| (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() >= LOAD_STEP;
        let moved = moved(status.load, written.load) || moved(status.pool_load, written.pool_load);
        moved.then(|| after(*at, LOAD_PACE))
    }

    fn sight(&self, now: Timestamp) -> Sight {
        self.by_hand.unwrap_or_else(|| self.owner.sight(self.start, now))
    }

    fn status(&self, now: Timestamp) -> NodeReportStatus {
        let sight = self.sight(now);
        let input = match sight.present {
            Some(_) => LastInput::Ongoing,
            // Whole seconds, as they are written: what is read back must be the same.
            None => LastInput::At(Time(whole(sight.last_input))),
        };
        let pool = self.held.pool_milli;
        let others = cores(self.held.other_milli) + sight.present.unwrap_or(0.0);
        NodeReportStatus {
            observed_generation: self.generation,
            last_input: Some(LastInputs { keyboard: Some(input.clone()), console: Some(input) }),
            load: Some(rounded(cores(pool) + others)),
            pool_load: Some(rounded(cores(pool))),
            mips: self.benchmarked.map(|_| self.mips),
            kflops: self.benchmarked.map(|_| self.kflops),
            benchmarked_at: self.benchmarked.map(|at| Time(whole(at))),
            suspended_pods: self.held.suspended.iter().cloned().collect(),
            conditions: vec![Condition {
                type_: condition::READY.to_owned(),
                status: "True".to_owned(),
                observed_generation: None,
                last_transition_time: Time(whole(self.start)),
                reason: "Sensing".to_owned(),
                message: "the agent senses, and suspends pods".to_owned(),
            }],
            ..NodeReportStatus::default()
        }
    }
}

fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Millicores as load: each that is used is one process in a thousand.
fn cores(milli: i64) -> f64 {
    f64::from(i32::try_from(milli).unwrap_or(i32::MAX)) / 1000.0
}

fn rounded(load: f64) -> f64 {
    (load * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::super::shape::GIB;
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Writes what is due until nothing is, and tells what was written of these fields.
    fn told(agent: &mut Agent, now: i64, field: &str) -> Option<Value> {
        let write = agent.write(at(now))?;
        agent.wrote(write.status, at(now));
        assert_eq!(agent.write(at(now)), None, "what was written is not written again");
        Some(write.patch.pointer(&format!("/status/{field}")).cloned().unwrap_or_default())
    }

    fn agent(owner: Owner) -> Agent {
        Agent::new(&NodeShape::new("n1", 4000, 8 * GIB).agent(owner), at(1000))
    }

    fn asks(seconds: i64, answered: Option<i64>) -> NodeReport {
        let status = answered.map(|at_| json!({"benchmarkedAt": Time(at(at_))}));
        let report = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
            "metadata": {"name": "n1", "generation": 2}, "spec": {"benchmark": Time(at(seconds))}, "status": status});
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn an_idle_agent_writes_once() {
        let mut agent = agent(Owner::default());
        assert_eq!(told(&mut agent, 1000, "lastInput/keyboard"), Some(json!("1970-01-01T00:16:40Z")));
        assert_eq!((agent.write(at(900_000)), agent.next(at(900_000))), (None, None));
        agent.lost();
        assert!(told(&mut agent, 900_001, "load").is_some(), "a report that somebody deleted is made anew");
    }

    #[test]
    fn the_owner_comes_and_goes() {
        let ten = Duration::from_secs(10);
        let mut agent = agent(Owner::default().visit(ten, ten, 0.7));
        told(&mut agent, 1000, "");
        assert_eq!(agent.next(at(1000)), Some(at(1010)));
        assert_eq!(told(&mut agent, 1010, "lastInput/console"), Some(json!("ongoing")));
        assert_eq!(told(&mut agent, 1020, "lastInput/keyboard"), Some(json!("1970-01-01T00:17:00Z")));
        agent.owner(Some(1.5), at(1030));
        assert_eq!(told(&mut agent, 1030, "load"), Some(json!(1.5)));
    }

    #[test]
    fn suspensions_are_told_at_once_and_load_after_a_while() {
        let mut agent = agent(Owner::default());
        told(&mut agent, 1000, "");
        agent.sees(Held { pool_milli: 2000, other_milli: 500, ..Held::default() });
        assert_eq!((agent.write(at(1004)), agent.next(at(1004))), (None, Some(at(1005))));
        assert_eq!(told(&mut agent, 1005, "load"), Some(json!(2.5)));
        agent.sees(Held { pool_milli: 2050, other_milli: 500, ..Held::default() });
        assert_eq!(agent.next(at(1100)), None, "a twentieth is no move");
        agent.sees(Held { suspended: ["u1".to_owned()].into(), ..Held::default() });
        assert_eq!(told(&mut agent, 1101, "suspendedPods"), Some(json!(["u1"])));
        agent.sees(Held::default());
        assert_eq!(
            told(&mut agent, 1101, "suspendedPods"),
            Some(json!([])),
            "a merge patch must say that there are none"
        );
    }

    #[test]
    fn benchmarks_are_run_once_when_they_are_asked_for() {
        let mut agent = agent(Owner::default());
        told(&mut agent, 1000, "");
        agent.reads(&asks(1000, Some(1000)), at(1010));
        assert_eq!(agent.write(at(1010)), None, "an earlier agent has answered");
        agent.reads(&asks(1020, Some(1000)), at(1025));
        let mips = told(&mut agent, 1025, "mips").unwrap().as_i64().unwrap();
        assert!((18_000..28_000).contains(&mips), "{mips}");
        agent.reads(&asks(1020, Some(1000)), at(1030));
        assert_eq!(agent.write(at(1030)), None, "the answer is on its way");
        agent.reads(&asks(1050, None), at(1040));
        let late = Some(json!("1970-01-01T00:17:30Z"));
        assert_eq!(
            told(&mut agent, 1040, "benchmarkedAt"),
            late,
            "by another's clock it was asked for later"
        );
    }
}
