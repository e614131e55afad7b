//! The operator's log.

use hollow::nodes::shapes;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::json;

use crate::harness::{Cluster, eventually, job};

/// The lines that contain all of these texts.
fn lines(log: &str, texts: &[&str]) -> Vec<String> {
    log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).map(str::to_owned).collect()
}

async fn delete_drain(client: &Client, name: &str) {
    let drains: Api<api::DrainRequest> = Api::all(client.clone());
    drains.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_what_happened_and_by_the_filter_how_the_operator_decided() {
    let mut cluster = Cluster::without_operator(shapes::uniform(1, 2000, 8 << 30)).await;
    cluster.namespace("logs").await;
    cluster.quick_cycles().await;
    let path = cluster.start_operator_logging("info,slotwright=debug");
    let log = || std::fs::read_to_string(&path).unwrap();
    let logged = async |texts: &[&str]| {
        eventually(&format!("{texts:?} is logged"), || async { !lines(&log(), texts).is_empty() }).await;
    };

    cluster.apply(job("logs", "long", 1, "10m", |_| {})).await;
    cluster.job_when("logs", "long", "runs", |job| job.status.as_ref().is_some_and(|s| s.running > 0)).await;
    logged(&["a transition", "number=11", "to=Claimed/Busy", "job=long", "proc=0"]).await;
    logged(&["a call", "CreatePod", "long"]).await;
    logged(&["a cycle has ended", "matches=1"]).await;

    let node = cluster.nodes.as_ref().unwrap().names().remove(0);
    let at = format!("node={node}");
    cluster
        .apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest", "metadata": {"name": "d"},
            "spec": {"node": node, "schedule": "Fast", "reason": "new disks"},
        }))
        .await;
    logged(&["INFO", "a drain begins", &at, "schedule=Fast", "reason=new disks"]).await;
    let evicted = ["INFO", "a proc is evicted", "job=long", "proc=0", &at, "reason=StartdDraining"];
    logged(&evicted).await;
    logged(&["INFO", "told of a job", "job=long", "reason=ProcEvicted"]).await;
    logged(&["INFO", "all slots of a node are drained", &at]).await;
    delete_drain(&cluster.client, "d").await;
    logged(&["INFO", "a drain ends", &at]).await;
    assert_eq!(lines(&log(), &evicted).len(), 1, "one line for an eviction");

    cluster.apply(job("logs", "short", 1, "100ms", |_| {})).await;
    cluster.completed("logs", "short").await;
    logged(&["INFO", "told of a job", "job=short", "reason=Completed"]).await;
    assert_eq!(lines(&log(), &["job=short", "Completed"]).len(), 1);

    let start_error = "hollow.slotwright.dev/start-error";
    cluster
        .apply(job("logs", "stuck", 1, "100ms", |o| {
            o["spec"]["template"]["metadata"]["annotations"][start_error] = json!("InvalidImageName: no");
        }))
        .await;
    logged(&["INFO", "told of a job", "job=stuck", "reason=ProcHeld"]).await;
    cluster
        .job_when("logs", "stuck", "is held", |job| {
            job.status.as_ref().is_some_and(|status| !status.held_procs.is_empty())
        })
        .await;
    cluster.apply(job("logs", "stuck", 1, "100ms", |_| {})).await;
    logged(&["INFO", "procs are released", "job=stuck", "procs=1"]).await;
    cluster.stop().await;
}
