//! For each cause of waiting: the reason that `kubectl get -o wide`, the conditions, the events and `q` show is the same.

use std::collections::BTreeMap;
use std::time::Duration;

use controller::kinds;
use kube::CustomResourceExt;
use model::pool::{Document, Effect, Event, HoldReason, JOB_POLICY_UNDEFINED, JobUid, Outcome, Pool, Time};
use model::{decide, negotiator};
use serde_json::{Value, json};

use super::lines;
use api::HTCJob;

/// A pool, and the events that jobs got.
struct World {
    pool: Pool,
    now: Time,
    events: Vec<(String, String)>,
    jobs: BTreeMap<String, Value>,
}

impl World {
    /// One node of four CPUs.
    fn new() -> Self {
        let now = Time::from_secs(1_767_225_600);
        let mut world = Self { pool: Pool::default(), now, events: Vec::new(), jobs: BTreeMap::new() };
        world.node("n1", 4, &json!({}), &json!({}));
        world
    }

    fn node(&mut self, name: &str, cpus: u32, spec: &Value, labels: &Value) {
        let gpus = if labels.get("nvidia.com/gpu.product").is_some() { "2" } else { "0" };
        let node = json!({
            "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec,
            "status": {
                "allocatable": {"cpu": cpus.to_string(), "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110",
                                "nvidia.com/gpu": gpus},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        let slim: kinds::node::SlimNode = serde_json::from_value(node).unwrap();
        self.pool.apply(Event::Machine(kinds::node::facts(&slim).unwrap()), self.now);
    }

    fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: &Value) -> K {
        let metadata = json!({"name": name, "namespace": "alice", "uid": name, "generation": 1,
                              "creationTimestamp": "2026-01-01T00:00:00Z"});
        let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    fn job(&mut self, name: &str, mut spec: Value) {
        spec["template"] = json!({"spec": {"containers": [{"name": "main", "image": "busybox"}]}});
        let job: HTCJob = Self::object("HTCJob", name, &spec);
        self.jobs.insert(name.to_owned(), serde_json::to_value(&job).unwrap());
        self.pool.apply(Event::Job(kinds::job::facts(&job).unwrap()), self.now);
    }

    /// Lets the deciders work for a while. Claims stay unwritten, so that no pod starts.
    fn pass(&mut self) {
        self.pool.apply(Event::Synced, self.now);
        for _ in 0..40 {
            let decision = decide::decide(&mut self.pool, self.now);
            for effect in decision.effects {
                match effect {
                    Effect::AddJobFinalizer(key) => {
                        self.pool.apply(Event::Outcome(Outcome::JobFinalizerSet(key.uid)), self.now);
                    }
                    Effect::Tell(notice) if notice.about.uid() == "job" => {
                        self.events.push((notice.reason.to_owned(), notice.note));
                    }
                    _ => {}
                }
            }
            if let Some(negotiation) = decision.negotiation {
                let outcome = negotiator::negotiate(&negotiation.cycle);
                decide::conclude(&mut self.pool, &negotiation, &outcome, self.now);
            }
            self.now = self.now + Duration::from_secs(2);
        }
    }

    /// The job's object as the API server has it.
    fn shown(&self, name: &str) -> Value {
        let document = Document::Job(JobUid::from(name));
        let kinds::Rendered::Status(status) = kinds::render(&self.pool, &document, &Value::Null, self.now)
        else {
            panic!("{name} has no status")
        };
        let mut job = self.jobs[name].clone();
        job["status"] = status;
        job
    }
}

/// Makes a job named `job` wait.
type Cause = fn(&mut World);

const CAUSES: [(&str, &str, Cause); 11] = [
    ("quota", "GroupQuotaReached", |world| {
        let group = World::object(
            "GroupQuota",
            "physics",
            &json!({"name": "physics", "quota": 2, "owners": ["alice"]}),
        );
        world.pool.apply(Event::Group(kinds::group_quota::facts(&group)), world.now);
        world.job("job", json!({"count": 3, "accountingGroup": "physics"}));
    }),
    ("ceiling", "CeilingReached", |world| {
        let submitter = World::object("Submitter", "alice", &json!({"name": "alice", "ceiling": 2}));
        world.pool.apply(Event::Submitter(kinds::submitter::facts(&submitter).unwrap()), world.now);
        world.job("job", json!({"count": 3}));
    }),
    ("concurrency limit", "ConcurrencyLimitReached", |world| {
        limit(world);
        world.job("job", json!({"count": 4, "concurrencyLimits": ["xsw"]}));
    }),
    ("a limit that can never be", "ConcurrencyLimitTooSmall", |world| {
        limit(world);
        world.job("job", json!({"count": 1, "concurrencyLimits": ["xsw:9"]}));
    }),
    ("busy", "MachinesBusy", |world| {
        world.job("theirs", json!({"count": 4, "priority": 5}));
        world.job("job", json!({"count": 1}));
    }),
    ("nobody could ever", "RequestTooLarge", |world| {
        world.job("job", json!({"count": 1, "requests": {"cpus": 64}}));
    }),
    ("cordoned", "NodesNotOffered", |world| {
        world.node("n2", 8, &json!({"unschedulable": true}), &json!({}));
        world.job("job", json!({"count": 1, "requests": {"cpus": 6}}));
    }),
    ("tainted", "NodesNotOffered", |world| {
        world.node("n2", 8, &json!({"taints": [{"key": "lab", "effect": "NoSchedule"}]}), &json!({}));
        world.job("job", json!({"count": 1, "requests": {"cpus": 6}}));
    }),
    ("START", "RefusedByMachines", |world| {
        let policy = World::object(
            "NodePolicy",
            "lab",
            &json!({"config": "START = TARGET.Owner == \"bob\"", "nodeSelector": {}}),
        );
        world.pool.apply(Event::Policy(kinds::node_policy::facts(&policy)), world.now);
        world.job("job", json!({"count": 1}));
    }),
    ("held", "TooExpensive", |world| {
        world.job("job", json!({"count": 2}));
        let hold = HoldReason { code: JOB_POLICY_UNDEFINED, subcode: 0, reason: "too many steps".into() };
        world.pool.hold_waiting(&JobUid::from("job"), &hold, Time::from_secs(0));
    }),
    ("requireGpus", "RequirementsNotMet", |world| {
        let labels = json!({"nvidia.com/gpu.product": "Tesla T4", "nvidia.com/gpu.compute.major": "7",
                            "nvidia.com/gpu.compute.minor": "5"});
        world.node("gpu1", 4, &json!({}), &labels);
        world.job("job", json!({"count": 1, "requests": {"gpus": 1, "requireGpus": "Capability >= 8.0"}}));
    }),
];

fn limit(world: &mut World) {
    let limit = World::object("ConcurrencyLimit", "xsw", &json!({"name": "xsw", "limit": 3}));
    world.pool.apply(Event::Limit(kinds::concurrency_limit::facts(&limit)), world.now);
}

#[test]
fn every_view_gives_the_same_reason() {
    let column = HTCJob::crd().spec.versions.remove(0).additional_printer_columns.unwrap_or_default();
    let column = column.into_iter().find(|column| column.name == "Why").unwrap();
    assert_eq!(column.json_path, ".status.why");
    for (cause, reason, make) in CAUSES {
        let mut world = World::new();
        make(&mut world);
        world.pass();
        let shown = world.shown("job");
        let wide =
            shown["status"]["why"].as_str().unwrap_or_else(|| panic!("{cause}: nothing is said: {shown}"));
        let job: HTCJob = serde_json::from_value(shown.clone()).unwrap();
        let conditions = job.status.as_ref().unwrap().conditions.clone();
        let said: Vec<&str> = conditions
            .iter()
            .filter(|condition| condition.reason == reason)
            .map(|condition| condition.message.as_str())
            .collect();
        assert_eq!(said, [wide], "{cause}: conditions");
        assert_eq!(lines([&job])[0].why.as_deref(), Some(wide), "{cause}: q");
        let held = cause == "held";
        let told = world.events.iter().any(|(event, note)| {
            if held {
                event == "ProcHeld" && note.contains("too many steps")
            } else {
                event == reason && note == wide
            }
        });
        assert!(told, "{cause}: {:#?}", world.events);
    }
}
