//! Pods that are suspended before their programs run: nothing stands still that the container runtime still needs.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::agents::{DESKTOP, Desk, counted_on, stands_still, suspended};
use crate::cluster::{Cluster, only_on};
use crate::program::{Program, container, proof_dir};

/// Counts for 15 seconds, twice a second.
const COUNTS: &str = "i=0; while [ $i -lt 30 ]; do sleep .5; i=$((i + 1)); echo $i >>/proof/init; done";

/// Whether the pod's main container runs for the first time, as its kubelet says.
fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let runs = statuses.filter(|status| {
        status.restart_count == 0 && status.state.as_ref().is_some_and(|state| state.running.is_some())
    });
    runs.count() == 1
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_pod_is_suspended_during_its_init_container_and_goes_on_to_its_main_one() {
    let cluster = Cluster::start("suspend-init", DESKTOP).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    let job = Program::new(6, 6).job("suspend-init", "count", 1, |job| {
        only_on("node1")(job);
        job["spec"]["template"]["spec"]["initContainers"] = json!([container("first", "count", COUNTS)]);
    });
    cluster.apply(job).await;
    let counted = || {
        std::fs::read_to_string(proof_dir("suspend-init").join("init")).unwrap_or_default().lines().count()
    };
    cluster.until("the init container counts", 60, || async { counted() >= 2 }).await;
    desk.last_used(Duration::ZERO);
    suspended(&cluster, 1).await;
    let before = counted();
    assert!(before < 30, "the init container was suspended too late for this test");
    cluster
        .throughout("the init container stands still", 8, || async {
            counted() == before && cluster.proof("count").all_runs().count() == 0
        })
        .await;
    cluster.completed("count", 120).await;
    assert_eq!(counted(), 30, "the init container went on where it was");
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    counted_on(cluster.proof("count").only(0), 12);
}

/// The owner types when the pod is created. The pod's containers start all the same, and stand still as soon as their programs run.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_pod_that_is_suspended_from_the_first_moment_starts_and_stands_still_then() {
    let policy = DESKTOP.replace("START = (KeyboardIdle > 10) =!= False", "START = True");
    let cluster = Cluster::start("suspend-start", &policy).await;
    let desk = Desk::new(&cluster, 1);
    desk.reports(&cluster).await;
    desk.last_used(Duration::ZERO);
    let job = Program::new(6, 6).job("suspend-start", "count", 2, |job| {
        only_on("node1")(job);
        let init = container("first", "count", "exit 0");
        job["spec"]["template"]["spec"]["initContainers"] = json!([init]);
    });
    cluster.apply(job).await;
    suspended(&cluster, 2).await;
    let pods = cluster.pods_of("count").await;
    assert!(pods.len() == 2 && pods.iter().all(runs), "suspended before they run: {pods:?}");
    stands_still(&cluster, "count", 8).await;
    cluster.completed("count", 120).await;
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 12);
    }
}
