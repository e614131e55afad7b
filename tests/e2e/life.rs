//! The life of a proc through the API: acts, `spec.hold`, retries.

use api::labels::ACTS;
use hollow::nodes::shapes;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, condition, job};

async fn patch(cluster: &Cluster, name: &str, patch: Value) {
    let params = PatchParams::default();
    cluster.jobs("life").patch(name, &params, &Patch::Merge(patch)).await.unwrap();
}

/// Writes acts on a job, as the plugin does.
async fn act(cluster: &Cluster, name: &str, acts: Value) {
    let text = json!({"acts": acts}).to_string();
    patch(cluster, name, json!({"metadata": {"annotations": {ACTS: text}}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn procs_are_held_released_removed_and_vacated_through_the_api() {
    let mut cluster = Cluster::start(shapes::uniform(1, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("life").await;
    cluster.apply(job("life", "sweep", 6, "1h", |_| {})).await;
    let status = |job: &api::HTCJob| job.status.clone().unwrap_or_default();
    cluster.job_when("life", "sweep", "runs", |job| status(job).running == 4).await;
    let acts = json!([
        {"id": 1, "act": "Hold", "procs": "0", "reason": "look first", "subcode": 7},
        {"id": 2, "act": "Remove", "procs": "1,5", "reason": "not wanted"},
    ]);
    act(&cluster, "sweep", acts).await;
    let held = cluster.job_when("life", "sweep", "is acted on", |job| status(job).last_act == Some(2)).await;
    let now = status(&held);
    assert_eq!((now.held, now.removed, now.removed_procs.as_str()), (1, 2, "1,5"));
    let reason = &now.held_procs[0];
    assert_eq!((reason.procs.as_str(), reason.code, reason.subcode), ("0", 1, 7));
    assert_eq!(reason.reason, "look first");
    // The next leader keeps proc 0 held, and procs 1 and 5 removed.
    cluster.kill_operator();
    cluster.start_operator();
    cluster.job_when("life", "sweep", "runs what is left", |job| status(job).running == 3).await;
    act(&cluster, "sweep", json!([{"id": 3, "act": "Release", "procs": "0"}])).await;
    cluster.job_when("life", "sweep", "runs all but the removed", |job| status(job).running == 4).await;
    patch(&cluster, "sweep", json!({"spec": {"hold": true}})).await;
    cluster.job_when("life", "sweep", "is held as a whole", |job| status(job).held == 4).await;
    act(&cluster, "sweep", json!([{"id": 4, "act": "Remove"}])).await;
    let done = cluster.completed("life", "sweep").await;
    let (_, reason, message) = condition(&done, "Complete").unwrap();
    assert_eq!(reason, "SomeRemoved");
    assert_eq!(
        message,
        "6 procs were removed, and every other ended with the exit code that counts as success"
    );
    assert_eq!(status(&done).summary.as_deref(), Some("Removed"));
    cluster.all_ended().await;
    cluster.stop().await;
}

/// Whoever may write statuses must not make `kubectl wait` believe that a job is complete.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_somebody_else_wrote_is_written_again() {
    let cluster = Cluster::start(shapes::uniform(1, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("life").await;
    cluster.apply(job("life", "runs", 2, "1h", |_| {})).await;
    let status = |job: &api::HTCJob| job.status.clone().unwrap_or_default();
    let runs = cluster.job_when("life", "runs", "runs", |job| status(job).running == 2).await;
    let given = status(&runs).cluster_id;
    assert!(given.is_some());
    let forged = json!({"status": {"summary": "Completed", "running": 0, "completed": 2, "completedProcs": "0-1",
        "clusterId": i64::MAX, "conditions": []}});
    let forge = Patch::Merge(&forged);
    let jobs = cluster.jobs("life");
    let forged = jobs.patch_status("runs", &PatchParams::default(), &forge).await.unwrap();
    assert_eq!(status(&forged).summary.as_deref(), Some("Completed"));
    let version = forged.metadata.resource_version;
    let right = |job: &api::HTCJob| {
        let now = status(job);
        job.metadata.resource_version != version
            && (now.running, now.completed, now.completed_procs.as_str()) == (2, 0, "")
            && now.cluster_id == given
            && condition(job, "Accepted").is_some()
    };
    cluster.job_when("life", "runs", "says what is true", right).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_is_run_again_and_counted() {
    let cluster = Cluster::start(shapes::uniform(1, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("life").await;
    let retried = job("life", "retried", 1, "100ms", |job| {
        job["spec"]["attributes"] = json!({"JobMaxRetries": "1", "OnExitHold": "NumJobCompletions == 2",
            "OnExitRemove": "NumJobCompletions > JobMaxRetries || ExitCode =?= 0"});
        job["spec"]["template"]["metadata"]["annotations"]["hollow.slotwright.dev/exit-code"] = json!("3");
    });
    cluster.apply(retried).await;
    let held = cluster
        .job_when("life", "retried", "is held at the second end", |job| {
            job.status.as_ref().is_some_and(|status| status.held == 1 && !status.held_procs.is_empty())
        })
        .await;
    let status = held.status.unwrap_or_default();
    let runs = &status.runs[0];
    assert_eq!((runs.procs.as_str(), runs.starts, runs.completions, runs.holds), ("0", 2, 2, 1));
    assert_eq!((runs.exit_code, status.held_procs[0].code), (Some(3), 3));
    assert!(runs.first_start.is_some() && runs.last_vacate.is_none(), "{runs:?}");
    cluster.stop().await;
}

/// A kubelet kills the program for its memory, twice: the proc runs again with more, and is held when it may have no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_proc_that_goes_over_its_memory_runs_again_with_more() {
    let mut cluster = Cluster::start(shapes::uniform(1, 4000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("life").await;
    let greedy = job("life", "greedy", 1, "100ms", |job| {
        job["spec"]["requests"]["memory"] = json!("128Mi");
        job["spec"]["attributes"] = json!({"TransformOnEvict": "\"RequestMemory\"",
            "TransformBody_RequestMemory": "\"REQUIREMENTS VacateReasonSubCode == 102 && RequestMemory < 200\\nSET RequestMemory 256\""});
        job["spec"]["template"]["metadata"]["annotations"]["hollow.slotwright.dev/out-of-memory"] =
            json!("true");
    });
    cluster.apply(greedy).await;
    let grown =
        |job: &api::HTCJob| job.status.as_ref().is_some_and(|status| !status.transformed_procs.is_empty());
    let job = cluster.job_when("life", "greedy", "asks for more", grown).await;
    let changed = &job.status.unwrap_or_default().transformed_procs[0];
    assert_eq!((changed.procs.as_str(), changed.attributes["RequestMemory"].as_str()), ("0", "256"));
    // The next leader gives the proc as much.
    cluster.kill_operator();
    cluster.start_operator();
    let killed = cluster
        .job_when("life", "greedy", "is held at the second kill", |job| {
            job.status.as_ref().is_some_and(|status| !status.held_procs.is_empty())
        })
        .await;
    let status = killed.status.unwrap_or_default();
    let (hold, runs) = (&status.held_procs[0], &status.runs[0]);
    assert_eq!((hold.code, hold.subcode, runs.starts, runs.holds), (34, 102, 2, 1));
    assert!(hold.reason.contains("256 MiB"), "{hold:?}");
    cluster.stop().await;
}

/// A job with `JobMaterializeLimit` runs no more procs at a time, and a job with `DeferralTime` does not start before
/// that time.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_keeps_to_its_pace() {
    let cluster = Cluster::start(shapes::uniform(1, 8000, 16 << 30)).await;
    cluster.quick_cycles().await;
    cluster.namespace("life").await;
    let limited = job("life", "limited", 5, "500ms", |job| {
        job["spec"]["attributes"] = json!({"JobMaterializeLimit": "2"});
    });
    cluster.apply(limited).await;
    let why = "JobMaterializeLimit is 2, and as many procs have slots or are held";
    let full = cluster
        .job_when("life", "limited", "is limited", |job| {
            job.status.as_ref().is_some_and(|status| status.why.as_deref() == Some(why))
        })
        .await;
    let status = full.status.unwrap_or_default();
    assert!(status.running <= 2 && status.idle >= 1, "{status:?}");
    cluster.completed("life", "limited").await;

    let deferred = job("life", "deferred", 2, "100ms", |job| {
        job["spec"]["attributes"] = json!({"DeferralTime": "time() + 6", "DeferralPrepTime": "4"});
    });
    cluster.apply(deferred).await;
    let done = cluster.completed("life", "deferred").await;
    let created = done.metadata.creation_timestamp.clone().unwrap().0;
    let started = done.status.as_ref().unwrap().start_time.clone().unwrap().0;
    let waited = started.as_second() - created.as_second();
    assert!((5..=9).contains(&waited), "the first proc started {waited} s after the submission");
    cluster.stop().await;
}
