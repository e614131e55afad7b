//! Agents: what they report, what the operator asks of them, and how the status of an evicted pod says why.

use api::{LastInput, NodeReport, NodeReportStatus, labels};
use controller::kinds::pod::{self, PodView, SlimPod};
use controller::render;
use hollow::nodes::{NodeShape, Owner, shapes};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use model::pool::{End, PodRef, Vacate, VacateReason};
use serde_json::{Value, json};

use crate::harness::{Cluster, eventually, job};

/// One node with an agent. Its owner comes and goes when the test says so.
fn desk() -> Vec<NodeShape> {
    shapes::uniform(1, 4000, 8 << 30).into_iter().map(|shape| shape.agent(Owner::default())).collect()
}

fn node(cluster: &Cluster) -> String {
    cluster.nodes.as_ref().unwrap().names().remove(0)
}

async fn report(cluster: &Cluster) -> Option<NodeReportStatus> {
    let reports: Api<NodeReport> = Api::all(cluster.client.clone());
    reports.get_opt(&node(cluster)).await.unwrap()?.status
}

async fn reports(cluster: &Cluster, what: &str, met: impl Fn(&NodeReportStatus) -> bool) {
    eventually(what, || async { report(cluster).await.as_ref().is_some_and(&met) }).await;
}

/// Creates a pod on the cluster's node. `hollow` has the annotations for its kubelet, without their prefix.
async fn pod(cluster: &Cluster, namespace: &str, name: &str, hollow: &[(&str, &str)], changes: Value) -> Pod {
    let hollow = hollow.iter().map(|(key, value)| (format!("hollow.slotwright.dev/{key}"), json!(value)));
    let mut object = json!({
        "metadata": {"name": name, "annotations": hollow.collect::<serde_json::Map<_, _>>()},
        "spec": {"nodeName": node(cluster), "restartPolicy": "Never", "terminationGracePeriodSeconds": 300,
                 "containers": [{"name": "main", "image": "busybox"}]},
    });
    json_patch::merge(&mut object, &changes);
    let object = serde_json::from_value(object).unwrap();
    cluster.pods(namespace).create(&PostParams::default(), &object).await.unwrap()
}

async fn becomes(cluster: &Cluster, namespace: &str, name: &str, phase: &str) {
    eventually(&format!("{name} is {phase}"), || async { is(cluster, namespace, name, phase).await }).await;
}

async fn is(cluster: &Cluster, namespace: &str, name: &str, phase: &str) -> bool {
    let pod = cluster.pods(namespace).get(name).await.unwrap();
    pod.status.and_then(|status| status.phase).as_deref() == Some(phase)
}

/// Writes annotations as the operator does.
async fn ask(cluster: &Cluster, pod: &Pod, annotations: Value) {
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid(), "annotations": annotations}}));
    let pods = cluster.pods(&pod.namespace().unwrap());
    pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await.unwrap();
}

async fn delete(cluster: &Cluster, pod: &Pod, grace: u32) {
    let params = DeleteParams::default().grace_period(grace);
    cluster.pods(&pod.namespace().unwrap()).delete(&pod.name_any(), &params).await.unwrap();
}

