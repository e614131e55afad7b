//! Rows 1, 4, 5, 7 and 8: jobs and pods that are well formed.

use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use api::HTCJob;
use k8s_openapi::api::core::v1::Pod;

use super::{pool, refused, row, running, submit};
use crate::harness::{condition, eventually, job};

/// Procs that ask for what no node has are matched with nothing, and others have the whole pool.
#[tokio::test(flavor = "multi_thread")]
async fn phantom_requests_keep_nobody_from_the_pool() {
    let (cluster, tenant) = pool().await;
    submit(
        &tenant,
        job("tenant", "phantom", 200, "1h", |job| {
            job["spec"]["requests"]["resources"] = json!({"example.com/typo": 1});
        }),
    )
    .await;
    submit(&tenant, job("tenant", "gpus", 200, "1h", |job| job["spec"]["requests"]["gpus"] = json!(1))).await;
    cluster.apply(job("others", "plain", 8, "1h", |_| {})).await;
    eventually("the pool is used as a whole", || async { running(&cluster, "others", "plain").await == 8 })
        .await;
    assert_eq!(running(&cluster, "tenant", "phantom").await + running(&cluster, "tenant", "gpus").await, 0);
    row(
        "1 phantom matches",
        "400 procs ask for resources that no node has",
        "another's 8 procs have all 8 CPUs",
    );
    cluster.stop().await;
}

/// An expression that costs seconds holds its own job, and others start meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn expensive_expressions_hold_their_own_jobs() {
    let (cluster, tenant) = pool().await;
    let bomb = |job: &mut Value| {
        job["spec"]["requirements"] = json!("regexp(\"(a{1,110}){1,110}b\", B)");
        job["spec"]["attributes"] = json!({"B": format!("\"{}\"", "a".repeat(11_000))});
    };
    for n in 0..20 {
        submit(&tenant, job("tenant", &format!("bomb-{n}"), 5, "1h", bomb)).await;
    }
    cluster.apply(job("others", "plain", 8, "100ms", |_| {})).await;
    cluster.completed("others", "plain").await;
    let held = |job: &HTCJob| condition(job, "Held").is_some_and(|(_, reason, _)| reason == "TooExpensive");
    cluster.job_when("tenant", "bomb-0", "is held", held).await;
    row(
        "4 expensive expressions",
        "20 jobs whose Requirements take seconds",
        "held as TooExpensive; another's 8 procs are done",
    );
    cluster.stop().await;
}

/// A pod without its labels is still the proc's pod: its slot is free when it ends, and its finalizer goes. Where the server has
/// admission policies, the tenant may not take the labels off; an admin still may.
#[tokio::test(flavor = "multi_thread")]
async fn labels_that_are_taken_off_leak_no_slot() {
    let (cluster, tenant) = pool().await;
    submit(&tenant, job("tenant", "strips", 8, "5s", |_| {})).await;
    eventually("the procs run", || async { running(&cluster, "tenant", "strips").await == 8 }).await;
    let pods: Api<Pod> = Api::namespaced(tenant.clone(), "tenant");
    let by_admin: Api<Pod> = Api::namespaced(cluster.client.clone(), "tenant");
    let all = pods.list(&ListParams::default()).await.unwrap();
    let ours = |key: &&String| key.starts_with("slotwright.dev/");
    let mut by = "the tenant";
    for pod in &all {
        let labels: Value = pod
            .labels()
            .keys()
            .filter(ours)
            .map(|key| (key.clone(), Value::Null))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let annotations: Value = pod
            .annotations()
            .keys()
            .filter(ours)
            .map(|key| (key.clone(), Value::Null))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels, "annotations": annotations}}));
        match pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(refusal))
                if refusal.message.contains("written by Slotwright's operator only") =>
            {
                by = "an admin, since the policy refuses the tenant";
                by_admin.patch(&pod.name_any(), &PatchParams::default(), &patch).await.unwrap();
            }
            taken => drop(taken.unwrap()),
        }
    }
    cluster.completed("tenant", "strips").await;
    eventually("no slot is left", || async {
        cluster.slots().list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    eventually("no finalizer is left", || async {
        pods.list(&ListParams::default()).await.unwrap().iter().all(|pod| pod.finalizers().is_empty())
    })
    .await;
    row(
        "5 labels taken off",
        format!("labels and annotations of 8 running pods, by {by}"),
        "all 8 are booked; no slot and no finalizer is left",
    );
    cluster.stop().await;
}

/// A group is charged by those whom it names, and a ceiling holds whatever groups are charged.
#[tokio::test(flavor = "multi_thread")]
async fn groups_and_ceilings_are_not_escaped() {
    let (cluster, tenant) = pool().await;
    let quota = |name: &str, owners: Value| {
        json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota",
        "metadata": {"name": name}, "spec": {"quota": 8, "owners": owners}})
    };
    cluster.apply(quota("closed", json!(["others"]))).await;
    cluster.apply(quota("open", json!(["*"]))).await;
    cluster
        .apply(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Submitter", "metadata": {"name": "tenant"},
            "spec": {"ceiling": 2}}))
        .await;
    for (name, group) in [("foreign", "closed"), ("escapes", "open")] {
        submit(&tenant, job("tenant", name, 8, "1h", |job| job["spec"]["accountingGroup"] = json!(group)))
            .await;
    }
    refused(&cluster, "foreign", "AccountingGroupNotAllowed").await;
    eventually("two procs run", || async { running(&cluster, "tenant", "escapes").await == 2 }).await;
    // Others get what the ceiling leaves, so that cycles have been run since.
    cluster.apply(job("others", "plain", 6, "100ms", |_| {})).await;
    cluster.completed("others", "plain").await;
    assert_eq!(running(&cluster, "tenant", "escapes").await, 2);
    assert_eq!(running(&cluster, "tenant", "foreign").await, 0);
    row("7 groups", "another's group, and a group in spite of a ceiling of 2", "refused; 2 procs run");
    cluster.stop().await;
}

/// A second container takes nothing that the slot does not have.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_container_takes_no_more_than_the_slot() {
    let (cluster, tenant) = pool().await;
    for (name, resources, says) in [
        ("unbounded", json!({}), "side says nothing of cpu"),
        ("greedy", json!({"limits": {"cpu": "64", "memory": "1Mi"}}), "more cpu than the slot holds"),
    ] {
        let side = json!({"name": "side", "image": "busybox", "resources": resources});
        submit(
            &tenant,
            job("tenant", name, 1, "1h", |job| {
                job["spec"]["requests"] = json!({"cpus": 1, "memory": "128Mi"});
                job["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(side);
            }),
        )
        .await;
        let said = refused(&cluster, name, "InvalidTemplate").await;
        assert!(said.contains(says), "{said}");
    }
    row(
        "8 second containers",
        "one with a limit of 64 CPUs, one without any",
        "refused, with the container's name",
    );
    cluster.stop().await;
}
