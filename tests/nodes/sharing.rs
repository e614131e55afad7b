//! Scarce resources are never given twice: GPUs, and nodes that kube-scheduler uses as well.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::cluster::{Cluster, node_names};
use crate::program::{IMAGE, Program};
use crate::proof::Proof;

const GPUS: usize = 2;

/// The most programs of one node that lived at once.
fn most_at_once(proof: &Proof, node: &str) -> usize {
    let runs: Vec<_> = proof.all_runs().map(|(_, run)| run).filter(|run| run.node == node).collect();
    runs.iter()
        .map(|run| {
            runs.iter().filter(|other| other.started <= run.started && run.started < other.last).count()
        })
        .max()
        .unwrap_or(0)
}

/// The pods of the namespace that a kubelet refused for want of a resource.
async fn refused(cluster: &Cluster) -> Vec<Pod> {
    let pods = cluster.pods().list(&ListParams::default()).await.unwrap().items;
    let reason = |pod: &Pod| pod.status.as_ref().and_then(|status| status.reason.clone()).unwrap_or_default();
    pods.into_iter().filter(|pod| reason(pod).starts_with("OutOf")).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn gpus_are_never_given_twice() {
    let cluster = Cluster::start("gpus", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    for node in ["node1", "node2"] {
        let capacity = Patch::Merge(json!({"status": {"capacity": {"nvidia.com/gpu": GPUS.to_string()}}}));
        cluster.nodes().patch_status(node, &PatchParams::default(), &capacity).await.unwrap();
    }
    let train = Program::new(4, 4);
    for name in ["train", "infer"] {
        cluster.apply(train.job(&space, name, 8, |job| job["spec"]["requests"]["gpus"] = json!(1))).await;
    }
    let mut both = Proof::default();
    for (number, name) in [(0, "train"), (1, "infer")] {
        let record = cluster.completed(name, 150).await;
        assert_eq!(record.completed.len(), 8, "{name}: {record:?}");
        assert_eq!(cluster.violations(name, |_| false).await, [] as [String; 0]);
        both.extend(cluster.proof(name), number * 100);
    }
    for node in node_names() {
        let (most, allowed) = (most_at_once(&both, &node), if node == "node3" { 0 } else { GPUS });
        assert!(most <= allowed, "{node} has {allowed} GPUs, and {most} procs had one at once: {both:#?}");
    }
    let refused = refused(&cluster).await;
    assert!(refused.is_empty(), "a kubelet refused {refused:#?}");
    for node in ["node1", "node2"] {
        let none = Patch::Merge(json!({"status": {"capacity": {"nvidia.com/gpu": null}}}));
        cluster.nodes().patch_status(node, &PatchParams::default(), &none).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn pods_of_the_scheduler_and_procs_share_the_nodes() {
    const EACH: u32 = 50;
    let cluster = Cluster::start("sharing", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    cluster
        .apply(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "others", "namespace": space},
            "spec": {"completions": EACH, "parallelism": EACH, "backoffLimit": EACH, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": IMAGE, "command": ["sleep", "4"],
                                "resources": {"requests": {"cpu": "1"}}}],
            }}},
        }))
        .await;
    cluster.apply(Program::new(4, 4).job(&space, "procs", EACH, |_| {})).await;
    let record = cluster.completed("procs", 240).await;
    assert_eq!(record.completed.len(), usize::try_from(EACH).unwrap(), "{record:?}");
    assert_eq!(cluster.violations("procs", |_| false).await, [] as [String; 0]);
    let others: Api<Job> = Api::namespaced(cluster.client.clone(), &space);
    cluster
        .until("kube-scheduler's pods have all run", 180, || async {
            let status = others.get("others").await.unwrap().status.unwrap_or_default();
            status.succeeded == i32::try_from(EACH).ok()
        })
        .await;
    // Between a decision and its pod, the other side may take the same place: the kubelet refuses one of the two, and it
    // is tried again. A pool that took no notice of the scheduler's pods would have nearly all of its own refused.
    let refused = refused(&cluster).await.len();
    eprintln!("the kubelets refused {refused} of {} pods", 2 * EACH);
    assert!(refused <= 25, "{refused} pods were refused");
}
