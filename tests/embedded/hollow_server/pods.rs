//! Pods: defaults, binding, grace, status, eviction.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::SignedDuration;

use super::*;

#[tokio::test]
async fn pods_are_bound_once_and_die_with_grace() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let made = pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    let spec = made.spec.clone().unwrap();
    assert_eq!(
        (spec.restart_policy.as_deref(), spec.termination_grace_period_seconds),
        (Some("Always"), Some(30))
    );
    assert_eq!(made.status.clone().unwrap().phase.as_deref(), Some("Pending"));

    let binding = |uid: &str| -> Binding {
        as_kind(json!({"metadata": {"name": "p", "uid": uid}, "target": {"kind": "Node", "name": "n1"}}))
    };
    let bind = async |uid: &str| {
        pods.create_subresource::<_, Status>("binding", "p", &PostParams::default(), &binding(uid)).await
    };
    assert_eq!(status(bind("other").await).code, 409);
    bind(&made.uid().unwrap()).await.unwrap();
    let twice = status(bind("").await);
    assert_eq!(
        (twice.code, twice.message.as_str()),
        (409, "Operation cannot be fulfilled on pods \"p\": pod p is already assigned to node \"n1\"")
    );
    let here = pods.list(&ListParams::default().fields("spec.nodeName=n1")).await.unwrap();
    assert_eq!(here.items.len(), 1);

    let moved = Patch::Merge(json!({"spec": {"nodeName": "n2"}}));
    assert_eq!(status(pods.patch("p", &PatchParams::default(), &moved).await).code, 422);

    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("x".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    assert_eq!(status(pods.delete("p", &wrong).await).code, 409);
    let dying = pods.delete("p", &DeleteParams::default().grace_period(20)).await.unwrap().left().unwrap();
    assert_eq!(dying.metadata.deletion_grace_period_seconds, Some(20));
    assert_eq!(dying.metadata.deletion_timestamp.as_ref().unwrap().0.to_string(), "2030-01-02T03:04:25Z");
    let longer = pods.delete("p", &DeleteParams::default().grace_period(60)).await.unwrap().left().unwrap();
    assert_eq!(longer.metadata.deletion_grace_period_seconds, Some(20), "grace may only get shorter");
    let shorter = pods.delete("p", &DeleteParams::default().grace_period(5)).await.unwrap().left().unwrap();
    assert_eq!(shorter.metadata.deletion_timestamp.as_ref().unwrap().0.to_string(), "2030-01-02T03:04:10Z");
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(status(pods.get("p").await).code, 404);

    pods.create(&PostParams::default(), &pod("q")).await.unwrap();
    pods.delete("q", &DeleteParams::default().grace_period(20)).await.unwrap();
    assert_eq!(status(pods.get("q").await).code, 404, "a pod without a node goes at once");
}

/// A server whose clock is so many seconds after [`NOW`], and the seconds.
async fn start_at() -> (RunningServer, Client, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(0));
    let read = Arc::clone(&seconds);
    let start: Timestamp = NOW.parse().unwrap();
    let clock = Clock::new(move || start + SignedDuration::from_secs(read.load(Ordering::Relaxed)));
    let (server, client) = start_with(ServerConfig { clock, ..fixed() }).await;
    (server, client, seconds)
}

/// Kubernetes' `BeforeDelete`: what a second delete of a pod that a finalizer holds does to its times.
#[tokio::test]
async fn a_shortened_grace_moves_the_deadline_to_now_at_the_earliest() {
    let (_server, client, seconds) = start_at().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut kept = pod("p");
    kept.metadata.finalizers = Some(vec!["slotwright.dev/track".to_owned()]);
    kept.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    pods.create(&PostParams::default(), &kept).await.unwrap();
    let delete = async |second: i64, grace: Option<u32>| {
        seconds.store(second, Ordering::Relaxed);
        let asks = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        let pod = pods.delete("p", &asks).await.unwrap().left().unwrap();
        let deadline = pod.metadata.deletion_timestamp.unwrap().0.to_string();
        (deadline, pod.metadata.deletion_grace_period_seconds.unwrap())
    };
    let deadline = |time: &str, grace: i64| (format!("2030-01-02T03:{time}Z"), grace);
    assert_eq!(delete(0, Some(60)).await, deadline("05:05", 60));
    assert_eq!(delete(4, Some(20)).await, deadline("04:25", 20), "counted from the first delete");
    assert_eq!(delete(5, Some(20)).await, deadline("04:25", 20), "no shorter grace");
    assert_eq!(delete(5, Some(90)).await, deadline("04:25", 20), "a longer grace changes nothing");
    assert_eq!(delete(5, None).await, deadline("04:25", 20), "no grace of its own");
    assert_eq!(delete(10, Some(3)).await, deadline("04:15", 3), "not before now");
    // The kubelet's last delete.
    assert_eq!(delete(17, Some(0)).await, deadline("04:22", 0), "now");
    assert_eq!(delete(30, Some(0)).await, deadline("04:22", 0), "once only");
    let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("p", &PatchParams::default(), &let_go).await.unwrap();
    assert_eq!(status(pods.get("p").await).code, 404, "nothing holds it any more");
}

