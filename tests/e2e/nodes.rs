//! Nodes that are cordoned, that run pods of others, that are lost, and that are missed.

use hollow::nodes::shapes;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams};
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

/// Two nodes go: one that was ready, and one that was not. The policy misses the latter alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_node_went_is_absent_until_the_node_is_back() {
    let mut cluster = Cluster::start(shapes::uniform(2, 2000, 8 << 30)).await;
    cluster
        .apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "missed"},
            "spec": {"nodeSelector": {}, "config": "ABSENT_REQUIREMENTS = TotalCpus >= 2\n"},
        }))
        .await;
    let (broken, ready) = {
        let mut names = cluster.nodes.as_ref().unwrap().names();
        (names.remove(0), names.remove(0))
    };
    for name in [&broken, &ready] {
        let offered = async || {
            let slot = cluster.pslots().get_opt(&format!("slot1.{name}")).await.unwrap();
            let status = slot.and_then(|slot| slot.status);
            status.is_some_and(|status| status.conditions.iter().any(|c| c.reason == "Offered"))
        };
        eventually("the nodes are offered", offered).await;
    }
    let policies: Api<api::NodePolicy> = Api::all(cluster.client.clone());
    eventually("the policy is accepted", || async {
        let policy = policies.get("missed").await.unwrap();
        policy.status.is_some_and(|status| status.conditions.iter().any(|c| c.reason == "Accepted"))
    })
    .await;
    let nodes = cluster.nodes.as_ref().unwrap();
    nodes.set_ready(&broken, false).await.unwrap();
    eventually("the node is seen not to be ready", || async {
        let slot = cluster.pslots().get(&format!("slot1.{broken}")).await.unwrap();
        let status = slot.status.unwrap_or_default();
        status.conditions.iter().any(|c| c.reason == "NotReady")
    })
    .await;
    for name in [&broken, &ready] {
        tokio::time::timeout(PATIENCE, nodes.remove(name)).await.expect("the node goes").unwrap();
    }
    let absent: Api<api::AbsentMachine> = Api::all(cluster.client.clone());
    let told = async || {
        let found = absent.get_opt(&broken).await.unwrap().and_then(|machine| machine.status);
        found.is_some_and(|status| status.slots.iter().any(|slot| slot.ad.contains("Absent = true")))
    };
    eventually("the machine is absent", told).await;
    eventually("the slots have gone", || async {
        cluster.pslots().list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    assert_eq!(absent.get_opt(&ready).await.unwrap(), None, "that node went in good order");

    let written = absent.get(&broken).await.unwrap();
    cluster.kill_operator();
    cluster.start_operator();
    let nodes = cluster.nodes.as_ref().unwrap();
    let again = shapes::uniform(2, 2000, 8 << 30).into_iter().find(|shape| shape.name == ready);
    nodes.add(again.unwrap()).await.unwrap();
    eventually("the operator leads again", || async {
        cluster.pslots().get_opt(&format!("slot1.{ready}")).await.unwrap().is_some()
    })
    .await;
    assert_eq!(
        absent.get(&broken).await.unwrap(),
        written,
        "a new leader knows of the machine, and writes nothing"
    );
    let back = shapes::uniform(2, 2000, 8 << 30).into_iter().find(|shape| shape.name == broken);
    nodes.add(back.unwrap()).await.unwrap();
    eventually("the machine is back", || async { absent.get_opt(&broken).await.unwrap().is_none() }).await;
    cluster.stop().await;
}
