//! Nodes that are cordoned, that run pods of others, and that are lost.

use hollow::nodes::shapes;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::harness::{Cluster, PATIENCE, eventually, job};

#[tokio::test(flavor = "multi_thread")]
async fn a_cordoned_node_offers_nothing_new() {
    let cluster = Cluster::start(shapes::uniform(1, 2000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("nodes-cordon").await;
    let nodes = cluster.nodes.as_ref().unwrap();
    let name = nodes.names().remove(0);
    nodes.cordon(&name).await.unwrap();
    let pslot = format!("slot1.{name}");
    eventually("the slot says so", || async {
        let slot = cluster.pslots().get_opt(&pslot).await.unwrap();
        slot.and_then(|slot| slot.status)
            .is_some_and(|status| status.conditions.iter().any(|c| c.reason == "Cordoned"))
    })
    .await;
    cluster.apply(job("nodes-cordon", "waits", 2, "100ms", |_| {})).await;
    cluster
        .job_when("nodes-cordon", "waits", "waits", |job| {
            let reason =
                |c: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| c.reason == "Accepted";
            job.status.as_ref().is_some_and(|s| s.idle == 2 && s.conditions.iter().any(reason))
        })
        .await;
    assert!(cluster.slots().list(&ListParams::default()).await.unwrap().items.is_empty());
    nodes.uncordon(&name).await.unwrap();
    cluster.completed("nodes-cordon", "waits").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_others_reduce_what_is_offered() {
    let cluster = Cluster::without_operator(shapes::uniform(1, 4000, 8 << 30)).await;
    cluster.namespace("nodes-share").await;
    let node = cluster.nodes.as_ref().unwrap().names().remove(0);
    let other: Pod = serde_json::from_value(json!({
        "metadata": {"name": "database", "annotations": {"hollow.slotwright.dev/runtime": "10m"}},
        "spec": {"nodeName": node, "containers": [{"name": "db", "image": "db",
                 "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}]},
    }))
    .unwrap();
    cluster.pods("nodes-share").create(&PostParams::default(), &other).await.unwrap();
    let mut cluster = cluster;
    cluster.start_operator();
    cluster.quick_cycles().await;
    eventually("the slot offers what is left", || async {
        let slot = cluster.pslots().get_opt(&format!("slot1.{node}")).await.unwrap();
        slot.and_then(|slot| slot.status).is_some_and(|s| s.total.cpus == 2 && s.total.memory_mib == 7 * 1024)
    })
    .await;
    cluster.apply(job("nodes-share", "fill", 6, "200ms", |_| {})).await;
    cluster.completed("nodes-share", "fill").await;
    let report = cluster.watch.report();
    assert_eq!(report.violations(), []);
    assert_eq!(report.totals().out_of_resources, 0);
    // On a real server, which tests share, this pod would take resources from the nodes of the next test.
    let gone = DeleteParams::default().grace_period(0);
    cluster.pods("nodes-share").delete("database", &gone).await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn procs_of_a_lost_node_run_elsewhere() {
    let cluster = Cluster::start(shapes::uniform(2, 2000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("nodes-lost").await;
    cluster.apply(job("nodes-lost", "sweep", 4, "6s", |_| {})).await;
    cluster
        .job_when("nodes-lost", "sweep", "runs", |job| job.status.as_ref().is_some_and(|s| s.running == 4))
        .await;
    eventually("pods run", || async {
        let pods = cluster.pods("nodes-lost").list(&ListParams::default()).await.unwrap();
        pods.items.len() == 4
    })
    .await;
    let nodes = cluster.nodes.as_ref().unwrap();
    let name = nodes.names().remove(0);
    tokio::time::timeout(PATIENCE, nodes.remove(&name)).await.expect("the node goes").unwrap();
    let done = cluster.completed("nodes-lost", "sweep").await;
    let uid = done.metadata.uid.clone().unwrap();
    let status = done.status.unwrap();
    assert_eq!((status.completed, status.failed), (4, 0), "{status:#?}");
    // Each proc must succeed exactly once. The watchdog may learn of it a moment after the job's status shows it.
    eventually("the watchdog has seen every proc succeed", || async {
        let report = cluster.watch.report();
        report.procs().filter(|(proc, counts)| proc.job_uid == uid && counts.succeeded > 0).count() == 4
    })
    .await;
    let report = cluster.watch.report();
    let again: Vec<_> = report.procs().filter(|(proc, c)| proc.job_uid == uid && c.succeeded != 1).collect();
    assert!(again.is_empty(), "{again:?}");
    cluster.stop().await;
}
