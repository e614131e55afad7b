//! Bad input: for each mistake the operator writes a message that names field, position and remedy, and the mistake does
//! not keep other jobs from running.

use api::labels::ACTS;
use hollow::nodes::shapes;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::harness::{Cluster, condition, eventually, job, story};

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_explained_and_the_others_run() {
    let cluster = Cluster::start(shapes::uniform(2, 4000, 8 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("bad").await;
    cluster
        .apply(job("bad", "typo", 1, "100ms", |o| o["spec"]["requirements"] = json!("TARGET.Memory >= && 3")))
        .await;
    cluster.apply(job("bad", "huge", 1, "100ms", |o| o["spec"]["requests"] = json!({"cpus": 500}))).await;
    cluster
        .apply(job("bad", "nogroup", 1, "100ms", |o| o["spec"]["accountingGroup"] = json!("nobody")))
        .await;
    cluster
        .apply(job("bad", "picky", 1, "100ms", |o| {
            o["spec"]["requirements"] = json!("TARGET.Arch == \"S390X\"");
        }))
        .await;
    cluster.apply(job("bad", "good", 3, "100ms", |_| {})).await;

    let zero = job("bad", "zero", 0, "100ms", |_| {});
    let refused = cluster
        .jobs("bad")
        .create(&kube::api::PostParams::default(), &serde_json::from_value(zero).unwrap())
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("spec.count") && refused.contains("greater than or equal to 1"), "{refused}");

    cluster.completed("bad", "good").await;
    for (name, type_, reason, message) in [
        (
            "typo",
            "Accepted",
            "InvalidExpression",
            "spec.requirements: not a ClassAd expression: line 1, column 18",
        ),
        (
            "nogroup",
            "Accepted",
            "UnknownGroup",
            "spec.accountingGroup: no GroupQuota declares the group nobody",
        ),
        (
            "huge",
            "Matchable",
            "RequestTooLarge",
            "spec.requests.cpus: asks for 500 CPUs, and the most that a node has is 4 CPUs",
        ),
        ("picky", "Matchable", "RequirementsNotMet", "spec.requirements: no node matches: the nearest, "),
    ] {
        let said = |job: &api::HTCJob| {
            condition(job, type_).is_some_and(|(status, why, text)| {
                status == "False" && why == reason && text.starts_with(message)
            })
        };
        cluster.job_when("bad", name, "says why it does not run", said).await;
        eventually("an event says so too", || async {
            story(&cluster, "bad", name).await.get(reason).is_some_and(|note| note.starts_with(message))
        })
        .await;
    }
    // A job that can never run as it stands is complete once all its procs are removed.
    let acts = json!({"acts": [{"id": 1, "act": "Remove", "reason": "not wanted"}]}).to_string();
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ACTS: acts}}}));
    cluster.jobs("bad").patch("nogroup", &PatchParams::default(), &patch).await.unwrap();
    let complete =
        |job: &api::HTCJob| condition(job, "Complete").is_some_and(|(status, ..)| status == "True");
    let removed = cluster.job_when("bad", "nogroup", "is complete", complete).await;
    assert_eq!(removed.status.unwrap().summary.as_deref(), Some("Removed"));
    cluster.stop().await;
}
