//! How many writes a proc costs, as the embedded API server counts them.

use controller::creators::Stamps;
use controller::seal::Seals;
use hollow::nodes::shapes;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Cluster, job};

/// How many writes the operator makes for each proc. With a `CLAIM_WORKLIFE` of 0 each claim runs one proc. `None` on a real API
/// server, which does not count requests by client.
async fn writes_per_proc(worklife: i64) -> Option<f64> {
    const PROCS: u32 = 200;
    if std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG").is_some() {
        println!("SKIPPED: only the embedded server counts requests by client");
        return None;
    }
    let cluster = Cluster::without_operator(shapes::uniform(10, 8000, 16 << 30)).await;
    let server = cluster.server.as_ref().unwrap();
    let options = controller::Options {
        health_addr: None,
        metrics_addr: None,
        history: None,
        webhook_serves: None,
        leader_elect_namespace: None,
        identity: "counted".into(),
        pod_uid: None,
    };
    let stop = CancellationToken::new();
    let operator = tokio::spawn(controller::run(
        server.kube_config_as("counted").unwrap(),
        options,
        <(Seals, Stamps)>::default(),
        stop.clone(),
    ));
    cluster.quick_cycles().await;
    cluster.namespace("budget").await;
    cluster
        .apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "all"},
            "spec": {"claimWorklifeSeconds": worklife},
        }))
        .await;
    cluster.apply(job("budget", "sweep", PROCS, "500ms", |_| {})).await;
    cluster.completed("budget", "sweep").await;
    // Only writes of pods and slots count. Other statuses are shared by many procs and are written at most once a second,
    // however many procs there are.
    let own = |resource: &str| matches!(resource, "pods" | "slots");
    let counts = server.request_counts();
    let total: u64 = counts
        .iter()
        .filter(|(key, _)| key.client == "counted" && key.is_write() && own(&key.resource))
        .map(|(_, count)| count)
        .sum();
    stop.cancel();
    operator.await.unwrap().unwrap();
    cluster.stop().await;
    Some(f64::from(u32::try_from(total).unwrap()) / f64::from(PROCS))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_proc_costs_two_writes_of_its_own() {
    // The operator makes two calls for each proc: one creates the pod, the other untracks the pod. The last pod is
    // untracked after the job is complete, which is not counted. The procs end before their claims would be written.
    let Some(writes) = writes_per_proc(0).await else { return };
    assert!((1.5..=2.1).contains(&writes), "{writes} writes a proc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_used_again_costs_no_more() {
    let Some(writes) = writes_per_proc(1200).await else { return };
    assert!((1.5..=2.1).contains(&writes), "{writes} writes a proc");
}
