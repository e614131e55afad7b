//! The sides: Slotwright, what Kubernetes has by itself, and nobody.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use api::{HTCJob, PartitionableSlot};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::Workload;
use super::measured::{Start, Turn};
use super::processes::Processes;

/// A side of the comparison.
pub trait Side {
    /// Runs the workload once, and cleans up behind it.
    async fn turn(client: &Client, workload: &Workload, name: &str) -> Turn;
}

/// Slotwright's operator.
pub struct Ours;

/// The Job controller and kube-scheduler.
pub struct Batch;

/// Nobody: the benchmark itself creates the pods, each on a node, as many at a time as the server is asked to by the operator.
pub struct Alone;

/// How many pods are created at a time, where nobody manages them.
const AT_A_TIME: usize = 48;

impl Side for Alone {
    async fn turn(client: &Client, workload: &Workload, name: &str) -> Turn {
        let (server, own) = (server(), Processes::default());
        let namespace = namespace(client, &format!("alone-{name}")).await;
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes.list_metadata(&ListParams::default()).await.unwrap().items;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let start = Start::now(client, &server, &own).await;
        let first = first_pod(client, &namespace);
        let places = Arc::new(Semaphore::new(nodes.len() * 8));
        let ended = tokio::spawn(ends(pods.clone(), Arc::clone(&places), workload.procs));
        let made = futures::stream::iter(0..workload.procs).for_each_concurrent(AT_A_TIME, |number| {
            let (pods, places, node) = (&pods, &places, &nodes[number as usize % nodes.len()]);
            async move {
                // Eight procs at a time run on a node, as many as it has cores.
                if workload.ends() {
                    places.acquire().await.unwrap().forget();
                }
                let mut pod = template(workload);
                pod["metadata"]["name"] = json!(format!("sweep-{number}"));
                pod["spec"]["nodeName"] = json!(node.name_any());
                let pod = serde_json::from_value(pod).unwrap();
                pods.create(&PostParams::default(), &pod).await.unwrap();
            }
        });
        made.await;
        if workload.ends() {
            ended.await.unwrap();
        } else {
            until("all pods run", || all_run(&pods, workload)).await;
            ended.abort();
        }
        let turn = start.end(client, &server, &own, first.await.unwrap()).await;
        gone(client, &namespace).await;
        turn
    }
}

/// Watches until so many pods have ended. For each pod that ends, another may be created.
async fn ends(pods: Api<Pod>, places: Arc<Semaphore>, count: u32) {
    let mut over = BTreeSet::new();
    let mut version = "0".to_owned();
    while over.len() < count as usize {
        let Ok(stream) = pods.watch(&WatchParams::default().timeout(290), &version).await else { continue };
        let mut stream = Box::pin(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
            version = pod.resource_version().unwrap_or_default();
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            // A kubelet refuses a pod (OutOfcpu) that comes before the end of the pod whose place it has.
            if matches!(phase, Some("Succeeded" | "Failed")) && over.insert(pod.name_any()) {
                places.add_permits(1);
            }
            if over.len() == count as usize {
                return;
            }
        }
    }
}

impl Side for Ours {
    async fn turn(client: &Client, workload: &Workload, name: &str) -> Turn {
        Self::turn_through(client, workload, name, None, None).await
    }
}

impl Ours {
    /// A turn in which the operator reaches the API server by a kubeconfig, if there is one. `beside` is the namespace of another
    /// tenant, whose job of as many procs was submitted before.
    pub async fn turn_through(
        client: &Client,
        workload: &Workload,
        name: &str,
        kubeconfig: Option<&Path>,
        beside: Option<&str>,
    ) -> Turn {
        let mut operator = operator(kubeconfig);
        let (server, own) = (server(), Processes::one(operator.id()));
        let pslots: Api<PartitionableSlot> = Api::all(client.clone());
        until("all nodes are offered", || async {
            pslots
                .list_metadata(&ListParams::default())
                .await
                .is_ok_and(|list| list.items.len() == workload.nodes)
        })
        .await;
        let namespace = namespace(client, &format!("ours-{name}")).await;
        if let Some(beside) = beside {
            submit(client, beside, workload).await;
            let jobs: Api<HTCJob> = Api::namespaced(client.clone(), beside);
            until("the other tenant's job is accepted", || async {
                jobs.get("sweep").await.is_ok_and(|job| job.status.is_some())
            })
            .await;
        }
        let start = Start::now(client, &server, &own).await;
        let first = first_pod(client, &namespace);
        let jobs = submit(client, &namespace, workload).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let through = until("the HTCJob is through", || async {
            if workload.ends() {
                let status = jobs.get("sweep").await.unwrap().status.unwrap_or_default();
                return status.completed == i64::from(workload.procs);
            }
            all_run(&pods, workload).await
        });
        tokio::select! {
            () = through => {}
            status = ended(&mut operator) => panic!("the operator has ended: {status}"),
        }
        let turn = start.end(client, &server, &own, first.await.unwrap()).await;
        let _ = jobs.delete("sweep", &DeleteParams::default()).await;
        gone(client, &namespace).await;
        if let Some(beside) = beside {
            let jobs: Api<HTCJob> = Api::namespaced(client.clone(), beside);
            let _ = jobs.delete("sweep", &DeleteParams::default()).await;
            gone(client, beside).await;
        }
        operator.kill().unwrap();
        operator.wait().unwrap();
        turn
    }
}

