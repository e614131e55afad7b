//! Tests of hollow nodes against the API server that `SLOTWRIGHT_E2E_KUBECONFIG` names, or else the embedded one.
//!
//! Nothing here sleeps: each wait ends when the API server shows what the test expects, or fails after [`PATIENCE`].
// Clippy does not take the helpers in this file for tests. `json!` literals read best without a borrow.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used
)]

use std::net::Ipv4Addr;
use std::time::Duration;

use hollow::nodes::script::DEVICES;
use hollow::nodes::shape::{A100, GIB, NVIDIA_GPU};
use hollow::nodes::{
    HollowNodes, LEASE_NAMESPACE, Lost, NOT_READY, NodeShape, Options, UNREACHABLE, UNSCHEDULABLE, shapes,
};
use hollow::server::{HollowServer, RunningServer, ServerConfig};
use hollow::watchdog::watch::Watch;
use hollow::watchdog::{JOB_UID, PROC, ProcId};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(3);

/// A cluster and the client for it.
struct Cluster {
    client: Client,
    /// The embedded server, if the test uses it. It stops when the test drops it.
    embedded: Option<RunningServer>,
}

async fn cluster() -> Cluster {
    let Ok(path) = std::env::var("SLOTWRIGHT_E2E_KUBECONFIG") else {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let server = HollowServer::start(address, ServerConfig::default()).await.expect("a free port");
        let client = Client::try_from(server.kube_config().expect("a URL")).expect("a client");
        return Cluster { client, embedded: Some(server) };
    };
    let file = Kubeconfig::read_from(path).expect("the file that SLOTWRIGHT_E2E_KUBECONFIG names");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(file, &options).await.expect("a usable kubeconfig");
    Cluster { client: Client::try_from(config).expect("a client"), embedded: None }
}

/// A name that no other test and no other run uses, so that tests can share a real server.
fn unique(name: &str) -> String {
    format!("{name}-{:x}", jiff::Timestamp::now().as_microsecond())
}

fn quick() -> Options {
    let (lease_interval, dead_after) = (Duration::from_millis(200), Duration::from_millis(500));
    Options { lease_interval, dead_after, ..Options::default() }
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

/// Creates a pod on `node` with `changes` merged in. `script` has the annotations without their prefix.
async fn create(client: &Client, name: &str, node: &str, script: &[(&str, &str)], changes: Value) -> Pod {
    let pairs =
        script.iter().map(|(key, value)| (format!("hollow.slotwright.dev/{key}"), Value::from(*value)));
    let annotations: serde_json::Map<_, _> = pairs.collect();
    let mut pod = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "busybox"}],
        },
    });
    json_patch::merge(&mut pod, &changes);
    let pod = serde_json::from_value(pod).expect("a pod");
    pods(client).create(&PostParams::default(), &pod).await.expect("the pod is created")
}

