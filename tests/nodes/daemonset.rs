//! The chart's DaemonSet on a real node: an agent in a pod, with the mounts, the rights and the token that the chart gives.

use std::process::Command;

use api::NodeReport;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::agents::{DESKTOP, counted_on, reports, stands_still, suspended};
use crate::cluster::{Cluster, only_on, phase, root, state};
use crate::cron::program;
use crate::machine::{node, node_says};
use crate::program::{OnTerm, Program, shell};

const IMAGE: &str = "localhost/slotwright:1";

/// Gives the node an image of the program that was built with this test, with the libraries that the program loads.
fn import_image() {
    let program = state().join("slotwright-agent");
    let strip =
        Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_slotwright-agent")).status();
    assert!(strip.unwrap().success());
    let needs = Command::new("ldd").arg(&program).output().unwrap();
    let needs = String::from_utf8(needs.stdout).unwrap();
    let libraries = needs.split_whitespace().filter(|word| word.starts_with('/'));
    let archive = state().join("slotwright.tar");
    let made = Command::new("python3")
        .arg(root().join("hack/kube/mkimage.py"))
        .arg(&archive)
        .arg(IMAGE)
        .arg(&program)
        .arg("--add")
        .arg(&program)
        .args(libraries)
        .status();
    assert!(made.unwrap().success());
    node(&["import", "1", archive.to_str().unwrap()]);
    std::fs::remove_file(archive).unwrap();
}

/// The chart's DaemonSet for node1, as `hack/e2e-nodes.sh` has rendered it. The image is the test's. A played node has no
/// kube-proxy, so that the address of the API server is given.
fn daemonset() -> Value {
    let text = std::fs::read_to_string(state().join("daemonset.json")).unwrap();
    let mut set: Value = serde_json::from_str(&text).unwrap();
    let address = node_says(&["api", "1"]);
    let (host, port) = address.trim().rsplit_once(':').unwrap();
    let container = &mut set["spec"]["template"]["spec"]["containers"][0];
    container["image"] = json!(IMAGE);
    container["command"] = json!([state().join("slotwright-agent")]);
    let env = container["env"].as_array_mut().unwrap();
    env.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": host}));
    env.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": port}));
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node1"});
    let meta = |field: &str| set["metadata"][field].clone();
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "spec": set["spec"],
        "metadata": {"name": meta("name"), "namespace": meta("namespace"), "labels": meta("labels")},
    })
}

/// Somebody is at the desk, as the site's file says. Or nobody is, and was not in the last hour.
fn somebody(there: bool) {
    let directory = state().join("input");
    std::fs::create_dir_all(&directory).unwrap();
    let an_hour_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let said = if there { "ongoing".to_owned() } else { an_hour_ago.to_string() };
    std::fs::write(directory.join("input"), format!("keyboard = {said}\n")).unwrap();
}

/// Applies the DaemonSet, and waits until its agent reports.
async fn start_daemonset(cluster: &Cluster) -> Value {
    import_image();
    let set = daemonset();
    cluster.apply(set.clone()).await;
    reports(cluster, "node1").await;
    set
}

async fn pods_of_agents(cluster: &Cluster) -> Vec<Pod> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "slotwright-system");
    pods.list(&ListParams::default().labels("app.kubernetes.io/component=agent")).await.unwrap().items
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn the_charts_daemonset_suspends_and_kills() {
    let cluster = Cluster::start("daemonset", DESKTOP).await;
    somebody(false);
    let set = start_daemonset(&cluster).await;
    cluster
        .until("one agent runs, on node1", 30, || async {
            matches!(&pods_of_agents(&cluster).await[..], [agent] if phase(agent) == "Running")
        })
        .await;

    cluster.apply(Program::new(12, 12).job("daemonset", "count", 2, only_on("node1"))).await;
    cluster.running("count", 2).await;
    somebody(true);
    suspended(&cluster, 2).await;
    stands_still(&cluster, "count", 5).await;
    somebody(false);
    cluster.completed("count", 90).await;
    assert_eq!(cluster.violations("count", |_| false).await, [] as [String; 0]);
    for proc in 0..2 {
        counted_on(cluster.proof("count").only(proc), 24);
    }

    // The kubelet begins with a grace period of 90 s, and keeps to it when a fast drain follows.
    let preempt = "MachineMaxVacateTime = 90\nMAXJOBRETIREMENTTIME = 0\nPREEMPT = (time() - EnteredCurrentActivity) > 4";
    cluster
        .apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "all"},
            "spec": {"config": format!("POLLING_INTERVAL = 1\n{preempt}")},
        }))
        .await;
    let stubborn = Program::new(200, 2).on_term(OnTerm::Ignore);
    cluster.apply(stubborn.job("daemonset", "stubborn", 1, only_on("node1"))).await;
    cluster
        .until("the program has heard SIGTERM", 60, || async {
            cluster.proof("stubborn").all_runs().any(|(_, run)| run.term.is_some())
        })
        .await;
    let drain = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "DrainRequest", "metadata": {"name": "fast"},
        "spec": {"node": "node1", "schedule": "Fast"},
    });
    cluster.apply(drain).await;
    cluster.until("its pod is gone", 40, || async { cluster.pods_of("stubborn").await.is_empty() }).await;

    let [agent] = &pods_of_agents(&cluster).await[..] else { panic!("one agent, on node1") };
    let statuses = agent.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    assert_eq!(statuses.map(|status| status.restart_count).sum::<i32>(), 0, "{}", agent.name_any());
    cluster.delete(&set).await;
    let all: Api<NodeReport> = Api::all(cluster.client.clone());
    cluster
        .until("the agent says that it was stopped", 40, || async {
            let conditions = all.get("node1").await.unwrap().status.unwrap_or_default().conditions;
            conditions.iter().any(|c| c.type_ == "Ready" && c.reason == "Stopped")
        })
        .await;
}

