//! Files that travel with jobs, and what their procs print.

use api::HTCJob;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_deleted};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::Cluster;

impl Cluster {
    /// Writes a submit file and a script beside it, and returns the path of the submit file.
    fn script(&self, more: &str) -> String {
        let directory = self.directory.path();
        std::fs::write(directory.join("run.sh"), "#!/bin/sh\nwc -c input.bin\n").unwrap();
        std::fs::write(directory.join("input.bin"), [0xff, 0x00]).unwrap();
        let path = directory.join("run.sub");
        let text = format!(
            "container_image = docker://debian\nexecutable = {0}/run.sh\ntransfer_executable = true\n\
             transfer_input_files = {0}/input.bin\n{more}queue 2\n",
            directory.display()
        );
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

#[tokio::test]
async fn files_travel_in_a_config_map_of_the_job() {
    let cluster = Cluster::with_definitions().await;
    let path = cluster.script("");
    let output = cluster.run(&["submit", &path]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let jobs = Api::<HTCJob>::default_namespaced(cluster.client.clone());
    let job = jobs.list(&ListParams::default()).await.unwrap().items.remove(0);
    let maps = Api::<ConfigMap>::default_namespaced(cluster.client.clone());
    let map = maps.list(&ListParams::default()).await.unwrap().items.remove(0);
    let name = map.name_any();
    assert!(name.starts_with("run-files-"), "{name}");
    assert_eq!(map.immutable, Some(true));
    assert_eq!(map.data.unwrap()["run.sh"], "#!/bin/sh\nwc -c input.bin\n");
    assert_eq!(map.binary_data.unwrap()["input.bin"].0, [0xff, 0x00]);
    let owner = &map.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), &owner.uid), ("HTCJob", &job.uid().unwrap()));
    let template: Value = serde_json::from_str(job.spec.template.0.get()).unwrap();
    for volume in &template["spec"]["volumes"].as_array().unwrap()[1..] {
        assert_eq!(volume["configMap"]["name"], json!(name));
    }
    // Kubernetes deletes the ConfigMap with the job.
    jobs.delete(&job.name_any(), &DeleteParams::default()).await.unwrap();
    let uid = map.metadata.uid.unwrap();
    let gone = await_condition(maps.clone(), &name, is_deleted(&uid));
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_job_that_is_refused_leaves_no_files_behind() {
    let cluster = Cluster::with_definitions().await;
    let path = cluster.script("priority = 99999999999\n");
    let output = cluster.run(&["submit", &path]).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("cannot create a job in namespace default"),
        "{error}"
    );
    let maps = Api::<ConfigMap>::default_namespaced(cluster.client.clone());
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn a_dry_run_prints_what_a_cluster_and_lint_take() {
    let cluster = Cluster::with_definitions().await;
    let path = cluster.script("");
    let dry = cluster.shows(&["submit", "--dry-run", &path]).await;
    let objects: Vec<Value> =
        serde_json::Deserializer::from_str(&dry).into_iter().map(Result::unwrap).collect();
    let names: Vec<&str> =
        objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["run-files", "run"]);
    assert_eq!(objects[1]["spec"]["template"]["spec"]["volumes"][1]["configMap"]["name"], json!("run-files"));
    let map: ConfigMap = serde_json::from_value(objects[0].clone()).unwrap();
    let maps = Api::<ConfigMap>::default_namespaced(cluster.client.clone());
    maps.create(&PostParams::default(), &map).await.unwrap();
    let job: HTCJob = serde_json::from_value(objects[1].clone()).unwrap();
    let jobs = Api::<HTCJob>::default_namespaced(cluster.client.clone());
    jobs.create(&PostParams::default(), &job).await.unwrap();
}

/// A job of the pool's first proc is done, its second runs; a pod says how the first ended.
#[tokio::test]
async fn what_procs_printed_and_how_they_ended() {
    let cluster = Cluster::with_pool().await;
    let run = cluster.run(&["output", "1.0"]).await;
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!((run.status.code(), run.stdout.len()), (Some(1), 0), "{said}");
    let lost = "1.0: the proc is done, with success; its pod was deleted, or its node has gone, and the proc's output went with its pod\n";
    assert!(said.starts_with(lost), "{said}");

    let jobs = Api::<HTCJob>::default_namespaced(cluster.client.clone());
    let job = jobs.get("pi").await.unwrap();
    let pods = Api::<Pod>::default_namespaced(cluster.client.clone());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "pi-0",
            "labels": {api::labels::JOB_UID: job.uid(), api::labels::JOB_NAME: "pi", api::labels::PROC: "0"},
            "annotations": {api::labels::CLAIM: "slot1_1@node1#1#1", api::labels::SLOT: "slot1_1@node1"},
            "ownerReferences": [job.controller_owner_ref(&())]},
        "spec": {"nodeName": "node1", "containers": [{"name": "main", "image": "busybox"}]},
    }))
    .unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [{"name": "main", "image": "busybox", "imageID": "",
        "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 3, "reason": "Error",
        "startedAt": "2030-01-02T03:04:05Z", "finishedAt": "2030-01-02T03:05:05Z"}}}]}});
    pods.patch_status("pi-0", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let run = cluster.run(&["output", "1.0"]).await;
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success() && !run.stdout.is_empty(), "{said}");
    assert_eq!(said, "1.0: ended with exit code 3 on node1 from 2030-01-02T03:04Z to 2030-01-02T03:05Z\n");
    let whole = String::from_utf8(cluster.run(&["output", "pi"]).await.stderr).unwrap();
    assert!(whole.contains("1, procs 1: the proc waits, and has not run yet"), "{whole}");
    for (job, error) in
        [("1.7", "has no proc 7"), ("nosuch", "no job nosuch in namespace default"), ("99", "no job 99")]
    {
        assert!(cluster.fails(&["output", job]).await.contains(error), "{job}");
    }
}
