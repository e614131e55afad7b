//! Two operators that share no leader's Lease: the pool is the first one's, and the second refuses to start.

use std::process::{Child, Command, Stdio};

use controller::creators::Stamps;
use controller::seal::Seals;
use hollow::nodes::shapes;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio_util::sync::CancellationToken;

use crate::harness::{Cluster, eventually, job};

/// An operator of a release in this namespace.
fn release(cluster: &Cluster, namespace: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_slotwright"))
        .args(["operator", "--health-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"])
        .args(["--leader-elect-namespace", namespace])
        .env("KUBECONFIG", &cluster.kubeconfig)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn owner(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    leases.get_opt(api::labels::POOL_LEASE).await.unwrap()?.spec?.holder_identity
}

async fn is_owned_by(cluster: &Cluster, name: &str) {
    eventually(&format!("the pool is {name}'s"), || async { owner(cluster).await.as_deref() == Some(name) })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_releases_refuses_to_start() {
    if std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG").is_some() {
        println!("SKIPPED: the chart lets the operator lead in one namespace only");
        return;
    }
    let cluster = Cluster::without_operator(shapes::uniform(2, 4000, 8 << 30)).await;
    for namespace in ["first-release", "second-release", "owned"] {
        cluster.namespace(namespace).await;
    }
    cluster.quick_cycles().await;
    let mut first = release(&cluster, "first-release");
    is_owned_by(&cluster, "first-release/slotwright-operator").await;
    cluster.apply(job("owned", "sweep", 20, "2s", |_| {})).await;
    cluster
        .job_when("owned", "sweep", "runs", |job| job.status.as_ref().is_some_and(|s| s.running > 0))
        .await;

    let second = release(&cluster, "second-release");
    let ended = tokio::task::spawn_blocking(|| second.wait_with_output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("the pool of this cluster is first-release/slotwright-operator's"), "{said}");
    assert!(said.contains("Lease kube-node-lease/pool.slotwright.dev"), "{said}");

    cluster.completed("owned", "sweep").await;
    let report = cluster.all_ended().await;
    assert_eq!(report.violations(), []);
    assert!(report.procs().all(|(_, counts)| (counts.started, counts.succeeded) == (1, 1)));

    // A release that stops in order gives the pool back at once.
    let pid = first.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(first.wait().unwrap().success());
    assert_eq!(owner(&cluster).await, None);
    let mut third = release(&cluster, "second-release");
    is_owned_by(&cluster, "second-release/slotwright-operator").await;
    third.kill().unwrap();
    third.wait().unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_refuses_has_touched_nothing() {
    if std::env::var_os("SLOTWRIGHT_TEST_KUBECONFIG").is_some() {
        println!("SKIPPED: only the embedded server counts requests by client");
        return;
    }
    let cluster = Cluster::without_operator(shapes::uniform(1, 4000, 8 << 30)).await;
    let server = cluster.server.as_ref().unwrap();
    let run = |name: &str, stop: &CancellationToken| {
        let options = controller::Options {
            health_addr: None,
            metrics_addr: None,
            history: None,
            webhook_serves: None,
            leader_elect_namespace: None,
            identity: name.to_owned(),
            pod_uid: Some("pod".to_owned()),
        };
        tokio::spawn(controller::run(
            server.kube_config_as(name).unwrap(),
            options,
            <(Seals, Stamps)>::default(),
            stop.clone(),
        ))
    };
    let stop = CancellationToken::new();
    let first = run("first", &stop);
    is_owned_by(&cluster, "first_pod").await;
    let second = run("second", &stop).await.unwrap();
    assert!(matches!(second, Err(controller::Error::PoolTaken { owner }) if owner == "first_pod"));
    let counts = server.request_counts();
    let asked = counts.iter().filter(|(key, _)| key.client == "second");
    assert!(asked.clone().count() > 0);
    assert!(
        asked.clone().all(|(key, _)| key.resource == "leases" && !key.is_write()),
        "{:?}",
        asked.collect::<Vec<_>>()
    );
    stop.cancel();
    first.await.unwrap().unwrap();
    cluster.stop().await;
}
