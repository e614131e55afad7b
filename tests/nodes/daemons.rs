//! Kubelets and container runtimes that are killed and started again: the programs go on meanwhile, and the record is right.

use crate::cluster::{Cluster, only_on};
use crate::machine::node;
use crate::program::{OnTerm, Program};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn procs_outlive_the_kubelet_and_the_container_runtime() {
    let cluster = Cluster::start("daemons", "MachineMaxVacateTime = 20").await;
    let space = cluster.namespace.clone();
    let polite = OnTerm::Exit { after: 1, code: 0 };
    for (place, daemon) in [("node1", "kubelet"), ("node2", "containerd")] {
        // Some end while the daemon is away, some later, some with an error; one is deleted meanwhile.
        let jobs = [
            ("early", Program::new(7, 7), 3),
            ("late", Program::new(25, 25), 2),
            ("early-7", Program::new(7, 7).exit(7), 2),
            ("deleted", Program::new(90, 2).on_term(polite), 1),
        ];
        for (name, program, count) in jobs {
            cluster.apply(program.job(&space, &format!("{daemon}-{name}"), count, only_on(place))).await;
        }
    }
    let all = |name: &str| ["kubelet", "containerd"].map(|daemon| format!("{daemon}-{name}"));
    for (name, count) in [("early", 3), ("late", 2), ("early-7", 2), ("deleted", 1)] {
        for job in all(name) {
            cluster.running(&job, count).await;
        }
    }
    tokio::task::spawn_blocking(|| {
        node(&["kill", "1", "kubelet"]);
        node(&["kill", "2", "containerd"]);
    })
    .await
    .unwrap();
    for job in all("deleted") {
        cluster.delete_pods(&cluster.pods_of(&job).await).await;
    }
    for job in ["early", "early-7"].into_iter().flat_map(all) {
        cluster
            .until(&format!("{job} ends while nobody looks"), 30, || async {
                cluster.proof(&job).all_runs().all(|(_, run)| run.ended.is_some())
            })
            .await;
    }
    tokio::task::spawn_blocking(|| {
        node(&["start", "1"]);
        node(&["start", "2"]);
    })
    .await
    .unwrap();
    let mut wrong = Vec::new();
    for name in ["early", "late", "early-7", "deleted"] {
        for job in all(name) {
            cluster.completed(&job, 120).await;
            wrong.extend(cluster.violations(&job, |_| false).await);
            let proof = cluster.proof(&job);
            let expected = if name == "deleted" { 2 } else { 1 };
            for (proc, run) in proof.all_runs().filter(|(proc, _)| proof.runs(*proc).len() != expected) {
                wrong.push(format!("{job}.{proc} ran {} times: {run:?}", proof.runs(proc).len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}
