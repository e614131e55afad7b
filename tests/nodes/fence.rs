//! A node that is cut off: its kubelet and its agent are dead, and its containers go on. The guard on the node keeps the agent's
//! promise, so that the proc runs elsewhere.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use api::NodeReport;
use api::labels::{AGENT_LEASE_PREFIX, FENCES};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use crate::agents::{agent_command, reports};
use crate::cluster::{Cluster, spawn, state};
use crate::machine::node;
use crate::program::Program;
use crate::proof::now;

/// The lease of the job, in seconds: the shortest that there is.
const LEASE: f64 = 40.0;
/// How long after its lease a pod of a node that is cut off may run.
const KEPT_WITHIN: f64 = 15.0;
/// How long the operator waits in addition to the lease.
const MARGIN: f64 = 30.0;

/// A node's agent, and the guard beside it.
struct Fenced {
    node: String,
    directory: PathBuf,
    agent: Option<Child>,
    guard: Option<Child>,
    started: u32,
}

impl Fenced {
    fn new(cluster: &Cluster, number: u32) -> Self {
        let node = format!("node{number}");
        let directory = state().join("fence").join(&cluster.namespace).join(&node);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("shared")).unwrap();
        std::fs::create_dir_all(directory.join("pts")).unwrap();
        let mut fenced = Self { node, directory, agent: None, guard: None, started: 0 };
        fenced.start_guard(cluster);
        fenced.start_agent(cluster);
        fenced
    }

    fn log(&mut self, cluster: &Cluster, what: &str) -> File {
        self.started += 1;
        File::create(cluster.log_dir().join(format!("{what}-{}-{}.log", self.node, self.started))).unwrap()
    }

    /// As the unit runs a guard: root on the host. The kubelet of each node of this computer has a directory of its own.
    fn start_guard(&mut self, cluster: &Cluster) {
        let log = self.log(cluster, "guard");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_slotwright"), "guard"]);
        command.arg("--fence-directory").arg(self.directory.join("shared"));
        command.arg("--kubelet-root").arg(state().join(&self.node).join("kubelet"));
        self.guard = Some(spawn(&mut command, "admin", log));
    }

    fn start_agent(&mut self, cluster: &Cluster) {
        let log = self.log(cluster, "agent");
        let mut command = agent_command(&self.node, &self.directory);
        command.arg("--fence-directory").arg(self.directory.join("shared"));
        self.agent = Some(spawn(&mut command, &format!("agent-{}", self.node), log));
    }

    /// When the agent sent the last renewal of which it has told the guard, in seconds since the boot: the programs' clock.
    fn renewed(&self) -> f64 {
        let permit = std::fs::read(self.directory.join("shared/permit.json")).unwrap();
        let permit: serde_json::Value = serde_json::from_slice(&permit).unwrap();
        permit["renewedMillis"].as_f64().unwrap() / 1000.0
    }

    /// Kills the agent with SIGKILL.
    fn kill_agent(&mut self) {
        end(&mut self.agent);
    }

    /// Kills the guard with SIGKILL.
    fn kill_guard(&mut self) {
        end(&mut self.guard);
    }

    async fn promises(&self, cluster: &Cluster) -> bool {
        let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
        let lease = leases.get_opt(&format!("{AGENT_LEASE_PREFIX}{}", self.node)).await.unwrap();
        lease.is_some_and(|lease| lease.annotations().get(FENCES).is_some_and(|said| said == "true"))
    }

    /// Waits until the operator counts on the agent, and the agent promises.
    async fn is_counted_on(&self, cluster: &Cluster) {
        reports(cluster, &self.node).await;
        cluster.until(&format!("{} promises", self.node), 90, || self.promises(cluster)).await;
    }

    /// Waits until the agent's report names the pod.
    async fn covers(&self, cluster: &Cluster, uid: &str) {
        let all: Api<NodeReport> = Api::all(cluster.client.clone());
        cluster
            .until(&format!("the promise of {} covers {uid}", self.node), 90, || async {
                let status = all.get(&self.node).await.unwrap().status.unwrap_or_default();
                status.usage.iter().any(|usage| usage.uid == uid)
            })
            .await;
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        end(&mut self.agent);
        end(&mut self.guard);
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

async fn on_node(arguments: &'static [&'static str]) {
    tokio::task::spawn_blocking(move || node(arguments)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_guard_ends_what_runs_on_a_node_that_is_cut_off_and_the_proc_runs_elsewhere() {
    let cluster = Cluster::start("fence", "MachineMaxVacateTime = 10").await;
    let (mut first, second) = (Fenced::new(&cluster, 1), Fenced::new(&cluster, 2));
    first.is_counted_on(&cluster).await;
    second.is_counted_on(&cluster).await;
    cluster
        .apply(Program::new(1000, 10).job("fence", "count", 1, |job| {
            job["spec"]["attributes"] = json!({"JobLeaseDuration": "40"});
            job["spec"]["requirements"] = json!("TARGET.Machine != \"node3\"");
            job["spec"]["rank"] = json!("TARGET.Machine == \"node1\"");
        }))
        .await;
    cluster.running("count", 1).await;
    let old = cluster.proof("count").only(0).clone();
    assert_eq!(old.node, "node1", "the job prefers this node");
    first.covers(&cluster, &old.pod).await;

    on_node(&["kill", "1", "kubelet"]).await;
    first.kill_agent();
    let renewed = first.renewed();
    // A guard that dies too is started again by systemd.
    first.kill_guard();
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.start_guard(&cluster);
    cluster
        .throughout("the program goes on", 15, || async { cluster.proof("count").only(0).last > now() - 3.0 })
        .await;
    cluster
        .until("the program has ended", 60, || async { cluster.proof("count").runs(0)[0].last < now() - 3.0 })
        .await;
    let ended = cluster.proof("count").runs(0)[0].last - renewed;
    eprintln!("the program ended {ended:.1} s after the last renewal");
    assert!(ended > LEASE - 1.0 && ended < LEASE + KEPT_WITHIN, "{ended:.1} s");
    assert_eq!(cluster.proof("count").runs(0).len(), 1, "nobody counts on it yet");
    cluster
        .until("the proc runs elsewhere", 90, || async { cluster.proof("count").runs(0).len() == 2 })
        .await;
    let again = cluster.proof("count").runs(0)[1].clone();
    let waited = again.started - renewed;
    eprintln!("the proc ran again {waited:.1} s after the last renewal, on {}", again.node);
    assert_eq!(again.node, "node2");
    assert!(waited > LEASE + MARGIN && waited < LEASE + MARGIN + 30.0, "{waited:.1} s");

    // The kubelet is back, and then the agent. Nothing of the old pod runs again, and the guard sees to that.
    on_node(&["start", "1"]).await;
    cluster.throughout("the old pod stays ended", 10, || async { stays_ended(&cluster, &old.pod) }).await;
    first.start_agent(&cluster);
    first.is_counted_on(&cluster).await;
    let record = cluster.completed("count", 60).await;
    assert!(stays_ended(&cluster, &old.pod));
    assert_eq!((record.completed.len(), record.failed.len()), (1, 0), "{record:?}");
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    assert_eq!(cluster.proof("count").runs(0).len(), 2);
}

/// Whether the only run of this pod was its first, and is over.
fn stays_ended(cluster: &Cluster, pod: &str) -> bool {
    let proof = cluster.proof("count");
    let runs: Vec<_> = proof.runs(0).iter().filter(|run| run.pod == pod).collect();
    runs.len() == 1 && runs[0].last < now() - 3.0 && proof.overlaps().is_empty()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn an_agent_promises_nothing_while_no_guard_works() {
    let cluster = Cluster::start("fence-guard", "MachineMaxVacateTime = 10").await;
    let mut fenced = Fenced::new(&cluster, 1);
    fenced.is_counted_on(&cluster).await;
    fenced.kill_guard();
    cluster.until("the promise has ended", 40, || async { !fenced.promises(&cluster).await }).await;
    fenced.start_guard(&cluster);
    fenced.is_counted_on(&cluster).await;
}
