//! Nodes that lose their containers, and nodes that are deleted while their kubelets still end pods.

use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::cluster::{Cluster, only_on};
use crate::machine::node;
use crate::program::{OnTerm, Program};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_node_that_lost_its_containers_fails_no_proc() {
    let cluster = Cluster::start("restart", "MachineMaxVacateTime = 10").await;
    let space = cluster.namespace.clone();
    // node1 loses its power, node2 loses its disk too, and node3 is left alone.
    for name in ["node1", "node2", "node3"] {
        cluster.apply(Program::new(40, 2).job(&space, name, 4, only_on(name))).await;
    }
    for name in ["node1", "node2", "node3"] {
        cluster.running(name, 4).await;
    }
    tokio::task::spawn_blocking(|| {
        node(&["power-cut", "1"]);
        node(&["power-cut", "2", "--wipe"]);
        node(&["start", "1"]);
        node(&["start", "2"]);
    })
    .await
    .unwrap();
    let mut wrong = Vec::new();
    for name in ["node1", "node2", "node3"] {
        let record = cluster.completed(name, 150).await;
        wrong.extend(cluster.violations(name, |_| false).await);
        assert_eq!(record.completed.len() + record.failed.len(), 4, "{name}: {record:?}");
        for proc in 0..4 {
            let runs = cluster.proof(name).runs(proc).to_vec();
            if runs.len() != if name == "node3" { 1 } else { 2 } {
                wrong.push(format!("{name}.{proc} ran {} times: {runs:?}", runs.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_pod_that_is_forgotten_while_it_vacates_is_not_doubled() {
    const POLICY: &str = "MachineMaxVacateTime = 20";
    let cluster = Cluster::start("forgotten", POLICY).await;
    let space = cluster.namespace.clone();
    for node in ["node1", "node2"] {
        cluster.cordon(node, true).await;
    }
    // Its program ignores SIGTERM, so that it lives for all of its vacating time.
    let stubborn = Program::new(100, 2).on_term(OnTerm::Ignore);
    for name in ["gone", "forced"] {
        cluster.apply(stubborn.job(&space, name, 2, |_| {})).await;
        cluster.running(name, 2).await;
    }
    for node in ["node1", "node2"] {
        cluster.cordon(node, false).await;
    }
    let drain = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest", "metadata": {"name": "node3"},
        "spec": {"node": "node3", "schedule": "Quick"},
    });
    cluster.apply(drain).await;
    for name in ["gone", "forced"] {
        cluster
            .until(&format!("{name} heard SIGTERM"), 30, || async {
                cluster.proof(name).all_runs().filter(|(_, run)| run.term.is_some()).count() == 2
            })
            .await;
    }
    // One job's pods are deleted by force, as users do who are tired of waiting; then the whole Node goes.
    let force = DeleteParams::default().grace_period(0);
    for pod in cluster.pods_of("forced").await {
        cluster.pods().delete(&pod.name_any(), &force).await.unwrap();
    }
    cluster.throughout("nobody is doubled", 4, || async { none_doubled(&cluster) }).await;
    cluster.nodes().delete("node3", &DeleteParams::default()).await.unwrap();
    cluster.throughout("nobody is doubled", 25, || async { none_doubled(&cluster) }).await;
    let mut wrong = Vec::new();
    for name in ["gone", "forced"] {
        cluster.completed(name, 120).await;
        wrong.extend(cluster.violations(name, |_| false).await);
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}

fn none_doubled(cluster: &Cluster) -> bool {
    let wrong: Vec<_> =
        ["gone", "forced"].into_iter().flat_map(|job| cluster.proof(job).overlaps()).collect();
    for text in &wrong {
        eprintln!("{text}");
    }
    wrong.is_empty()
}
