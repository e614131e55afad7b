//! Cordoned nodes, and `kubectl drain`, which evicts as a PodDisruptionBudget allows.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::cluster::{Cluster, only_on, phase};
use crate::program::{OnTerm, Program};
use crate::proof::{self, Proof, Run};
use crate::report::kubectl;

const PROCS: usize = 3;

/// The number of pods that the budget wants to be available.
const AVAILABLE: usize = 2;

/// How many procs had a program that ran and had not been asked to go, at this time.
fn serving(proof: &Proof, at: f64) -> usize {
    let serves = |run: &Run| run.started <= at && at < run.term.unwrap_or(run.last);
    proof.all_runs().filter(|(_, run)| serves(run)).count()
}

/// A cluster in which so many procs of the job `service` run on node1, while the other nodes are cordoned.
async fn service(namespace: &str) -> Cluster {
    let cluster = Cluster::start(namespace, "MachineMaxVacateTime = 10").await;
    for node in ["node2", "node3"] {
        cluster.cordon(node, true).await;
    }
    let program = Program::new(600, 600).on_term(OnTerm::Exit { after: 1, code: 0 });
    cluster.apply(program.job(namespace, "service", u32::try_from(PROCS).unwrap(), |_| {})).await;
    cluster.running("service", PROCS).await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_cordon_evicts_nobody_and_lets_nobody_in() {
    let cluster = service("cordon").await;
    cluster.cordon("node1", true).await;
    cluster.apply(Program::new(2, 2).job(&cluster.namespace, "new", 1, only_on("node1"))).await;
    cluster
        .throughout("a cordon evicts nobody and lets nobody in", 12, || async {
            let left = cluster.proof("service").all_runs().any(|(_, run)| run.term.is_some());
            let pods = cluster.pods_of("service").await;
            !left
                && pods.iter().filter(|pod| stays(pod)).count() == PROCS
                && cluster.pods_of("new").await.is_empty()
        })
        .await;
    cluster.cordon("node1", false).await;
    cluster.completed("new", 60).await;
    assert_eq!(cluster.violations("new", |_| false).await, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn kubectl_drain_keeps_the_budget() {
    let cluster = service("budget").await;
    let version = if cluster.minor_version().await >= 21 { "policy/v1" } else { "policy/v1beta1" };
    let budget = json!({
        "apiVersion": version, "kind": "PodDisruptionBudget",
        "metadata": {"name": "service", "namespace": cluster.namespace},
        "spec": {"minAvailable": AVAILABLE, "selector": {"matchLabels": {api::labels::JOB_NAME: "service"}}},
    });
    cluster.apply(budget.clone()).await;
    cluster.cordon("node2", false).await;
    let from = proof::now();
    // kubectl drain cordons, then evicts as the budget allows. node2 takes who was evicted.
    let said = spawn_blocking(|| {
        kubectl(&[
            "drain",
            "node1",
            "--force",
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            "--timeout=150s",
        ])
    })
    .await
    .unwrap();
    let until = proof::now();
    let proof = cluster.proof("service");
    let record = cluster.record("service").await;
    cluster.delete(&budget).await;
    let mut wrong = proof.overlaps();
    if !said.contains("node/node1 drained") {
        wrong.push(format!("kubectl drain did not end: {said}"));
    }
    if !record.completed.is_empty() || !record.failed.is_empty() {
        wrong.push(format!("nobody has ended: {record:?}"));
    }
    for proc in 0..u32::try_from(PROCS).unwrap() {
        let runs = proof.runs(proc);
        if runs[0].node != "node1" || !runs[0].shut_down {
            wrong.push(format!("proc {proc} was to be asked to leave node1, and to leave: {runs:?}"));
        }
    }
    // Right after each SIGTERM, enough of the others ran.
    for term in proof.all_runs().filter_map(|(_, run)| run.term).filter(|at| (from..until).contains(at)) {
        let serving = serving(&proof, term + 0.01);
        if serving < AVAILABLE {
            wrong.push(format!("at {term:.1}, {serving} procs were available, not {AVAILABLE}"));
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}\n{proof:#?}", wrong.len(), wrong.join("\n"));
}

fn stays(pod: &Pod) -> bool {
    phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none()
}