fn requests(list: Value) -> Value {
    json!({"spec": {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": list, "limits": list}}]}})
}

async fn wait<K>(api: Api<K>, name: &str, what: &str, condition: impl Condition<K>) -> Option<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
{
    let waited = tokio::time::timeout(PATIENCE, await_condition(api, name, condition)).await;
    waited.unwrap_or_else(|_| panic!("{name} is not {what} after {PATIENCE:?}")).expect("a watch")
}

async fn phase(client: &Client, name: &str, phase: &str) -> Pod {
    let is = |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some(phase);
    wait(pods(client), name, phase, is).await.expect("a pod")
}

/// The pod once it is like that.
async fn phase_when(client: &Client, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
    wait(pods(client), name, what, |pod: Option<&Pod>| pod.is_some_and(&holds)).await.expect("the pod exists")
}

/// When its main container ended.
fn finished(pod: &Pod) -> Option<jiff::Timestamp> {
    let state = pod.status.as_ref()?.container_statuses.as_ref()?.first()?.state.as_ref()?;
    Some(state.terminated.as_ref()?.finished_at.as_ref()?.0)
}

async fn gone(client: &Client, name: &str) {
    wait(pods(client), name, "gone", |pod: Option<&Pod>| pod.is_none()).await;
}

fn exit_code(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn ready(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.status.as_str())
}

fn has_taint(node: &Node, key: &str) -> bool {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key == key)
}

async fn node_when(client: &Client, name: &str, what: &str, holds: impl Fn(&Node) -> bool) {
    wait(Api::all(client.clone()), name, what, |node: Option<&Node>| node.is_some_and(&holds)).await;
}

#[tokio::test]
async fn nodes_register_ready_with_leases_and_devices_and_again_after_a_restart() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let name = unique("gpu");
    let shape = || {
        NodeShape::new(&name, 8000, 32 * GIB)
            .label("rack", "r7")
            .taint("team", "a", "NoSchedule")
            .gpu(A100, 2)
    };
    let nodes: Api<Node> = Api::all(client.clone());
    for _ in 0..2 {
        let hollow = HollowNodes::start(client.clone(), vec![shape()], quick()).await.expect("registered");
        let node = nodes.get(&name).await.expect("the node");
        assert_eq!(ready(&node), Some("True"));
        assert!(has_taint(&node, "team") && !has_taint(&node, NOT_READY), "{:?}", node.spec);
        let labels = node.metadata.labels.as_ref().unwrap();
        assert_eq!(
            (labels["rack"].as_str(), labels["nvidia.com/gpu.product"].as_str()),
            ("r7", A100.product)
        );
        let status = node.status.unwrap();
        assert_eq!(status.allocatable.unwrap()[NVIDIA_GPU].0, "2");
        hollow.shutdown().await;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let before = leases.get(&name).await.expect("a lease").spec.unwrap().renew_time.unwrap();
    let hollow = HollowNodes::start(client.clone(), vec![shape()], quick()).await.expect("registered");
    let renewed = move |lease: Option<&Lease>| {
        lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone()).is_some_and(|time| time > before)
    };
    wait(leases.clone(), &name, "renewed", renewed).await;
    hollow.remove(&name).await.expect("removed");
    assert!(nodes.get_opt(&name).await.unwrap().is_none() && leases.get_opt(&name).await.unwrap().is_none());
    hollow.shutdown().await;
}

#[tokio::test]
async fn bound_pods_run_and_end_as_their_annotations_say() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, good, bad) = (unique("run"), unique("good"), unique("bad"));
    let shape = NodeShape::new(&node, 4000, 8 * GIB).gpu(A100, 2);
    let hollow = HollowNodes::start(client.clone(), vec![shape], quick()).await.expect("registered");
    let wants = requests(json!({"cpu": "1", NVIDIA_GPU: "1"}));
    create(&client, &good, &node, &[("runtime", "2s")], wants).await;
    create(&client, &bad, &node, &[("runtime", "100ms"), ("exit-code", "3")], json!({})).await;

    let running = phase(&client, &good, "Running").await;
    let status = running.status.as_ref().unwrap();
    let is_true =
        |type_: &str| status.conditions.iter().flatten().any(|c| c.type_ == type_ && c.status == "True");
    assert!(
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"].into_iter().all(is_true),
        "{status:?}"
    );
    assert!(status.pod_ip.is_some() && status.start_time.is_some());
    let devices = hollow.devices("default", &good).await.unwrap().expect("devices");
    assert_eq!(devices[NVIDIA_GPU].len(), 1);
    let annotation = running.metadata.annotations.as_ref().and_then(|all| all.get(DEVICES));
    assert_eq!(annotation.map(|text| serde_json::from_str(text).unwrap()), Some(json!(devices)));

    assert_eq!(exit_code(&phase(&client, &good, "Succeeded").await), Some(0));
    assert_eq!(exit_code(&phase(&client, &bad, "Failed").await), Some(3));
    assert_eq!(hollow.devices("default", &good).await.unwrap(), None);
    for name in [&good, &bad] {
        pods(&client).delete(name, &DeleteParams::default()).await.expect("deleted");
        gone(&client, name).await;
    }
    hollow.remove(&node).await.expect("removed");
    hollow.shutdown().await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, first, second, picky) = (unique("full"), unique("first"), unique("second"), unique("picky"));
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    create(&client, &first, &node, &[("runtime", "1h")], requests(json!({"cpu": "3"}))).await;
    phase(&client, &first, "Running").await;
    create(&client, &second, &node, &[], requests(json!({"cpu": "1500m"}))).await;
    create(&client, &picky, &node, &[], json!({"spec": {"nodeSelector": {"zone": "b"}}})).await;
    let refused = phase(&client, &second, "Failed").await.status.unwrap();
    assert_eq!(refused.reason.as_deref(), Some("OutOfcpu"));
    let message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1500, used: 3000, capacity: 4000";
    assert_eq!(refused.message.as_deref(), Some(message));
    assert_eq!(
        phase(&client, &picky, "Failed").await.status.unwrap().reason.as_deref(),
        Some("NodeAffinity")
    );
    // The hollow nodes must delete the pods of a removed node: a server may have no pod garbage collector.
    hollow.remove(&node).await.expect("removed");
    for name in [&first, &second, &picky] {
        gone(&client, name).await;
    }
    hollow.shutdown().await;
}

