//! A thousand procs, with an operator that runs through and with one that is killed several times.

use hollow::nodes::shapes;
use hollow::watchdog::Watchdog;
use serde_json::json;

use crate::harness::{Cluster, eventually, job};

/// Checks that each proc ran exactly once, and that no node was ever overcommitted.
fn verify(report: &Watchdog, procs: usize) {
    assert_eq!(report.violations(), []);
    assert_eq!(report.procs().count(), procs);
    for (proc, counts) in report.procs() {
        assert_eq!((counts.started, counts.succeeded, counts.failed), (1, 1, 0), "{proc:?}");
    }
}

async fn thousand(cluster: &Cluster, namespace: &str) {
    cluster.quick_cycles().await;
    for (tenant, count) in [("a", 400), ("b", 350), ("c", 250)] {
        let namespace = format!("{namespace}-{tenant}");
        cluster.namespace(&namespace).await;
        let sweep =
            job(&namespace, "sweep", count, "400ms", |o| o["spec"]["requests"] = json!({"memory": "256Mi"}));
        cluster.apply(sweep).await;
    }
}

async fn finish(cluster: &Cluster, namespace: &str) {
    for tenant in ["a", "b", "c"] {
        cluster.completed(&format!("{namespace}-{tenant}"), "sweep").await;
    }
    eventually("every slot is returned", || async {
        cluster.slots().list(&kube::api::ListParams::default().limit(1)).await.unwrap().items.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_procs_run_exactly_once() {
    let cluster = Cluster::start(shapes::uniform(50, 4000, 16 << 30)).await;
    thousand(&cluster, "many").await;
    finish(&cluster, "many").await;
    verify(&cluster.all_ended().await, 1000);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_loses_and_doubles_nothing() {
    let mut cluster = Cluster::start(shapes::uniform(50, 4000, 16 << 30)).await;
    thousand(&cluster, "killed").await;
    for done in [100, 400, 700] {
        eventually("some procs are done", || async {
            cluster.watch.report().procs().filter(|(_, counts)| counts.succeeded > 0).count() >= done
        })
        .await;
        cluster.kill_operator();
        cluster.start_operator();
    }
    finish(&cluster, "killed").await;
    verify(&cluster.all_ended().await, 1000);
    cluster.stop().await;
}
