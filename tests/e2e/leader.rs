//! Leader election: one of two operators leads, and the other takes over when the leader is killed or stops.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use hollow::nodes::shapes;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;

use crate::harness::{Cluster, eventually, job};

fn candidate(cluster: &Cluster, identity: &str) -> Child {
    command(cluster, identity).spawn().unwrap()
}

fn command(cluster: &Cluster, identity: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    command
        .args([
            "operator",
            "--health-addr",
            "127.0.0.1:0",
            "--metrics-addr",
            "127.0.0.1:0",
            "--leader-elect-namespace",
            "slotwright-system",
        ])
        .args(["--identity", identity])
        .env("KUBECONFIG", &cluster.kubeconfig)
        .env_remove("POD_UID")
        .stdin(Stdio::null());
    command
}

async fn holder(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "slotwright-system");
    leases.get_opt("slotwright-operator").await.unwrap()?.spec?.holder_identity
}

async fn led_by(cluster: &Cluster, identity: &str) {
    let name = format!("{identity}_");
    eventually(&format!("{identity} leads"), || async {
        holder(cluster).await.is_some_and(|holder| holder.starts_with(&name))
    })
    .await;
}

fn end(mut operator: Child) {
    let pid = operator.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(operator.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_id_is_never_given_twice() {
    let cluster = Cluster::without_operator(shapes::uniform(1, 4000, 8 << 30)).await;
    cluster.namespace("slotwright-system").await;
    cluster.namespace("ids").await;
    cluster.quick_cycles().await;
    let numbered = async |name: &str| {
        cluster.apply(job("ids", name, 1, "100ms", |_| {})).await;
        cluster.completed("ids", name).await.status.unwrap().cluster_id.unwrap()
    };
    let first = candidate(&cluster, "first");
    let before = numbered("one").await;
    cluster.jobs("ids").delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the job is gone", || async { cluster.jobs("ids").get_opt("one").await.unwrap().is_none() })
        .await;
    end(first);

    let second = candidate(&cluster, "second");
    assert_eq!(numbered("two").await, before + 1, "no job is left that says how far it came");
    end(second);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_goes_on_when_the_leader_goes() {
    let cluster = Cluster::without_operator(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.namespace("slotwright-system").await;
    cluster.namespace("led").await;
    cluster.quick_cycles().await;

    let mut first = candidate(&cluster, "first");
    led_by(&cluster, "first").await;
    let mut second = candidate(&cluster, "second");
    cluster.apply(job("led", "one", 20, "3s", |_| {})).await;
    cluster.job_when("led", "one", "runs", |job| job.status.as_ref().is_some_and(|s| s.running > 0)).await;

    // After SIGKILL, the other operator must wait until the lease has run out.
    first.kill().unwrap();
    first.wait().unwrap();
    led_by(&cluster, "second").await;
    cluster.completed("led", "one").await;

    // After SIGTERM, the leader gives up the lease, so that another can lead at once.
    let mut third = candidate(&cluster, "third");
    let pid = second.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(second.wait().unwrap().success());
    let holds = holder(&cluster).await.is_some_and(|holder| holder.starts_with("second_"));
    assert!(!holds, "the lease was given back");
    led_by(&cluster, "third").await;
    cluster.apply(job("led", "two", 4, "100ms", |_| {})).await;
    cluster.completed("led", "two").await;
    let report = cluster.all_ended().await;
    third.kill().unwrap();
    third.wait().unwrap();

    assert_eq!(report.violations(), []);
    assert!(report.procs().all(|(_, counts)| (counts.started, counts.succeeded) == (1, 1)));
    cluster.stop().await;
}

/// All replicas of a Deployment with `--identity` among its arguments have one identity.
#[tokio::test(flavor = "multi_thread")]
async fn operators_of_one_identity_take_turns() {
    let cluster = Cluster::without_operator(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.namespace("slotwright-system").await;
    cluster.namespace("twins").await;
    cluster.quick_cycles().await;
    let mut first = candidate(&cluster, "twin");
    led_by(&cluster, "twin").await;
    let leads = holder(&cluster).await;
    cluster.apply(job("twins", "one", 20, "3s", |_| {})).await;
    cluster.job_when("twins", "one", "runs", |job| job.status.as_ref().is_some_and(|s| s.running > 0)).await;

    let mut second = command(&cluster, "twin").stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(second.stderr.take().unwrap());
    let stands_by = tokio::task::spawn_blocking(move || {
        let mut lines = log.lines().map_while(Result::ok);
        let found = lines.any(|line| line.contains("another operator leads; this one stands by"));
        // Whoever writes to a closed pipe fails.
        std::thread::spawn(move || lines.for_each(drop));
        found
    });
    assert!(stands_by.await.unwrap(), "the second operator takes the lease for its own");
    cluster.completed("twins", "one").await;
    assert_eq!(holder(&cluster).await, leads);

    first.kill().unwrap();
    first.wait().unwrap();
    cluster.apply(job("twins", "two", 4, "100ms", |_| {})).await;
    cluster.completed("twins", "two").await;
    let report = cluster.all_ended().await;
    end(second);
    assert_eq!(report.violations(), []);
    assert!(report.procs().all(|(_, counts)| (counts.started, counts.succeeded) == (1, 1)));
    cluster.stop().await;
}
