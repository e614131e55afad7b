//! Programs that cannot go on, or that never begin: what the record says of them.

use api::HTCJob;
use serde_json::json;

use crate::cluster::Cluster;
use crate::program::{IMAGE, shell};

/// HTCondor's code of a job that used more than it had asked for.
const OUT_OF_RESOURCES: i64 = 34;
/// HTCondor's code of a program that could not be started.
const FAILED_TO_START: i64 = 6;

/// Waits until the only proc of a job is held, and checks the code, and that the reason says all the words.
async fn held(cluster: &Cluster, job: &str, seconds: u64, code: i64, words: &[&str]) {
    let settled = |job: &HTCJob| {
        let status = job.status.clone().unwrap_or_default();
        !status.held_procs.is_empty() || status.completed + status.failed > 0
    };
    cluster
        .until(&format!("{job} is held"), seconds, || async {
            cluster.jobs().get(job).await.is_ok_and(|job| settled(&job))
        })
        .await;
    let status = cluster.jobs().get(job).await.unwrap().status.unwrap();
    let story = cluster.story(job).await;
    assert_eq!((status.completed, status.failed), (0, 0), "held, neither done nor failed: {story:?}");
    let held = &status.held_procs[0];
    assert_eq!((held.procs.as_str(), held.code), ("0", code), "{held:?}");
    for word in words {
        assert!(held.reason.contains(word), "the reason says {word:?}: {:?}", held.reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_that_uses_too_much_memory_is_held() {
    let cluster = Cluster::start("oom", "").await;
    // tail keeps the last line, which never ends.
    cluster.apply(shell(&cluster.namespace, "greedy", 1, "exec tail /dev/zero")).await;
    held(&cluster, "greedy", 60, OUT_OF_RESOURCES, &["memory"]).await;
}

/// retry_request_memory, as condor_submit writes it into the job's ad.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_that_uses_too_much_memory_runs_again_with_more() {
    let cluster = Cluster::start("retry", "").await;
    // tail keeps the last line, which is 200 MiB long, and its exit code is that of the shell.
    let mut job = shell(&cluster.namespace, "hungry", 1, "head -c 209715200 /dev/zero | tail > /dev/null");
    job["spec"]["attributes"] = json!({
        "TransformOnEvict": "\"RequestMemory\"",
        "TransformBody_RequestMemory": "\"REQUIREMENTS VacateReasonSubCode == 102\\nEVALSET RequestMemory RequestMemory * 8\"",
    });
    cluster.apply(job).await;
    let record = cluster.completed("hungry", 120).await;
    assert_eq!(record.failed.len(), 0, "{record:?}");
    let story = cluster.story("hungry").await;
    let told =
        story.iter().any(|(reason, note)| reason == "ProcEvicted" && note.contains("RequestMemory = 1024"));
    assert!(told, "an event tells the new request: {story:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_program_that_fills_its_disk_is_held() {
    let cluster = Cluster::start("disk", "").await;
    let script = "dd if=/dev/zero of=/big bs=1M count=200; sleep 600";
    cluster.apply(shell(&cluster.namespace, "hoarder", 1, script)).await;
    held(&cluster, "hoarder", 120, OUT_OF_RESOURCES, &["ephemeral"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn a_command_that_does_not_exist_is_held() {
    let cluster = Cluster::start("command", "").await;
    let mut job = shell(&cluster.namespace, "typo", 1, "");
    job["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["/no/such/program"]);
    cluster.apply(job).await;
    held(&cluster, "typo", 60, FAILED_TO_START, &["/no/such/program"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn the_exit_code_of_a_failed_init_container_is_told() {
    let cluster = Cluster::start("init", "").await;
    let mut job = shell(&cluster.namespace, "unprepared", 1, "exit 0");
    job["spec"]["template"]["spec"]["initContainers"] =
        json!([{"name": "prepare", "image": IMAGE, "command": ["sh", "-c", "exit 3"]}]);
    cluster.apply(job).await;
    let record = cluster.completed("unprepared", 60).await;
    assert_eq!(record.failed.len(), 1, "{record:?}");
    let mut story = Vec::new();
    for _ in 0..40 {
        story = cluster.story("unprepared").await;
        if story.iter().any(|(reason, _)| reason == "ProcFailed") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    let told = story.iter().any(|(reason, note)| reason == "ProcFailed" && note.contains("exit code 3"));
    assert!(told, "an event tells the exit code 3: {story:#?}");
}