impl Side for Batch {
    async fn turn(client: &Client, workload: &Workload, name: &str) -> Turn {
        let (server, own) =
            (server(), Processes::of_control_plane(&["kube-controller-manager", "kube-scheduler"]));
        let namespace = namespace(client, &format!("batch-{name}")).await;
        let jobs: Api<Job> = Api::namespaced(client.clone(), &namespace);
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"},
            "spec": {
                "completions": workload.procs, "parallelism": workload.procs, "backoffLimit": 0,
                "template": template(workload),
            },
        });
        let start = Start::now(client, &server, &own).await;
        let first = first_pod(client, &namespace);
        jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        until("the Job is through", || async {
            if workload.ends() {
                let status = jobs.get("sweep").await.unwrap().status.unwrap_or_default();
                return status.succeeded == i32::try_from(workload.procs).ok();
            }
            all_run(&pods, workload).await
        })
        .await;
        let turn = start.end(client, &server, &own, first.await.unwrap()).await;
        let _ = jobs.delete("sweep", &DeleteParams::background()).await;
        gone(client, &namespace).await;
        turn
    }
}

/// Whether all pods run. To ask costs the server a list of the pods that run: once a second, for one side as for the other.
async fn all_run(pods: &Api<Pod>, workload: &Workload) -> bool {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let running = ListParams::default().fields("status.phase=Running");
    pods.list_metadata(&running).await.unwrap().items.len() == workload.procs as usize
}

fn server() -> Processes {
    Processes::of_control_plane(&["kube-apiserver"])
}

fn template(workload: &Workload) -> Value {
    let runtime = if workload.ends() { format!("{}s", workload.seconds) } else { "10h".to_owned() };
    json!({
        "metadata": {"annotations": {"hollow.slotwright.dev/runtime": runtime}},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "busybox", "command": ["sleep", "1"],
            "resources": {"requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
        }]},
    })
}

/// Submits the HTCJob of a workload.
async fn submit(client: &Client, namespace: &str, workload: &Workload) -> Api<HTCJob> {
    let jobs: Api<HTCJob> = Api::namespaced(client.clone(), namespace);
    let job = json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "sweep"},
        "spec": {
            "count": workload.procs, "requests": {"cpus": 1, "memory": "128Mi"},
            "template": template(workload),
        },
    });
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    jobs
}

fn operator(kubeconfig: Option<&Path>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slotwright"));
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command
        .args(["operator", "--no-leader-elect", "--identity", "bench", "--pod-uid", "bench"])
        .args(["--health-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"])
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until a process has ended.
async fn ended(process: &mut Child) -> ExitStatus {
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Installs the custom resources, and lets the negotiator pause for a second at most, as by default.
pub async fn install(client: &Client) {
    let crds = Api::all(client.clone());
    for crd in api::definitions() {
        let name = crd.name_any();
        crds.patch(&name, &PatchParams::apply("bench").force(), &Patch::Apply(&crd)).await.unwrap();
        await_condition(crds.clone(), &name, is_crd_established()).await.unwrap();
    }
}

/// Removes all nodes, and what the operator keeps of them.
pub async fn remove_nodes(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    let pslots: Api<PartitionableSlot> = Api::all(client.clone());
    pslots.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
}

/// Makes a namespace with a name that begins so.
pub async fn namespace(client: &Client, name: &str) -> String {
    let metadata = ObjectMeta { generate_name: Some(format!("{name}-")), ..ObjectMeta::default() };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made =
        namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await;
    let name = made.unwrap().name_any();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), &name);
    until("the namespace has its account", || async { accounts.get("default").await.is_ok() }).await;
    name
}

async fn first_pod_in(pods: Api<Pod>, began: std::time::Instant) -> Duration {
    let params = WatchParams::default().timeout(290);
    loop {
        let Ok(stream) = pods.watch(&params, "0").await else { continue };
        let mut stream = Box::pin(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
            let phase = pod.status.and_then(|status| status.phase);
            if matches!(phase.as_deref(), Some("Running" | "Succeeded")) {
                return began.elapsed();
            }
        }
    }
}

/// Begins to watch a namespace's pods. The task returns the time after which the first of them ran.
fn first_pod(client: &Client, namespace: &str) -> tokio::task::JoinHandle<Duration> {
    let pods = Api::namespaced(client.clone(), namespace);
    tokio::spawn(first_pod_in(pods, std::time::Instant::now()))
}

/// Deletes a namespace's pods at once, and waits until all are gone.
async fn gone(client: &Client, namespace: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    until("all pods are gone", || async {
        let list = pods.list_metadata(&ListParams::default().limit(1)).await.unwrap();
        if list.items.is_empty() {
            return true;
        }
        let _ =
            pods.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await;
        false
    })
    .await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let _ = namespaces.delete(namespace, &DeleteParams::default()).await;
}

/// Polls until a condition holds: every 200 ms, which costs the server little.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..9000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("not within half an hour: {what}");
}