fn shapes_named(node: &str) -> Vec<NodeShape> {
    vec![NodeShape::new(node, 4000, 8 * GIB)]
}

#[tokio::test]
async fn deletion_takes_its_grace_and_finalizers_keep_the_end_visible() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, polite, stubborn, forced) =
        (unique("grace"), unique("polite"), unique("stubborn"), unique("forced"));
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    let kept = || json!({"metadata": {"finalizers": ["hollow.slotwright.dev/test"]}});
    create(&client, &polite, &node, &[("runtime", "1h"), ("term-exit-code", "0")], kept()).await;
    create(&client, &stubborn, &node, &[("runtime", "1h"), ("ignore-term", "true")], kept()).await;
    create(&client, &forced, &node, &[("runtime", "1h"), ("ignore-term", "true")], kept()).await;
    for (name, grace) in [(&polite, 30), (&stubborn, 6), (&forced, 0)] {
        phase(&client, name, "Running").await;
        pods(&client).delete(name, &DeleteParams::default().grace_period(grace)).await.expect("deleted");
    }
    // Its container is over before its pod is.
    let ended = phase_when(&client, &polite, "its container has ended", |pod| exit_code(pod).is_some()).await;
    assert_eq!(ended.status.unwrap().phase.as_deref(), Some("Running"));
    let over = phase(&client, &polite, "Succeeded").await;
    assert_eq!(exit_code(&over), Some(0));
    // The kubelet's own delete moves the time of the deletion to after the end.
    let removed = |pod: &Pod| pod.metadata.deletion_grace_period_seconds == Some(0);
    let removed = phase_when(&client, &polite, "the kubelet has deleted it", removed).await;
    let asked = removed.metadata.deletion_timestamp.as_ref().expect("a deletion").0;
    assert!(Some(asked) >= finished(&removed), "{removed:?}");
    assert_eq!(exit_code(&phase(&client, &forced, "Failed").await), Some(137));
    // A shorter grace comes too late, and so does the end of the pod's object.
    pods(&client).delete(&stubborn, &DeleteParams::default().grace_period(1)).await.expect("deleted");
    let stopped = phase(&client, &stubborn, "Failed").await;
    assert_eq!(exit_code(&stopped), Some(137));
    for name in [&polite, &stubborn, &forced] {
        let freed = json!({"metadata": {"finalizers": null}});
        pods(&client).patch(name, &PatchParams::default(), &Patch::Merge(&freed)).await.expect("patched");
        gone(&client, name).await;
    }
    hollow.remove(&node).await.expect("removed");
    hollow.shutdown().await;
}

