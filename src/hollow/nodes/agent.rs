//! The agent of a hollow node: it computes the NodeReport from what it senses and from what the operator asks.
//! This file has no clock and does no I/O; `agents` brings both.
//!
//! The agent writes its report only when something in it has changed. A load that has changed by less than
//! [`LOAD_STEP`] counts as unchanged, and load alone is written at most once per [`LOAD_PACE`]: a real load is an
//! average over a minute, and does not jump either.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::devices::fnv64;
use super::life::after;
use super::owner::{Owner, Presence};
use super::shape::NodeShape;
use api::{LastInput, LastInputs, NodeReport, NodeReportStatus, condition};

/// The least time between two writes that report nothing new but the load.
const LOAD_PACE: Duration = Duration::from_secs(5);
/// The least change of a load that is worth a write, in processes.
const LOAD_STEP: f64 = 0.1;

/// What an agent senses of the pods of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodActivity {
    /// Uids of the pods that the agent has suspended.
    pub suspended: BTreeSet<String>,
    /// Millicores that the pool's running pods use. Hollow containers use what they request.
    pub pool_milli: i64,
    /// Millicores that other running pods use.
    pub other_milli: i64,
}

/// The state of one running agent. The state is lost when the agent dies.
#[derive(Debug, Clone)]
pub struct Agent {
    owner: Owner,
    start: Timestamp,
    /// How the owner behaves since a test or the demo set it. Once this is set, `owner` no longer counts.
    set_by_hand: Option<Presence>,
    activity: PodActivity,
    mips: i64,
    kflops: i64,
    benchmarked: Option<Timestamp>,
    generation: Option<i64>,
    written: Option<(NodeReportStatus, Timestamp)>,
}

/// A write of the NodeReport's status.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The status after the write.
    pub status: NodeReportStatus,
    /// The JSON merge patch that writes this status.
    pub patch: Value,
}

impl Agent {
    /// An agent that just started on a node of this shape. The node's name decides its benchmark results, so they
    /// are the same after a restart.
    pub fn new(shape: &NodeShape, now: Timestamp) -> Self {
        let hash = fnv64(&shape.name) >> 32;
        let spread = |least: i64, most: i64| {
            let part = i64::try_from(hash % 1000).unwrap_or(0);
            least + (most - least) * part / 1000
        };
        Self {
            owner: shape.agent.clone().unwrap_or_default(),
            start: now,
            set_by_hand: None,
            activity: PodActivity::default(),
            mips: spread(18_000, 28_000),
            kflops: spread(1_400_000, 2_600_000),
            benchmarked: None,
            generation: None,
            written: None,
        }
    }

    /// Records what the node's pods do.
    pub fn observe_pods(&mut self, activity: PodActivity) {
        self.activity = activity;
    }

    /// Sets the owner to present, with the load that the owner makes, or to absent (`None`). From now on the
    /// visits of the node's [`Owner`] no longer count.
    pub fn set_owner(&mut self, load: Option<f64>, now: Timestamp) {
        self.set_by_hand = Some(Presence { load, last_input: now, next_change: None });
    }

    /// Reads the report as the API server has it, and runs the benchmarks if `spec.benchmark` asks for a run that
    /// has not been made.
    pub fn observe_report(&mut self, report: &NodeReport, now: Timestamp) {
        let second = |time: &Time| time.0.as_second();
        let done = report.status.as_ref().and_then(|status| status.benchmarked_at.as_ref()).map(second);
        let done = done.max(self.benchmarked.map(Timestamp::as_second));
        self.generation = report.metadata.generation;
        if let Some(asked) = &report.spec.benchmark
            && done.is_none_or(|done| done < second(asked))
        {
            // If the operator's clock is ahead, the run must still not seem to precede the request: the operator
            // would wait for another one.
            self.benchmarked = Some(now.max(asked.0));
        }
    }

    /// Records that the report no longer exists in the API server, so that the agent writes a new one.
    pub fn report_deleted(&mut self) {
        self.written = None;
    }

    /// Returns the write that is due at `now`, if one is.
    pub fn due_write(&self, now: Timestamp) -> Option<Write> {
        if self.due(now).is_none_or(|due| due > now) {
            return None;
        }
        let status = self.status(now);
        let mut patch = serde_json::to_value(&status).unwrap_or_default();
        if let Some(fields) = patch.as_object_mut() {
            // Serde skips an empty list, and a merge patch does not change a field that it does not name: without
            // this line, the last suspended pod would stay in the report.
            fields.insert("suspendedPods".to_owned(), json!(status.suspended_pods));
        }
        Some(Write { status, patch: json!({"status": patch}) })
    }

    /// Records that a write of `status`, made at `now`, succeeded.
    pub fn record_write(&mut self, status: NodeReportStatus, now: Timestamp) {
        self.written = Some((status, now));
    }

