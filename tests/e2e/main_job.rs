//! The life of a job, from `kubectl apply` to finished pods.

use api::{ConcurrencyLimit, Submitter, labels};
use hollow::nodes::shapes;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::harness::{Cluster, condition, eventually, job, story};

const GIB: i64 = 1 << 30;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_end_and_everything_is_returned() {
    let cluster = Cluster::start(shapes::uniform(2, 4000, 8 * GIB)).await;
    cluster.namespace("main-alice").await;
    cluster
        .apply(job("main-alice", "sweep", 12, "300ms", |o| o["spec"]["requests"] = json!({"cpus": 2})))
        .await;

    let done = cluster.completed("main-alice", "sweep").await;
    let status = done.status.clone().unwrap();
    assert_eq!((status.completed, status.failed, status.idle, status.running), (12, 0, 0, 0));
    assert_eq!((status.completed_procs.as_str(), status.summary.as_deref()), ("0-11", Some("Completed")));
    assert_eq!(status.submitter.as_deref(), Some("main-alice"));
    assert_eq!(condition(&done, "Complete").unwrap().1, "AllSucceeded");

    let pods: Vec<Pod> = cluster.pods("main-alice").list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), 12, "pods are kept for their logs");
    eventually("every pod is untracked", || async {
        let pods = cluster.pods("main-alice").list(&ListParams::default()).await.unwrap();
        pods.iter().all(|pod| pod.finalizers().is_empty())
    })
    .await;
    for pod in &pods {
        let requests = pod.spec.as_ref().unwrap().containers[0].resources.clone().unwrap();
        assert_eq!(requests.requests, requests.limits);
        assert_eq!(requests.requests.unwrap()["cpu"].0, "2");
        assert!(pod.labels().contains_key(labels::PROC) && pod.annotations().contains_key(labels::SLOT));
        assert_eq!(pod.owner_references()[0].name, "sweep");
    }
    eventually("every slot is returned", || async {
        cluster.slots().list(&ListParams::default()).await.unwrap().items.is_empty()
            && cluster.pslots().list(&ListParams::default()).await.unwrap().iter().all(|pslot| {
                pslot
                    .status
                    .as_ref()
                    .is_some_and(|s| s.dynamic_slots == 0 && s.available == s.total && s.total.cpus == 4)
            })
    })
    .await;
    let submitters: kube::Api<Submitter> = kube::Api::all(cluster.client.clone());
    eventually("the submitter was charged", || async {
        let status = submitters.get("main-alice").await.unwrap().status.unwrap_or_default();
        status.weighted_accumulated_usage > 2.0 && status.resources_used == 0 && status.real_priority >= 0.5
    })
    .await;
    let story = story(&cluster, "main-alice", "sweep").await;
    assert!(story.contains_key("Matched"), "{story:?}");
    assert_eq!(cluster.watch.report().violations(), []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_a_native_sidecar_runs_within_its_slots() {
    let cluster = Cluster::start(shapes::uniform(1, 2000, 8 * GIB)).await;
    cluster.namespace("main-sidecar").await;
    let sidecar = json!([{"name": "proxy", "image": "busybox", "restartPolicy": "Always",
                          "resources": {"requests": {"cpu": "250m", "memory": "24Mi"}}}]);
    cluster
        .apply(job("main-sidecar", "meshed", 2, "300ms", |o| {
            o["spec"]["requests"] = json!({"cpus": 1, "memory": "1Gi"});
            o["spec"]["template"]["spec"]["initContainers"] = sidecar;
        }))
        .await;

    let status = cluster.completed("main-sidecar", "meshed").await.status.unwrap();
    assert_eq!((status.completed, status.failed), (2, 0));
    for pod in cluster.pods("main-sidecar").list(&ListParams::default()).await.unwrap() {
        let main = pod.spec.unwrap().containers[0].resources.clone().unwrap().requests.unwrap();
        assert_eq!((main["cpu"].0.as_str(), main["memory"].0.as_str()), ("750m", "1000Mi"));
    }
    assert_eq!(cluster.watch.report().violations(), []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_says_why_the_api_server_refuses_its_pods() {
    let cluster = Cluster::start(shapes::uniform(1, 2000, 8 * GIB)).await;
    cluster.namespace("main-refused").await;
    cluster.quick_cycles().await;
    // Nothing but the API server looks at the letters of a container's name.
    let names = |side: &str| {
        let beside = json!({"name": side, "image": "busybox", "resources": {"limits": {"cpu": "10m", "memory": "8Mi"}}});
        let containers = json!([{"name": "main", "image": "busybox"}, beside]);
        job("main-refused", "named", 2, "100ms", |o| o["spec"]["template"]["spec"]["containers"] = containers)
    };
    cluster.apply(names("Side_1")).await;
    let refused = cluster
        .job_when("main-refused", "named", "is refused", |job| condition(job, "PodRefused").is_some())
        .await;
    let (status, reason, message) = condition(&refused, "PodRefused").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "RefusedByServer"));
    assert!(message.contains("spec.containers[1].name: Invalid value"), "{message}");

    cluster.apply(names("side")).await;
    let done = cluster.completed("main-refused", "named").await;
    assert_eq!(condition(&done, "PodRefused"), None);
    assert_eq!(condition(&done, "Matchable").unwrap().1, "NoneWaits");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn procs_that_fail_are_done_and_named() {
    let cluster = Cluster::start(shapes::uniform(1, 4000, 8 * GIB)).await;
    cluster.namespace("main-fail").await;
    cluster
        .apply(job("main-fail", "crash", 2, "100ms", |o| {
            o["spec"]["template"]["metadata"]["annotations"]["hollow.slotwright.dev/exit-code"] = json!("3");
        }))
        .await;
    let done = cluster.completed("main-fail", "crash").await;
    let status = done.status.clone().unwrap();
    assert_eq!((status.completed, status.failed, status.failed_procs.as_str()), (0, 2, "0-1"));
    assert_eq!(status.summary.as_deref(), Some("Failed"));
    assert_eq!(condition(&done, "Complete").unwrap().1, "SomeFailed");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_image_cannot_be_had_is_held_and_runs_once_it_is_edited() {
    let cluster = Cluster::start(shapes::uniform(1, 1000, 8 * GIB)).await;
    cluster.namespace("main-held").await;
    cluster.quick_cycles().await;
    let start_error = "hollow.slotwright.dev/start-error";
    let typo = "InvalidImageName: Failed to apply default image tag \"pi:v1:v2\": couldn't parse image name";
    cluster
        .apply(job("main-held", "pi", 2, "100ms", |o| {
            o["spec"]["template"]["metadata"]["annotations"][start_error] = json!(typo);
        }))
        .await;
    let held = cluster
        .job_when("main-held", "pi", "is held", |job| {
            job.status.as_ref().is_some_and(|s| s.held_procs.first().is_some_and(|held| held.procs == "0-1"))
        })
        .await;
    let status = held.status.clone().unwrap();
    assert_eq!((status.summary.as_deref(), status.held_procs[0].code), (Some("Held"), 35));
    assert_eq!(status.held_procs[0].reason, format!("container main cannot start: {typo}"));
    assert_eq!(condition(&held, "Held").unwrap().1, "InvalidDockerImage");
    eventually("pods and slots are gone", || async {
        cluster.pods("main-held").list(&ListParams::default()).await.unwrap().items.is_empty()
            && cluster.slots().list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    cluster.apply(job("main-held", "pi", 2, "100ms", |_| {})).await;
    let done = cluster.completed("main-held", "pi").await.status.unwrap();
    assert_eq!((done.completed, done.held_procs.len()), (2, 0));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_job_ends_its_pods_and_frees_its_slots() {
    let cluster = Cluster::start(shapes::uniform(1, 4000, 8 * GIB)).await;
    cluster.namespace("main-rm").await;
    cluster.apply(job("main-rm", "long", 8, "10m", |_| {})).await;
    cluster
        .job_when("main-rm", "long", "runs", |job| job.status.as_ref().is_some_and(|s| s.running == 4))
        .await;
    eventually("pods exist", || async {
        cluster.pods("main-rm").list(&ListParams::default()).await.unwrap().items.len() == 4
    })
    .await;
    cluster.jobs("main-rm").delete("long", &DeleteParams::background()).await.unwrap();
    eventually("job, pods and slots are gone", || async {
        cluster.jobs("main-rm").get_opt("long").await.unwrap().is_none()
            && cluster.pods("main-rm").list(&ListParams::default()).await.unwrap().items.is_empty()
            && cluster.slots().list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_stays_within_its_quota() {
    let cluster = Cluster::start(shapes::uniform(2, 4000, 8 * GIB)).await;
    cluster.quick_cycles().await;
    cluster.namespace("main-group").await;
    cluster
        .apply(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "GroupQuota", "metadata": {"name": "physics"}, "spec": {"quota": 3, "owners": ["*"]}}))
        .await;
    cluster
        .apply(job("main-group", "higgs", 9, "300ms", |o| o["spec"]["accountingGroup"] = json!("physics")))
        .await;
    let done = cluster.completed("main-group", "higgs").await;
    assert_eq!(done.status.unwrap().submitter.as_deref(), Some("physics.main-group"));
    // Nobody else used the pool, so all running pods belonged to the group.
    let most = cluster.watch.report().totals().peak_running;
    assert!((1..=3).contains(&most), "{most} procs at once");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrency_limit_of_two_runs_two_at_once() {
    let cluster = Cluster::start(shapes::uniform(2, 4000, 8 * GIB)).await;
    cluster.quick_cycles().await;
    cluster.namespace("main-limit").await;
    cluster
        .apply(json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "ConcurrencyLimit", "metadata": {"name": "xsw"}, "spec": {"limit": 2}}))
        .await;
    eventually("the limit is in force", || async {
        let limits: kube::Api<ConcurrencyLimit> = kube::Api::all(cluster.client.clone());
        let status = limits.get("xsw").await.unwrap().status.unwrap_or_default();
        status.conditions.iter().any(|condition| condition.reason == "Accepted")
    })
    .await;
    cluster
        .apply(job("main-limit", "licensed", 6, "300ms", |o| o["spec"]["concurrencyLimits"] = json!(["XSW"])))
        .await;
    cluster.completed("main-limit", "licensed").await;
    let most = cluster.watch.report().totals().peak_running;
    assert_eq!(most, 2, "procs at once");
    eventually("no claim counts against the limit", || async {
        let limits: kube::Api<ConcurrencyLimit> = kube::Api::all(cluster.client.clone());
        limits.get("xsw").await.unwrap().status.is_some_and(|status| status.claims == 0)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gpus_are_given_to_those_who_ask() {
    use hollow::nodes::{NodeShape, shape};
    let nodes = vec![
        NodeShape::new("gpu-1", 8000, 16 * GIB).gpu(shape::A100, 2),
        NodeShape::new("plain-1", 8000, 16 * GIB),
    ];
    let cluster = Cluster::start(nodes).await;
    cluster.quick_cycles().await;
    cluster.namespace("main-gpu").await;
    cluster.apply(job("main-gpu", "train", 4, "200ms", |o| o["spec"]["requests"] = json!({"gpus": 1}))).await;
    cluster.completed("main-gpu", "train").await;
    for pod in cluster.pods("main-gpu").list(&ListParams::default()).await.unwrap() {
        let spec = pod.spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("gpu-1"));
        assert_eq!(
            spec.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap()["nvidia.com/gpu"].0,
            "1"
        );
    }
    cluster.stop().await;
}