#[tokio::test]
async fn a_node_that_starts_again_without_its_containers_fails_their_pods() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, first, second) = (unique("reboot"), unique("waiting"), unique("unknown"));
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    for (name, lost) in [(&first, Lost::Waiting), (&second, Lost::Unknown)] {
        create(&client, name, &node, &[("runtime", "1h")], json!({})).await;
        phase(&client, name, "Running").await;
        hollow.reboot(&node, lost).await.expect("rebooted");
        let failed = phase(&client, name, "Failed").await;
        assert_eq!(exit_code(&failed), (lost == Lost::Unknown).then_some(255));
    }
    assert_eq!(hollow.running().await.unwrap(), 0);
    hollow.remove(&node).await.expect("removed");
    hollow.shutdown().await;
}

#[tokio::test]
async fn a_kubelet_whose_node_is_deleted_ends_its_pods_in_their_time() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, vacates, runs) = (unique("deleted"), unique("vacates"), unique("runs"));
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    let kept = json!({"metadata": {"finalizers": ["hollow.slotwright.dev/test"]},
        "spec": {"terminationGracePeriodSeconds": 3}});
    for name in [&vacates, &runs] {
        create(&client, name, &node, &[("runtime", "1h"), ("ignore-term", "true")], kept.clone()).await;
        phase(&client, name, "Running").await;
    }
    pods(&client).delete(&vacates, &DeleteParams::default().grace_period(6)).await.expect("deleted");
    let asked = pods(&client).get(&vacates).await.unwrap().metadata.deletion_timestamp.expect("a deadline").0;
    hollow.delete_node(&node).await.expect("deleted");
    // The garbage collector fails the pods while their containers run.
    for name in [&vacates, &runs] {
        assert_eq!(exit_code(&phase(&client, name, "Failed").await), None);
    }
    for name in [&runs, &vacates] {
        let ended = |pod: &Pod| exit_code(pod).is_some();
        let ended = phase_when(&client, name, "its container has ended", ended).await;
        assert_eq!(exit_code(&ended), Some(137));
        let status = ended.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Failed"), "the kubelet leaves the phase alone");
        assert!(name == &runs || finished(&ended) >= Some(asked), "it had its first grace: {ended:?}");
    }
    hollow.remove(&node).await.expect("removed");
    hollow.shutdown().await;
}

#[tokio::test]
async fn a_killed_node_becomes_unreachable_and_continues_after_a_restart() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (node, short, long) = (unique("killed"), unique("short"), unique("long"));
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    create(&client, &short, &node, &[("runtime", "1s")], json!({})).await;
    create(&client, &long, &node, &[("runtime", "1h")], json!({})).await;
    phase(&client, &short, "Running").await;
    phase(&client, &long, "Running").await;
    hollow.kill(&node).await.expect("killed");
    let unreachable = |node: &Node| ready(node) == Some("Unknown") && has_taint(node, UNREACHABLE);
    node_when(&client, &node, "unreachable", unreachable).await;

    // A new set of nodes takes over: it reports the pod that has ended meanwhile, and continues the one that runs.
    hollow.shutdown().await;
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    node_when(&client, &node, "Ready", |node| ready(node) == Some("True") && !has_taint(node, UNREACHABLE))
        .await;
    assert_eq!(exit_code(&phase(&client, &short, "Succeeded").await), Some(0));
    let still = phase(&client, &long, "Running").await;
    hollow.restart(&node).await.expect("restarted");
    assert_eq!(hollow.running().await.unwrap(), 1);
    pods(&client).delete(&long, &DeleteParams::default()).await.expect("deleted");
    gone(&client, &long).await;
    assert!(still.status.unwrap().start_time.is_some());
    hollow.remove(&node).await.expect("removed");
    gone(&client, &short).await;
    hollow.shutdown().await;
}

