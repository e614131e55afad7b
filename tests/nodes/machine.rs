//! The nodes as machines: what `hack/kube/node.sh` does to them, and what tests leave on them.

use std::process::Command;
use std::time::Duration;

use api::{
    DrainRequest, GroupQuota, HTCJob, NodePolicy, NodeReport, PartitionableSlot, Slot, SubmitPolicy,
    Submitter, labels,
};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cluster::root;

/// The numbers of the nodes that `hack/e2e-nodes.sh` starts.
pub const NODES: [u32; 3] = [1, 2, 3];

/// Runs `hack/kube/node.sh` with these arguments.
pub fn node(arguments: &[&str]) {
    node_says(arguments);
}

/// Runs `hack/kube/node.sh` with these arguments, and returns what the script prints.
pub fn node_says(arguments: &[&str]) -> String {
    let mut command = Command::new(root().join("hack/kube/node.sh"));
    command.args(arguments).env("SLOTWRIGHT_KUBE_STATE", crate::cluster::state());
    // The cluster has CPUs that this computer lacks; e2e-nodes.sh sets how many for all its nodes.
    if std::env::var_os("SLOTWRIGHT_NODE_CPUS").is_none() {
        command.env("SLOTWRIGHT_NODE_CPUS", "12");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "node.sh {arguments:?}: {text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Removes everything that an earlier test left, and waits until all nodes are Ready and empty.
pub async fn sweep(client: &Client) {
    let background = DeleteParams::background();
    let all = ListParams::default();
    for job in Api::<HTCJob>::all(client.clone()).list(&all).await.unwrap() {
        free_and_delete::<HTCJob>(client, &job.namespace().unwrap(), &job.name_any(), &background).await;
    }
    remove_all::<Slot>(client).await;
    remove_all::<PartitionableSlot>(client).await;
    remove_all::<Submitter>(client).await;
    remove_all::<GroupQuota>(client).await;
    remove_all::<NodePolicy>(client).await;
    remove_all::<SubmitPolicy>(client).await;
    remove_all::<DrainRequest>(client).await;
    remove_all::<NodeReport>(client).await;
    remove_all::<api::Negotiator>(client).await;
    // The next leader need not wait for the lease of a leader that an earlier test killed.
    let leases: Api<Lease> = Api::namespaced(client.clone(), "slotwright-system");
    let _ = leases.delete("slotwright-operator", &background).await;
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), "slotwright-system");
    let _ = sets.delete("slotwright-agent", &background).await;
    // A node whose agent promised and is gone would take no jobs.
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    for number in NODES {
        let _ = leases.delete(&format!("{}node{number}", labels::AGENT_LEASE_PREFIX), &background).await;
    }
    sweep_pods(client).await;
    let nodes: Api<Node> = Api::all(client.clone());
    for number in NODES {
        let name = format!("node{number}");
        let arguments = ["start", &number.to_string()];
        if nodes.get_opt(&name).await.unwrap().is_none() {
            // A kubelet registers its Node only when it starts.
            node(&["kill", &number.to_string(), "kubelet"]);
        }
        node(&arguments);
        let uncordon = Patch::Merge(json!({"spec": {"unschedulable": false, "taints": null}}));
        nodes.patch(&name, &PatchParams::default(), &uncordon).await.unwrap();
    }
    let deadline = Instant::now() + Duration::from_mins(2);
    while !nodes.list(&all).await.unwrap().iter().all(is_ready) {
        assert!(Instant::now() < deadline, "the nodes are not Ready");
        sleep(Duration::from_millis(250)).await;
    }
}

/// Deletes all pods, and kills what runs in them.
async fn sweep_pods(client: &Client) {
    let pods: Api<Pod> = Api::all(client.clone());
    let jobs: Api<k8s_openapi::api::batch::v1::Job> = Api::all(client.clone());
    for job in jobs.list(&ListParams::default()).await.unwrap() {
        let api: Api<k8s_openapi::api::batch::v1::Job> =
            Api::namespaced(client.clone(), &job.namespace().unwrap());
        let _ = api.delete(&job.name_any(), &DeleteParams::background()).await;
    }
    let now = DeleteParams::default().grace_period(0);
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut cleared = false;
    loop {
        let left = pods.list(&ListParams::default()).await.unwrap().items;
        if left.is_empty() && cleared {
            return;
        }
        assert!(Instant::now() < deadline, "pods of an earlier test do not go");
        for pod in &left {
            free_and_delete::<Pod>(client, &pod.namespace().unwrap(), &pod.name_any(), &now).await;
        }
        if !cleared {
            // A kubelet gives a container that ignores SIGTERM all of its grace, even if the pod is gone.
            for number in NODES {
                node(&["clear", &number.to_string()]);
            }
            cleared = true;
        }
        sleep(Duration::from_millis(250)).await;
    }
}

async fn free_and_delete<K>(client: &Client, namespace: &str, name: &str, how: &DeleteParams)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let _ = api.delete(name, how).await;
    let _ = api.patch(name, &PatchParams::default(), &free).await;
}

async fn remove_all<K>(client: &Client)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let _ = api.delete_collection(&DeleteParams::background(), &ListParams::default()).await;
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a pod belongs to the pool.
pub fn is_ours(pod: &Pod) -> bool {
    pod.labels().contains_key(labels::JOB_UID)
}