#[tokio::test]
async fn finalizers_keep_pods_after_their_grace_period() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut kept = pod("p");
    kept.metadata.finalizers = Some(vec!["slotwright.dev/track".to_owned()]);
    kept.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    pods.create(&PostParams::default(), &kept).await.unwrap();
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    let dying = pods.get("p").await.unwrap();
    assert!(dying.metadata.deletion_timestamp.is_some());
    let more = Patch::Merge(json!({"metadata": {"finalizers": ["slotwright.dev/track", "a.io/b"]}}));
    assert_eq!(status(pods.patch("p", &PatchParams::default(), &more).await).code, 422);
    pods.patch("p", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    assert_eq!(status(pods.get("p").await).code, 404);
}

#[tokio::test]
async fn pod_and_node_status_are_written_apart() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let mut given = pod("p");
    given.status = as_kind(json!({"phase": "Running"}));
    let made = pods.create(&PostParams::default(), &given).await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    let running = Patch::Strategic(json!({"status": {"phase": "Running"}, "spec": {"nodeName": "x"}}));
    let changed = pods.patch_status("p", &PatchParams::default(), &running).await.unwrap();
    assert_eq!(changed.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(changed.spec.unwrap().node_name, None);
    let nodes: Api<Node> = Api::all(client);
    let node: Node = as_kind(json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}));
    let node = nodes.create(&PostParams::default(), &node).await.unwrap();
    assert!(node.status.unwrap().capacity.is_some(), "a node registers with its status");
}

#[tokio::test]
async fn bad_pods_are_refused_with_the_field() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let cases = [
        (json!({"containers": []}), "spec.containers"),
        (
            json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Sometimes"}),
            "spec.restartPolicy",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}),
            "spec.containers[0].resources.requests[cpu]",
        ),
    ];
    for (spec, field) in cases {
        let pod: Pod = as_kind(json!({"metadata": {"name": "p"}, "spec": spec}));
        let refused = status(pods.create(&PostParams::default(), &pod).await);
        assert_eq!(refused.code, 422);
        assert_eq!(refused.details.unwrap().causes[0].field, field);
    }
}

#[tokio::test]
async fn evictions_respect_budgets() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let budgets: Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> = Api::namespaced(client, "default");
    for name in ["p", "q"] {
        let mut labeled = pod(name);
        labeled.labels_mut().insert("app".to_owned(), "a".to_owned());
        pods.create(&PostParams::default(), &labeled).await.unwrap();
        let ready = Patch::Merge(json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}}));
        pods.patch_status(name, &PatchParams::default(), &ready).await.unwrap();
    }
    let budget = as_kind(json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "a"}}}}));
    budgets.create(&PostParams::default(), &budget).await.unwrap();
    pods.evict("p", &EvictParams::default()).await.unwrap();
    let budget: k8s_openapi::api::policy::v1::PodDisruptionBudget =
        as_kind(json!({"spec": {"minAvailable": 1}}));
    budgets.patch("b", &PatchParams::default(), &Patch::Merge(&budget)).await.unwrap();
    let refused = status(pods.evict("q", &EvictParams::default()).await);
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
}

/// The reason of `DisruptionTarget` is whoever wrote last; since when it is true stays.
#[tokio::test]
async fn an_eviction_says_so_by_a_condition_that_others_may_have_written_before() {
    let (_server, client, seconds) = start_at().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut kept = pod("p");
    kept.metadata.finalizers = Some(vec!["slotwright.dev/track".to_owned()]);
    kept.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    pods.create(&PostParams::default(), &kept).await.unwrap();
    let since = "2030-01-02T03:00:00Z";
    let others = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting", "lastTransitionTime": since});
    let status = Patch::Strategic(json!({"status": {"phase": "Running", "conditions": [others]}}));
    pods.patch_status("p", &PatchParams::default(), &status).await.unwrap();
    seconds.store(7, Ordering::Relaxed);
    pods.evict("p", &EvictParams::default()).await.unwrap();
    let found = pods.get("p").await.unwrap();
    assert!(found.metadata.deletion_timestamp.is_some());
    let told = json!(found.status.unwrap().conditions.unwrap());
    let expected = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": since}]);
    assert_eq!(told, expected);
}

#[tokio::test]
async fn numbers_are_quantities() {
    let (_server, client) = start().await;
    let body = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}]}});
    let request =
        http::Request::post("/api/v1/namespaces/default/pods").header("content-type", "application/json");
    let pod: Pod = client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
    let resources = pod.spec.unwrap().containers[0].resources.clone().unwrap();
    assert_eq!(resources.requests.unwrap()["nvidia.com/gpu"].0, "1");
}