fn disruption(pod: &Pod) -> Option<&PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|c| c.type_ == render::DISRUPTION_TARGET)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_pod_does_not_run_until_it_is_continued() {
    let cluster = Cluster::without_operator(desk()).await;
    let namespace = "agents-suspend";
    cluster.namespace(namespace).await;
    // The pod is to be suspended from the start: a busy computer might ask so late that the pod has ended.
    let suspended = json!({"metadata": {"annotations": render::suspend(true)}});
    let long = pod(&cluster, namespace, "long", &[("runtime", "1s")], suspended).await;
    let uid = long.uid().unwrap();
    reports(&cluster, "the report names the pod", |status| status.suspended_pods == [uid.clone()]).await;
    // A pod that starts later and runs longer ends, while the suspended one does not.
    pod(&cluster, namespace, "longer", &[("runtime", "2s")], json!({})).await;
    becomes(&cluster, namespace, "longer", "Succeeded").await;
    assert!(is(&cluster, namespace, "long", "Running").await);
    ask(&cluster, &long, render::suspend(false)).await;
    becomes(&cluster, namespace, "long", "Succeeded").await;
    reports(&cluster, "the report names no pod", |status| status.suspended_pods.is_empty()).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_deleted_then_given_less_time_then_killed_by_the_agent_and_says_why() {
    let cluster = Cluster::without_operator(desk()).await;
    let namespace = "agents-kill";
    cluster.namespace(namespace).await;
    let kept = json!({"metadata": {
        "labels": {labels::JOB_UID: "u", labels::PROC: "0"},
        "annotations": {labels::CLAIM: "c"},
        "finalizers": [labels::TRACKING_FINALIZER],
    }});
    let stuck = [("runtime", "1h"), ("ignore-term", "true"), ("ignore-kill", "true")];
    let stuck = pod(&cluster, namespace, "stuck", &stuck, kept).await;
    becomes(&cluster, namespace, "stuck", "Running").await;

    // The patch comes from the operator's own function.
    let reference = PodRef {
        namespace: namespace.into(),
        name: "stuck".into(),
        uid: stuck.uid().unwrap().as_str().into(),
    };
    let reason = VacateReason::StartdPreemptExpression;
    let why = Vacate { reason, message: "PREEMPT became true".into() };
    let patch = Patch::Strategic(render::disruption_target(&reference, &why, jiff::Timestamp::now()));
    let pods = cluster.pods(namespace);
    pods.patch_status("stuck", &PatchParams::default(), &patch).await.unwrap();
    delete(&cluster, &stuck, 600).await;
    delete(&cluster, &stuck, 1).await;
    let hurried = pods.get("stuck").await.unwrap();
    assert_eq!(hurried.metadata.deletion_grace_period_seconds, Some(1), "a second delete shortens the grace");
    delete(&cluster, &stuck, 60).await;
    let hurried = pods.get("stuck").await.unwrap();
    assert_eq!(hurried.metadata.deletion_grace_period_seconds, Some(1), "and never lengthens it");
    assert!(is(&cluster, namespace, "stuck", "Running").await);

    ask(&cluster, &stuck, render::kill()).await;
    becomes(&cluster, namespace, "stuck", "Failed").await;
    let ended = pods.get("stuck").await.unwrap();
    let condition = disruption(&ended).expect("the kubelet's own conditions take none away");
    assert_eq!(condition.reason.as_deref(), Some("StartdPreemptExpression"));
    // The operator reads the same reason from the pod.
    let text = serde_json::to_string(&ended).unwrap();
    let slim = serde_json::from_str::<answers::Item<SlimPod>>(&text).unwrap().object().unwrap();
    let Some(PodView::Ours(facts)) = pod::view(&slim) else { panic!("{slim:?}") };
    let end = End::Evicted { why: "StartdPreemptExpression: PREEMPT became true".into() };
    assert_eq!(facts.end, Some(end));

    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("stuck", &PatchParams::default(), &freed).await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn benchmarks_are_run_when_they_are_asked_for() {
    let cluster = Cluster::without_operator(desk()).await;
    reports(&cluster, "the agent reports", |status| status.last_input.is_some()).await;
    assert_eq!(report(&cluster).await.unwrap().mips, None);
    let now = jiff::Timestamp::now();
    let ask = Patch::Merge(json!({"spec": {"benchmark": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}}));
    let api: Api<NodeReport> = Api::all(cluster.client.clone());
    api.patch(&node(&cluster), &PatchParams::default(), &ask).await.unwrap();
    reports(&cluster, "the agent answers", |status| {
        status.benchmarked_at.as_ref().is_some_and(|at| at.0.as_second() >= now.as_second())
            && status.mips.is_some_and(|mips| mips > 0)
            && status.kflops.is_some_and(|kflops| kflops > 0)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn start_sees_the_owner_and_an_agent_that_dies_is_noticed() {
    let cluster = Cluster::start(desk()).await;
    let namespace = "agents-owner";
    cluster.quick_cycles().await;
    cluster.namespace(namespace).await;
    let (nodes, node) = (cluster.nodes.as_ref().unwrap(), node(&cluster));
    nodes.owner_comes(&node, 0.5).unwrap();
    let is_there = |status: &NodeReportStatus| {
        status.last_input.as_ref().is_some_and(|inputs| inputs.keyboard == Some(LastInput::Ongoing))
    };
    reports(&cluster, "somebody is there", is_there).await;
    cluster
        .apply(json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "desks"},
            "spec": {"start": "KeyboardIdle > 0"},
        }))
        .await;
    cluster.apply(job(namespace, "waits", 1, "100ms", |_| {})).await;
    let matchable = |job: &api::HTCJob| {
        let condition = crate::harness::condition(job, "Matchable");
        condition.is_some_and(|(status, ..)| status == "False")
    };
    cluster.job_when(namespace, "waits", "finds no machine", matchable).await;
    nodes.owner_goes(&node).unwrap();
    cluster.completed(namespace, "waits").await;

    agent_ready(&cluster, &node, "Reporting").await;
    nodes.kill_agent(&node).await.unwrap();
    // The operator notices a dead agent when its Lease has run out. The test shortens the forty seconds of the Lease.
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let short = Patch::Merge(json!({"spec": {"leaseDurationSeconds": 1}}));
    let lease = format!("{}{node}", labels::AGENT_LEASE_PREFIX);
    leases.patch(&lease, &PatchParams::default(), &short).await.unwrap();
    agent_ready(&cluster, &node, "AgentSilent").await;
    nodes.start_agent(&node).await.unwrap();
    agent_ready(&cluster, &node, "Reporting").await;
    cluster.stop().await;
}

async fn agent_ready(cluster: &Cluster, node: &str, reason: &str) {
    let says = |c: &Condition| c.type_ == "AgentReady" && c.reason == reason;
    eventually(&format!("AgentReady says {reason}"), || async {
        let slot = cluster.pslots().get_opt(&format!("slot1.{node}")).await.unwrap();
        slot.and_then(|slot| slot.status).is_some_and(|status| status.conditions.iter().any(says))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_the_operator_evicts_says_why_and_one_that_its_user_removes_does_not() {
    let cluster = Cluster::start(desk()).await;
    let namespace = "agents-why";
    cluster.quick_cycles().await;
    cluster.namespace(namespace).await;
    let slow = |object: &mut Value| {
        object["spec"]["template"]["metadata"]["annotations"]["hollow.slotwright.dev/term-delay"] =
            json!("5s");
        object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(300);
    };
    cluster.apply(job(namespace, "kept", 1, "1h", slow)).await;
    becomes_there(&cluster, namespace, "kept-0").await;
    becomes(&cluster, namespace, "kept-0", "Running").await;

    // A pod of the job whose claim is not known, as a former leader may leave it behind.
    let uid = cluster.jobs(namespace).get("kept").await.unwrap().uid().unwrap();
    let marks = json!({"metadata": {
        "labels": {labels::JOB_UID: uid, labels::JOB_NAME: "kept", labels::PROC: "0"},
        "annotations": {labels::CLAIM: "slot1_9@nowhere#1#1"},
        "finalizers": [labels::TRACKING_FINALIZER],
    }});
    let script = [("runtime", "1h"), ("term-delay", "5s")];
    pod(&cluster, namespace, "orphan", &script, marks).await;
    eventually("the orphan is deleted", || async { is_deleting(&cluster, namespace, "orphan").await }).await;
    let found = cluster.pods(namespace).get("orphan").await.unwrap();
    let why = disruption(&found).expect("it says why");
    assert_eq!((why.status.as_str(), why.reason.as_deref()), ("True", Some("ReconnectFailed")));
    assert!(why.message.as_deref().unwrap().contains("slot1_9@nowhere#1#1"), "{why:?}");
    gone(&cluster, namespace, "orphan").await;

    cluster.jobs(namespace).delete("kept", &DeleteParams::default()).await.unwrap();
    eventually("the pod is deleted", || async { is_deleting(&cluster, namespace, "kept-0").await }).await;
    let removed = cluster.pods(namespace).get("kept-0").await.unwrap();
    assert_eq!(disruption(&removed), None, "its user knows why");
    gone(&cluster, namespace, "kept-0").await;
    cluster.stop().await;
}

async fn becomes_there(cluster: &Cluster, namespace: &str, name: &str) {
    eventually(&format!("{name} is made"), || async {
        cluster.pods(namespace).get_opt(name).await.unwrap().is_some()
    })
    .await;
}

async fn is_deleting(cluster: &Cluster, namespace: &str, name: &str) -> bool {
    let pod = cluster.pods(namespace).get(name).await.unwrap();
    pod.metadata.deletion_timestamp.is_some()
}

async fn gone(cluster: &Cluster, namespace: &str, name: &str) {
    eventually(&format!("{name} is gone"), || async {
        cluster.pods(namespace).get_opt(name).await.unwrap().is_none()
    })
    .await;
}
