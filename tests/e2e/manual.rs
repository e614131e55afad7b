//! Two of the policies in HTCondor's manual, through the Kubernetes API. `decide/tests/manual.rs` tests all of them,
//! second by second.

use api::{NodeReport, Slot};
use controller::render;
use hollow::nodes::{NodeShape, Owner, shapes};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::{Cluster, eventually, job};

fn policy(config: &str) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "manual"},
           "spec": {"config": config}})
}

/// One node with an agent.
fn desk() -> Vec<NodeShape> {
    shapes::uniform(1, 4000, 8 << 30).into_iter().map(|shape| shape.agent(Owner::default())).collect()
}

/// Waits until the only claimed slot has this activity.
async fn is(cluster: &Cluster, activity: &str) {
    eventually(&format!("the slot is {activity}"), || async {
        let slots = cluster.slots().list(&ListParams::default()).await.unwrap();
        slots.iter().any(|slot: &Slot| {
            let shown = serde_json::to_value(slot.status.as_ref()).unwrap();
            (&shown["state"], &shown["activity"]) == (&json!("Claimed"), &json!(activity))
        })
    })
    .await;
}

/// The manual's desktop policy, with seconds in place of its minutes.
const DESKTOP: &str = "use POLICY : UWCS_Desktop\nStartIdleTime = 0\nContinueIdleTime = 0\nMaxSuspendTime = 3600\n\
    KeyboardBusy = KeyboardIdle < 1\nCPUIdle = true\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\n\
    UWCS_CONTINUE = KeyboardIdle > $(ContinueIdleTime)\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_desktop_suspends_a_job_while_its_owner_is_there_and_vacates_it_when_they_stay() {
    let cluster = Cluster::start(desk()).await;
    let namespace = "manual-desktop";
    cluster.quick_cycles().await;
    cluster.namespace(namespace).await;
    cluster.apply(policy(DESKTOP)).await;
    cluster.apply(job(namespace, "long", 1, "1h", |_| {})).await;
    is(&cluster, "Busy").await;
    let nodes = cluster.nodes.as_ref().unwrap();
    let node = nodes.names().remove(0);
    let reports: kube::Api<NodeReport> = kube::Api::all(cluster.client.clone());
    let pod = cluster.pods(namespace).get("long-0").await.unwrap().uid().unwrap();
    let suspends = || async {
        let status = reports.get(&node).await.unwrap().status;
        status.is_some_and(|status| status.suspended_pods == [pod.clone()])
    };

    nodes.owner_comes(&node, 0.1).unwrap();
    is(&cluster, "Suspended").await;
    eventually("the agent has suspended the pod", suspends).await;
    nodes.owner_goes(&node).unwrap();
    is(&cluster, "Busy").await;
    eventually("the agent has continued the pod", || async { !suspends().await }).await;

    nodes.owner_comes(&node, 0.1).unwrap();
    is(&cluster, "Suspended").await;
    let impatient = DESKTOP.replace("MaxSuspendTime = 3600", "MaxSuspendTime = 1");
    let policies: kube::Api<api::NodePolicy> = kube::Api::all(cluster.client.clone());
    let patch = kube::api::Patch::Merge(json!({"spec": {"config": impatient}}));
    policies.patch("manual", &kube::api::PatchParams::default(), &patch).await.unwrap();
    eventually("the pod was evicted", || async {
        let now = cluster.pods(namespace).get_opt("long-0").await.unwrap();
        now.is_none_or(|now| {
            let conditions = now.status.and_then(|status| status.conditions).unwrap_or_default();
            let why = conditions.into_iter().find(|c| c.type_ == render::DISRUPTION_TARGET);
            why.and_then(|why| why.reason).as_deref() == Some("StartdPreemptExpression")
        })
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_asks_for_cogs_gets_them_and_its_pod_does_not_request_them() {
    let cluster = Cluster::start(shapes::uniform(1, 8000, 8 << 30)).await;
    let namespace = "manual-cogs";
    cluster.quick_cycles().await;
    cluster.namespace(namespace).await;
    let manifest = include_str!("../../examples/policies/95-cogs.yaml");
    let mut cogs: Value = serde_saphyr::from_str(manifest).unwrap();
    cogs["spec"].as_object_mut().unwrap().remove("nodeSelector");
    cluster.apply(cogs).await;
    let resources = json!({"cogs": 2, "actuator": 1});
    cluster
        .apply(job(namespace, "assembly", 1, "1h", |o| o["spec"]["requests"]["resources"] = resources))
        .await;
    is(&cluster, "Busy").await;
    let slots = cluster.slots().list(&ListParams::default()).await.unwrap();
    let claimed = slots.iter().map(|slot| serde_json::to_value(&slot.spec).unwrap());
    let carved = claimed.filter(|spec| !spec["claim"].is_null()).map(|spec| spec["resources"].to_string());
    let carved: Vec<String> = carved.collect();
    assert!(carved.len() == 1 && carved[0].contains("Cogs"), "{carved:?}");
    let pod = cluster.pods(namespace).get("assembly-0").await.unwrap();
    let asked = pod.spec.unwrap().containers.remove(0).resources.unwrap().requests.unwrap();
    assert!(
        asked.keys().all(|name| ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str())),
        "{asked:?}"
    );
    cluster.stop().await;
}
