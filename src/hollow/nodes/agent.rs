//! The agent of a hollow node: the owner's visits and the pods' requests stand for what a real agent senses; what is reported,
//! and when, is decided by the code of real agents. This file has no clock and does no I/O; `agents` brings both.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::devices::fnv64;
use super::owner::{Owner, Presence};
use super::shape::NodeShape;
use agent::report::{Figures, Reporter, Senses, Write};
use api::{LastInput, NodeReport, NodeReportStatus, PodUsage};

/// The facts about the pods of its node that an agent senses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodActivity {
    /// Uids of the pods that the agent has suspended.
    pub suspended: BTreeSet<String>,
    /// Uids of the pods that the agent ends once their leases have passed. The agent names these in its report, so that its
    /// promise covers them.
    pub covered: BTreeSet<String>,
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
    figures: Figures,
    reporter: Reporter,
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
            figures: Figures { mips: spread(18_000, 28_000), kflops: spread(1_400_000, 2_600_000) },
            reporter: Reporter::new(now),
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

    /// Reads the report as the API server has it, and runs the benchmarks if the operator waits for a run. A run takes no
    /// time.
    pub fn observe_report(&mut self, report: &NodeReport, now: Timestamp) {
        self.reporter.observe_report(report);
        if self.reporter.wants_benchmark() {
            self.reporter.benchmarked(self.figures, now);
        }
    }

    /// Records that the report no longer exists in the API server, so that the agent writes a new one.
    pub fn report_deleted(&mut self) {
        self.reporter.report_deleted();
    }

    /// Returns the write that is due at `now`, if one is.
    pub fn due_write(&mut self, now: Timestamp) -> Option<Write> {
        self.reporter.observe(self.senses(now), now);
        self.reporter.due_write(now)
    }

    /// Records that a write of `status`, made at `now`, succeeded.
    pub fn record_write(&mut self, status: NodeReportStatus, now: Timestamp) {
        self.reporter.record_write(status, now);
    }

    /// When the shell must call [`Agent::due_write`] next; `None` if nothing will change by itself.
    pub fn next_wake(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.reporter.observe(self.senses(now), now);
        self.reporter.next_wake(now).into_iter().chain(self.presence(now).next_change).min()
    }

    fn presence(&self, now: Timestamp) -> Presence {
        self.set_by_hand.unwrap_or_else(|| self.owner.presence(self.start, now))
    }

    fn senses(&self, now: Timestamp) -> Senses {
        let presence = self.presence(now);
        let input = match presence.load {
            Some(_) => LastInput::Ongoing,
            None => LastInput::At(Time(presence.last_input)),
        };
        let pool = cores(self.activity.pool_milli);
        let others = cores(self.activity.other_milli) + presence.load.unwrap_or(0.0);
        Senses {
            keyboard: Some(input.clone()),
            console: Some(input),
            load: Some(pool + others),
            pool_load: Some(pool),
            suspended: self.activity.suspended.iter().map(|uid| uid.as_str().into()).collect(),
            usage: self.activity.covered.iter().map(|uid| named(uid)).collect(),
            ..Senses::default()
        }
    }
}

/// The report's entry for a pod of which nothing is measured.
fn named(uid: &str) -> PodUsage {
    PodUsage { uid: uid.to_owned(), ..PodUsage::default() }
}

/// The load that these millicores make: a core in use is one process.
fn cores(milli: i64) -> f64 {
    f64::from(i32::try_from(milli).unwrap_or(i32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

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

    fn asks(seconds: i64) -> NodeReport {
        let report = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodeReport",
            "metadata": {"name": "n1", "generation": 2}, "spec": {"benchmark": Time(at(seconds))}});
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn an_idle_agent_writes_once() {
        let mut agent = agent(Owner::default());
        assert_eq!(written(&mut agent, 1000, "lastInput/keyboard"), Some(json!("1970-01-01T00:16:40Z")));
        assert_eq!((agent.due_write(at(900_000)), agent.next_wake(at(900_000))), (None, None));
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
    fn pods_make_the_load_that_they_request() {
        let mut agent = agent(Owner::default());
        written(&mut agent, 1000, "");
        agent.observe_pods(PodActivity { pool_milli: 2000, other_milli: 500, ..PodActivity::default() });
        assert_eq!(written(&mut agent, 1005, "load"), Some(json!(2.5)));
        agent.observe_pods(PodActivity { suspended: ["u1".to_owned()].into(), ..PodActivity::default() });
        assert_eq!(written(&mut agent, 1006, "suspendedPods"), Some(json!(["u1"])));
        agent.observe_pods(PodActivity { covered: ["u1".to_owned()].into(), ..PodActivity::default() });
        assert_eq!(written(&mut agent, 1066, "usage"), Some(json!([{"uid": "u1"}])));
    }

    #[test]
    fn each_node_has_figures_of_its_own_which_take_no_time() {
        let mut agent = agent(Owner::default());
        written(&mut agent, 1000, "");
        agent.observe_report(&asks(1020), at(1025));
        let mips = written(&mut agent, 1025, "mips").unwrap().as_i64().unwrap();
        assert!((18_000..28_000).contains(&mips), "{mips}");
        agent.observe_report(&asks(1020), at(1030));
        assert_eq!(agent.due_write(at(1030)), None, "the answer is on its way");
    }
}
