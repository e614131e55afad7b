//! Eviction is not the end of a proc, however its program shuts down.

use kube::ResourceExt;
use serde_json::json;

use crate::cluster::{Cluster, phase};
use crate::program::{OnTerm, Program};

/// Who sends the procs away.
const WAYS: [&str; 3] = ["delete", "eviction", "preempt"];

/// For how many seconds the handlers shut down, and with which code they exit.
const HANDLERS: [(u32, i32); 6] = [(0, 0), (1, 0), (3, 0), (0, 7), (1, 7), (3, 7)];

/// The number of procs of a job whose handler takes `after` seconds. An exit in the same second as the request is the
/// hardest to tell from an end by itself, and comes by chance: a handler that exits at once gets more procs.
const fn procs(after: u32) -> u32 {
    if after == 0 { 3 } else { 1 }
}

/// The slots evict a job with the attribute `LeavesAfter` so many seconds after its containers started. The time counts from their
/// start, since a pod on a busy computer may take longer than that to start.
const POLICY: &str = "MachineMaxVacateTime = 20
PREEMPT = (TARGET.LeavesAfter =!= undefined) && (time() - JobStart) > TARGET.LeavesAfter";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_proc_that_is_sent_away_runs_again_and_is_not_done() {
    let cluster = Cluster::start("eviction", POLICY).await;
    let mut sent = Vec::new();
    for way in WAYS {
        for (after, code) in HANDLERS {
            let name = format!("{way}-{after}-{code}");
            let program = Program::new(120, 2).on_term(OnTerm::Exit { after, code });
            cluster
                .apply(program.job(&cluster.namespace, &name, procs(after), |job| {
                    if way == "preempt" {
                        job["spec"]["attributes"] = json!({"LeavesAfter": "5"});
                    }
                }))
                .await;
            sent.push((name, procs(after)));
        }
    }
    // A proc that ends by itself in the same time is done, and runs once.
    cluster.apply(Program::new(6, 2).job(&cluster.namespace, "ends", 2, |_| {})).await;
    cluster.apply(Program::new(6, 2).exit(7).job(&cluster.namespace, "fails", 2, |_| {})).await;

    for (name, procs) in sent.iter().filter(|(name, _)| !name.starts_with("preempt")) {
        cluster.running(name, *procs as usize).await;
        let pods = cluster.pods_of(name).await;
        if name.starts_with("delete") {
            cluster.delete_pods(&pods).await;
            continue;
        }
        for pod in pods {
            assert!(cluster.evict(&pod.name_any()).await, "there is no budget");
        }
    }
    let mut wrong = run_again(&cluster, &sent).await;
    for (name, code) in [("ends", 0), ("fails", 7)] {
        cluster.completed(name, 60).await;
        wrong.extend(cluster.violations(name, |_| false).await);
        for proc in 0..2 {
            assert_eq!(cluster.proof(name).only(proc).ended, Some(code), "{name}.{proc}");
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}

/// Waits until the jobs are complete. Returns what is wrong: each proc was sent away once, and must run again.
async fn run_again(cluster: &Cluster, sent: &[(String, u32)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, procs) in sent {
        cluster.completed(name, 120).await;
        wrong.extend(cluster.violations(name, |_| false).await);
        let proof = cluster.proof(name);
        for proc in 0..*procs {
            let runs = proof.runs(proc);
            let left = runs.first().is_some_and(|run| run.term.is_some() && run.ended.is_none());
            if !left || runs.len() < 2 {
                wrong.push(format!("{name}.{proc}: sent away once, it must run again: {runs:?}"));
            }
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_proc_that_is_sent_away_while_no_operator_runs_is_not_done() {
    let cluster = Cluster::start("unled", POLICY).await;
    let mut sent = Vec::new();
    for (after, code) in HANDLERS {
        let name = format!("delete-{after}-{code}");
        let program = Program::new(120, 2).on_term(OnTerm::Exit { after, code });
        cluster.apply(program.job(&cluster.namespace, &name, procs(after), |_| {})).await;
        sent.push((name, procs(after)));
    }
    for (name, procs) in &sent {
        cluster.running(name, *procs as usize).await;
    }
    cluster.kill_operator("operator");
    for (name, _) in &sent {
        cluster.delete_pods(&cluster.pods_of(name).await).await;
    }
    // The kubelets have told all ends before an operator looks again.
    cluster
        .until("all pods have ended", 60, || async {
            let pods = cluster.pods().list(&kube::api::ListParams::default()).await.unwrap();
            pods.iter().all(|pod| ["Succeeded", "Failed"].contains(&phase(pod)))
        })
        .await;
    cluster.start_operator("operator", false);
    let wrong = run_again(&cluster, &sent).await;
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}