#[tokio::test]
async fn nodes_can_be_made_not_ready_and_cordoned() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let node = unique("states");
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    hollow.set_ready(&node, false).await.expect("not ready");
    node_when(&client, &node, "NotReady", |n| ready(n) == Some("False") && has_taint(n, NOT_READY)).await;
    hollow.set_ready(&node, true).await.expect("ready");
    node_when(&client, &node, "Ready", |n| ready(n) == Some("True") && !has_taint(n, NOT_READY)).await;
    let cordoned = |n: &Node| n.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    hollow.cordon(&node).await.expect("cordoned");
    node_when(&client, &node, "cordoned", |n| cordoned(n) && has_taint(n, UNSCHEDULABLE)).await;
    hollow.uncordon(&node).await.expect("uncordoned");
    node_when(&client, &node, "uncordoned", |n| !cordoned(n) && !has_taint(n, UNSCHEDULABLE)).await;
    hollow.remove(&node).await.expect("removed");
    let unknown = hollow.cordon(&node).await.expect_err("it is gone").to_string();
    assert!(unknown.contains(&node), "{unknown}");
    hollow.shutdown().await;
}

#[tokio::test]
async fn a_new_set_of_nodes_lists_pods_although_the_history_is_gone() {
    let Cluster { client, embedded } = cluster().await;
    let (node, first, second) = (unique("relist"), unique("first"), unique("second"));
    // The pod is bound before any kubelet runs, and no watch can start from a version before that.
    create(&client, &first, &node, &[], json!({})).await;
    embedded.iter().for_each(RunningServer::compact);
    let hollow = HollowNodes::start(client.clone(), shapes_named(&node), quick()).await.expect("registered");
    phase(&client, &first, "Succeeded").await;
    embedded.iter().for_each(RunningServer::compact);
    create(&client, &second, &node, &[], json!({})).await;
    phase(&client, &second, "Succeeded").await;
    hollow.remove(&node).await.expect("removed");
    hollow.shutdown().await;
}

/// Runs 300 pods of one core each on 50 nodes. The watchdog must see each pod run once and no node overcommitted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_pods_on_many_nodes_each_run_once() {
    let Cluster { client, embedded: _embedded } = cluster().await;
    let (job, nodes, procs) = (unique("many"), 50, 300);
    let mut fleet = shapes::uniform(nodes, 8000, 16 * GIB);
    for shape in &mut fleet {
        shape.name = format!("{job}-{}", shape.name);
    }
    let names: Vec<String> = fleet.iter().map(|shape| shape.name.clone()).collect();
    let watch = Watch::start(&client);
    let hollow = HollowNodes::start(client.clone(), fleet, Options::default()).await.expect("registered");
    let started = std::time::Instant::now();
    for proc in 0..procs {
        let mut changes = requests(json!({"cpu": "1"}));
        let labels = json!({"metadata": {"labels": {JOB_UID: job, PROC: proc.to_string()}}});
        json_patch::merge(&mut changes, &labels);
        let node = &names[proc % nodes];
        create(&client, &format!("{job}-{proc}"), node, &[("runtime", "500ms")], changes).await;
    }
    let ours = |id: &ProcId| id.job_uid == job;
    let all_ended = |seen: &hollow::watchdog::Watchdog| {
        seen.procs().filter(|(id, counts)| ours(id) && counts.succeeded + counts.failed > 0).count() == procs
    };
    let seen = tokio::time::timeout(PATIENCE, watch.until(all_ended)).await.expect("all pods end");
    println!("{procs} pods on {nodes} nodes: {:?}, {:?}", started.elapsed(), hollow.written());
    assert!(
        seen.procs().filter(|(id, _)| ours(id)).all(|(_, c)| (c.started, c.succeeded, c.failed) == (1, 1, 0))
    );
    let about_us: Vec<_> =
        seen.violations().iter().filter(|(_, what)| what.to_string().contains(&job)).collect();
    assert!(about_us.is_empty(), "{about_us:?}");

    let of_job = ListParams::default().labels(&format!("{JOB_UID}={job}"));
    pods(&client).delete_collection(&DeleteParams::default(), &of_job).await.expect("deleted");
    for name in &names {
        hollow.remove(name).await.expect("removed");
    }
    hollow.shutdown().await;
}