    /// When the shell must call [`Agent::due_write`] next; `None` if nothing will change by itself.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        self.due(now).into_iter().chain(self.presence(now).next_change).min()
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

    fn presence(&self, now: Timestamp) -> Presence {
        self.set_by_hand.unwrap_or_else(|| self.owner.presence(self.start, now))
    }

    fn status(&self, now: Timestamp) -> NodeReportStatus {
        let presence = self.presence(now);
        let input = match presence.load {
            Some(_) => LastInput::Ongoing,
            // The API server keeps whole seconds: a fraction here would differ from the status that was written.
            None => LastInput::At(Time(whole(presence.last_input))),
        };
        let pool = self.activity.pool_milli;
        let others = cores(self.activity.other_milli) + presence.load.unwrap_or(0.0);
        NodeReportStatus {
            observed_generation: self.generation,
            last_input: Some(LastInputs { keyboard: Some(input.clone()), console: Some(input) }),
            load: Some(rounded(cores(pool) + others)),
            pool_load: Some(rounded(cores(pool))),
            mips: self.benchmarked.map(|_| self.mips),
            kflops: self.benchmarked.map(|_| self.kflops),
            benchmarked_at: self.benchmarked.map(|at| Time(whole(at))),
            suspended_pods: self.activity.suspended.iter().cloned().collect(),
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

/// The load that these millicores make: a core in use is one process.
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

    /// Makes the write that is due, and returns the value that it gave to `field` of the status.
    fn written(agent: &mut Agent, now: i64, field: &str) -> Option<Value> {
        let write = agent.due_write(at(now))?;
        agent.record_write(write.status, at(now));
        assert_eq!(agent.due_write(at(now)), None, "what was written is not written again");
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
        assert_eq!(written(&mut agent, 1000, "lastInput/keyboard"), Some(json!("1970-01-01T00:16:40Z")));
        assert_eq!((agent.due_write(at(900_000)), agent.next_wake(at(900_000))), (None, None));
        agent.report_deleted();
        assert!(
            written(&mut agent, 900_001, "load").is_some(),
            "a report that somebody deleted is made anew"
        );
    }

    #[test]
    fn the_owner_comes_and_goes() {
        let ten = Duration::from_secs(10);
        let mut agent = agent(Owner::default().visit(ten, ten, 0.7));
        written(&mut agent, 1000, "");
        assert_eq!(agent.next_wake(at(1000)), Some(at(1010)));
        assert_eq!(written(&mut agent, 1010, "lastInput/console"), Some(json!("ongoing")));
        assert_eq!(written(&mut agent, 1020, "lastInput/keyboard"), Some(json!("1970-01-01T00:17:00Z")));
        agent.set_owner(Some(1.5), at(1030));
        assert_eq!(written(&mut agent, 1030, "load"), Some(json!(1.5)));
    }

    #[test]
    fn suspensions_are_written_at_once_and_load_after_a_while() {
        let mut agent = agent(Owner::default());
        written(&mut agent, 1000, "");
        agent.observe_pods(PodActivity { pool_milli: 2000, other_milli: 500, ..PodActivity::default() });
        assert_eq!((agent.due_write(at(1004)), agent.next_wake(at(1004))), (None, Some(at(1005))));
        assert_eq!(written(&mut agent, 1005, "load"), Some(json!(2.5)));
        agent.observe_pods(PodActivity { pool_milli: 2050, other_milli: 500, ..PodActivity::default() });
        assert_eq!(agent.next_wake(at(1100)), None, "a twentieth is no move");
        agent.observe_pods(PodActivity { suspended: ["u1".to_owned()].into(), ..PodActivity::default() });
        assert_eq!(written(&mut agent, 1101, "suspendedPods"), Some(json!(["u1"])));
        agent.observe_pods(PodActivity::default());
        assert_eq!(
            written(&mut agent, 1101, "suspendedPods"),
            Some(json!([])),
            "a merge patch must say that there are none"
        );
    }

    #[test]
    fn benchmarks_are_run_once_when_they_are_asked_for() {
        let mut agent = agent(Owner::default());
        written(&mut agent, 1000, "");
        agent.observe_report(&asks(1000, Some(1000)), at(1010));
        assert_eq!(agent.due_write(at(1010)), None, "an earlier agent has answered");
        agent.observe_report(&asks(1020, Some(1000)), at(1025));
        let mips = written(&mut agent, 1025, "mips").unwrap().as_i64().unwrap();
        assert!((18_000..28_000).contains(&mips), "{mips}");
        agent.observe_report(&asks(1020, Some(1000)), at(1030));
        assert_eq!(agent.due_write(at(1030)), None, "the answer is on its way");
        agent.observe_report(&asks(1050, None), at(1040));
        let late = Some(json!("1970-01-01T00:17:30Z"));
        assert_eq!(
            written(&mut agent, 1040, "benchmarkedAt"),
            late,
            "by another's clock it was asked for later"
        );
    }
}