/// A policy whose cron job tells what it finds in the agent's container. The node's directory has an interpreter for it.
const FINDS: &str = "
STARTD_CRON_JOBLIST = looks
STARTD_CRON_AUTOPUBLISH = If_Changed
STARTD_CRON_looks_EXECUTABLE = looks
STARTD_CRON_looks_PERIOD = 2
PREEMPT = DiskUsage > 30000
WANT_HOLD = DiskUsage > 30000
WANT_HOLD_REASON = \"too much disk\"
MachineMaxVacateTime = 5
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn the_charts_daemonset_runs_cron_jobs_and_knows_what_pods_use_of_the_disk() {
    let cluster = Cluster::start("daemonset-cron", FINDS).await;
    let directory = state().join("cron");
    std::fs::create_dir_all(directory.join("lib")).unwrap();
    std::fs::copy("/bin/busybox", directory.join("lib/busybox")).unwrap();
    let busybox = directory.join("lib/busybox").display().to_string();
    let script = format!(
        "#!{busybox} sh\n\
         echo UserId = $({busybox} id -u)\n\
         echo \"Capabilities = \\\"$({busybox} sed -n 's/^CapEff:.//p' /proc/self/status)\\\"\"\n\
         if ({busybox} touch {0}/x || {busybox} touch /x) 2>/dev/null; then echo Writes = true; else echo Writes = false; fi\n",
        directory.display()
    );
    program(&directory, "looks", &script);
    start_daemonset(&cluster).await;
    let found = || async {
        let report = Api::<NodeReport>::all(cluster.client.clone()).get("node1").await.unwrap();
        report.status.unwrap_or_default().attributes
    };
    cluster.until("the program says something", 60, || async { found().await.contains_key("UserId") }).await;
    let found = found().await;
    let of = |name: &str| found.get(name).map(String::as_str);
    // On cgroup v1 the agent has the capability KILL (agent.cgroupV1Kill).
    let kills = !std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let capabilities = if kills { "\"0000000000000020\"" } else { "\"0000000000000000\"" };
    assert_eq!(
        [of("UserId"), of("Capabilities"), of("Writes")],
        [Some("0"), Some(capabilities), Some("false")]
    );

    // The kubelet counts once a minute.
    for (name, megabytes) in [("modest", 1), ("hungry", 80)] {
        let script = format!("head -c {megabytes}000000 /dev/zero >/tmp/file; sleep 600 & wait $!");
        let mut job = shell("daemonset-cron", name, 1, &script);
        job["spec"]["requests"]["disk"] = json!("512Mi");
        only_on("node1")(&mut job);
        cluster.apply(job).await;
    }
    cluster
        .until("the hungry one is held", 240, || async {
            let status = cluster.jobs().get("hungry").await.unwrap().status.unwrap_or_default();
            status.held == 1 && status.why.unwrap_or_default().contains("too much disk")
        })
        .await;
    let report = Api::<NodeReport>::all(cluster.client.clone()).get("node1").await.unwrap();
    let modest = cluster.pods_of("modest").await.first().and_then(ResourceExt::uid).unwrap();
    let usage = report.status.unwrap_or_default().usage;
    let used = usage.iter().find(|usage| usage.uid == modest).unwrap();
    assert!(used.disk_kib.is_some_and(|kib| (900..30_000).contains(&kib)), "{used:?}");
    assert_eq!(cluster.jobs().get("modest").await.unwrap().status.unwrap_or_default().running, 1);
}
