//! A NodePolicy in HTCondor's configuration language: it takes effect, and a bad text leaves the last good text in force.
//! The policy's status and events say so.

use std::collections::BTreeMap;

use api::NodePolicy;
use hollow::nodes::shapes;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::{Cluster, eventually, job};

fn policy(config: &str) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "NodePolicy", "metadata": {"name": "text"},
           "spec": {"config": config}})
}

/// Applies the policy, or replaces its text.
async fn set(cluster: &Cluster, config: &str) {
    let policies: Api<NodePolicy> = Api::all(cluster.client.clone());
    if policies.get_opt("text").await.unwrap().is_none() {
        return cluster.apply(policy(config)).await;
    }
    let patch = kube::api::Patch::Merge(json!({"spec": {"config": config}}));
    policies.patch("text", &kube::api::PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a condition of the policy's current generation has this status and reason, and `part` in its message.
async fn says(cluster: &Cluster, type_: &str, status: &str, reason: &str, part: &str) {
    let policies: Api<NodePolicy> = Api::all(cluster.client.clone());
    eventually(&format!("{type_} is {status}, {reason}: {part}"), || async {
        let policy = policies.get("text").await.unwrap();
        let generation = policy.metadata.generation;
        let conditions = policy.status.map(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|c| {
            (c.type_.as_str(), c.status.as_str(), c.reason.as_str()) == (type_, status, reason)
                && c.observed_generation == generation
                && c.message.contains(part)
        })
    })
    .await;
}

async fn events(cluster: &Cluster) -> BTreeMap<String, String> {
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(cluster.client.clone());
    let about = ListParams::default().fields("involvedObject.kind=NodePolicy,involvedObject.name=text");
    let found = events.list(&about).await.unwrap();
    found.into_iter().map(|e| (e.reason.unwrap_or_default(), e.message.unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_in_configuration_text_governs_and_a_bad_one_does_not() {
    let mut cluster = Cluster::start(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("policy-text").await;
    let text = "HALF = $(DETECTED_CPUS) / 2\nSTART = TARGET.RequestCpus <= $(HALF)\nDoor = \"left\"\nSTARTD_ATTRS = Door\n";
    set(&cluster, text).await;
    says(&cluster, "Accepted", "True", "Accepted", "").await;
    says(&cluster, "FullyApplied", "True", "AllHonored", "").await;

    let wide = json!({"cpus": 3, "memory": "128Mi"});
    cluster.apply(job("policy-text", "wide", 1, "100ms", |o| o["spec"]["requests"] = wide.clone())).await;
    cluster
        .job_when("policy-text", "wide", "is refused by START", |job| {
            job.status.as_ref().is_some_and(|status| {
                status
                    .conditions
                    .iter()
                    .any(|c| c.reason == "RefusedByMachines" && c.message.contains("START"))
            })
        })
        .await;
    let narrow = json!({"cpus": 2, "memory": "128Mi"});
    cluster
        .apply(job("policy-text", "narrow", 2, "100ms", |o| {
            o["spec"]["requests"] = narrow.clone();
            o["spec"]["requirements"] = json!("TARGET.Door == \"left\"");
        }))
        .await;
    cluster.completed("policy-text", "narrow").await;

    // A bad text leaves the old text in force, and the status names the place of the error.
    set(&cluster, "START = true\nSTARTD_ATTRS = Door\n  Door = 1 + * 2\n").await;
    says(
        &cluster,
        "Accepted",
        "False",
        "InvalidExpression",
        "spec.config: line 3, column 14: Door is no expression",
    )
    .await;
    says(&cluster, "Accepted", "False", "InvalidExpression", "the last accepted spec stays in force").await;
    eventually("an event says so", || async {
        events(&cluster).await.get("InvalidExpression").is_some_and(|note| note.contains("line 3, column 14"))
    })
    .await;
    // An operator that starts now reads the old text from the policy's status.
    cluster.kill_operator();
    cluster.start_operator();
    cluster
        .apply(job("policy-text", "again", 1, "100ms", |o| {
            o["spec"]["requests"] = narrow.clone();
            o["spec"]["requirements"] = json!("TARGET.Door == \"left\"");
        }))
        .await;
    cluster.completed("policy-text", "again").await;

    // A text with warnings takes effect.
    set(&cluster, "START = true\nSYSTEM_STARTD_LATCH_EXPRS = A\nSTRAT = 1\n").await;
    says(&cluster, "Accepted", "True", "Accepted", "").await;
    says(
        &cluster,
        "FullyApplied",
        "False",
        "KnobNotActedOn",
        "line 3, column 1: nothing reads STRAT: did you mean START?",
    )
    .await;
    eventually("an event says so", || async {
        events(&cluster)
            .await
            .get("KnobNotActedOn")
            .is_some_and(|note| note.contains("SYSTEM_STARTD_LATCH_EXPRS"))
    })
    .await;
    cluster.completed("policy-text", "wide").await;
    cluster.stop().await;
}
