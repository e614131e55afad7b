//! Backfill pods on hollow nodes: they run while nobody claims their slot, survive a restart of the operator, and are
//! deleted before a job starts in the slot.

use api::{NodePolicy, labels};
use hollow::nodes::shapes;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, ListParams, PostParams};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::harness::{Cluster, eventually, job};

/// Creates the priority class that the chart has.
async fn priority_class(cluster: &Cluster) {
    let classes: Api<PriorityClass> = Api::all(cluster.client.clone());
    let class = serde_json::from_value(json!({
        "metadata": {"name": labels::BACKFILL_PRIORITY}, "value": -1000, "preemptionPolicy": "Never"}));
    let _ = classes.create(&PostParams::default(), &class.unwrap()).await;
}

async fn pods(cluster: &Cluster) -> Vec<Pod> {
    let marked = ListParams::default().labels(labels::BACKFILL);
    cluster.pods("backfill").list(&marked).await.unwrap().items
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_slots_do_backfill_work_until_a_job_comes() {
    let mut cluster = Cluster::start(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("backfill").await;
    cluster.namespace("backfill-users").await;
    priority_class(&cluster).await;
    cluster
        .apply(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "fill"},
            "spec": {
                "config": "ENABLE_BACKFILL = true\nSTART_BACKFILL = true\nKILLING_TIMEOUT = 5\n",
                "backfill": {"namespace": "backfill", "template": {"spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "boinc", "image": "busybox"}]}}}}}))
        .await;
    eventually("each node does backfill work", || async {
        pods(&cluster).await.iter().filter(|pod| runs(pod)).count() == 2
    })
    .await;
    let before: Vec<String> = pods(&cluster).await.iter().map(|pod| pod.uid().unwrap()).collect();

    cluster.kill_operator();
    cluster.start_operator();
    let four = json!({"cpus": 4, "memory": "128Mi"});
    cluster.apply(job("backfill-users", "wide", 1, "1s", |o| o["spec"]["requests"] = four.clone())).await;
    cluster.completed("backfill-users", "wide").await;
    eventually("the slot goes back to its backfill work", || async {
        pods(&cluster).await.iter().filter(|pod| runs(pod)).count() == 2
    })
    .await;
    let after: Vec<String> = pods(&cluster).await.iter().map(|pod| pod.uid().unwrap()).collect();
    let same = after.iter().filter(|uid| before.contains(uid)).count();
    assert_eq!(same, 1, "only the slot that was wanted was cleared: {before:?} {after:?}");

    let policies: Api<NodePolicy> = Api::all(cluster.client.clone());
    policies.delete("fill", &DeleteParams::default()).await.unwrap();
    eventually("the pods go with their policy", || async { pods(&cluster).await.is_empty() }).await;
    assert_eq!(cluster.watch.report().violations(), []);
    cluster.stop().await;
}
