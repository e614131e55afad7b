//! The embedded API server as kube-rs sees it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Binding, ConfigMap, Event as CoreEvent, Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, WatchEvent, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind, PartialObjectMeta, Status};
use kube::runtime::{wait, watcher};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};
use slotwright::hollow::server::{Clock, HollowServer, RunningServer, ServerConfig};

const NOW: &str = "2030-01-02T03:04:05Z";

fn fixed() -> ServerConfig {
    let now: Timestamp = NOW.parse().unwrap();
    ServerConfig { clock: Clock::new(move || now), bookmarks: None, seed: Some(7), ..ServerConfig::default() }
}

async fn start_with(config: ServerConfig) -> (RunningServer, Client) {
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), config).await.unwrap();
    let client = Client::try_from(server.kube_config().unwrap()).unwrap();
    (server, client)
}

async fn start() -> (RunningServer, Client) {
    start_with(fixed()).await
}

/// What must come within a time that no healthy run needs.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("nothing came")
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> S::Item {
    soon(stream.next()).await.expect("the stream ended")
}

fn as_kind<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn map(name: &str, value: &str) -> ConfigMap {
    as_kind(json!({"metadata": {"name": name, "labels": {"v": value}}, "data": {"v": value}}))
}

fn pod(name: &str) -> Pod {
    as_kind(json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}))
}

fn status<T: std::fmt::Debug>(result: Result<T, Error>) -> Box<Status> {
    match result {
        Err(Error::Api(status)) => status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn widgets_crd() -> CustomResourceDefinition {
    as_kind(json!({
        "metadata": {"name": "widgets.test.dev"},
        "spec": {
            "group": "test.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["things"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["color"], "properties": {
                        "color": {"type": "string", "enum": ["red", "green"]},
                        "replicas": {"type": "integer", "default": 1, "minimum": 0}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}},
            }]
        }
    }))
}

async fn widgets(client: &Client) -> Api<DynamicObject> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &widgets_crd()).await.unwrap();
    let established = wait::await_condition(crds, "widgets.test.dev", wait::conditions::is_crd_established());
    soon(established).await.unwrap();
    Api::namespaced_with(client.clone(), "default", &widget_resource())
}

fn widget_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("test.dev", "v1", "Widget"), "widgets")
}

fn widget(name: &str, spec: &Value) -> DynamicObject {
    as_kind(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}))
}

#[tokio::test]
async fn objects_are_created_read_replaced_and_deleted() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let made = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    assert_eq!(made.namespace().as_deref(), Some("default"));
    assert_eq!(made.uid().map(|u| u.len()), Some(36));
    assert_eq!(made.creation_timestamp().map(|t| t.0.to_string()).as_deref(), Some(NOW));

    let again = status(maps.create(&PostParams::default(), &map("a", "1")).await);
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(again.message, r#"configmaps "a" already exists"#);

    let same = maps.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(
        same.resource_version(),
        made.resource_version(),
        "a write that changes nothing stores nothing"
    );
    let mut other = made.clone();
    other.data = Some(BTreeMap::from([("v".to_owned(), "2".to_owned())]));
    let other = maps.replace("a", &PostParams::default(), &other).await.unwrap();
    assert_ne!(other.resource_version(), made.resource_version());

    let stale = status(maps.replace("a", &PostParams::default(), &made).await);
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        stale.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    let gone = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(gone.right().is_some_and(|s| s.status == Some(kube::core::response::StatusSummary::Success)));
    let missing = status(maps.get("a").await);
    assert_eq!((missing.code, missing.message.as_str()), (404, r#"configmaps "a" not found"#));
}

#[tokio::test]
async fn names_are_generated_and_checked() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let stem: ConfigMap = as_kind(json!({"metadata": {"generateName": "g-"}}));
    let (a, b) = (
        maps.create(&PostParams::default(), &stem).await.unwrap(),
        maps.create(&PostParams::default(), &stem).await.unwrap(),
    );
    assert!(a.name_any().starts_with("g-") && a.name_any().len() == 7 && a.name_any() != b.name_any());
    let bad = status(maps.create(&PostParams::default(), &map("Bad_Name", "1")).await);
    assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
    assert!(bad.message.starts_with("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain"), "{}", bad.message);
    assert_eq!(bad.details.unwrap().causes[0].field, "metadata.name");
    let nowhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let missing = status(nowhere.create(&PostParams::default(), &map("a", "1")).await);
    assert_eq!((missing.code, missing.message.as_str()), (404, r#"namespaces "nowhere" not found"#));
}

#[tokio::test]
async fn patches_and_conflicts() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"w": "2", "v": null}}));
    let merged = maps.patch("a", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(merged.data, Some(BTreeMap::from([("w".to_owned(), "2".to_owned())])));
    let stale = Patch::Merge(json!({"metadata": {"resourceVersion": "1"}, "data": {"w": "3"}}));
    assert_eq!(status(maps.patch("a", &PatchParams::default(), &stale).await).code, 409);
    let missing = status(maps.patch("b", &PatchParams::default(), &merge).await);
    assert_eq!(missing.code, 404);
    let applied = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}}));
    let made = maps.patch("c", &PatchParams::apply("me"), &applied).await.unwrap();
    assert_eq!(made.data, Some(BTreeMap::from([("x".to_owned(), "1".to_owned())])));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &map("dry", "1")).await.unwrap();
    assert_eq!(status(maps.get("dry").await).code, 404);
}

#[tokio::test]
async fn lists_select_and_page_consistently() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for i in 0..7 {
        let name = format!("m{i}");
        maps.create(&PostParams::default(), &map(&name, if i % 2 == 0 { "even" } else { "odd" }))
            .await
            .unwrap();
    }
    let even = maps.list(&ListParams::default().labels("v in (even)")).await.unwrap();
    assert_eq!(even.items.len(), 4);
    let one = maps.list(&ListParams::default().fields("metadata.name=m3")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    let bad = status(maps.list(&ListParams::default().fields("spec.foo=1")).await);
    assert_eq!((bad.code, bad.message.as_str()), (400, "field label not supported: spec.foo"));

    let first = maps.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(4));
    // What happens between the pages is not on them.
    maps.delete("m4", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &map("m9", "odd")).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = maps.list(&ListParams::default().limit(9).continue_token(&token)).await.unwrap();
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["m3", "m4", "m5", "m6"]);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    server.compact();
    let expired = status(maps.list(&ListParams::default().continue_token(&token)).await);
    assert_eq!((expired.code, expired.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn custom_resources_are_served_defaulted_validated_and_scaled() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let made =
        api.create(&PostParams::default(), &widget("a", &json!({"color": "red", "junk": 1}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(made.metadata.generation, Some(1));

    let bad = status(api.create(&PostParams::default(), &widget("b", &json!({"color": "blue"}))).await);
    assert_eq!((bad.code, bad.reason.as_str()), (422, "Invalid"));
    assert!(
        bad.message.starts_with("Widget.test.dev \"b\" is invalid: spec.color: Unsupported value"),
        "{}",
        bad.message
    );

    let ready = Patch::Merge(json!({"status": {"replicas": 5}, "spec": {"color": "green"}}));
    let changed = api.patch_status("a", &PatchParams::default(), &ready).await.unwrap();
    assert_eq!(changed.data["spec"]["color"], "red", "a status write leaves the spec");
    assert_eq!((changed.metadata.generation, &changed.data["status"]["replicas"]), (Some(1), &json!(5)));
    let changed = api.patch("a", &PatchParams::default(), &ready).await.unwrap();
    assert_eq!(changed.data["spec"]["color"], "green");
    assert_eq!(changed.metadata.generation, Some(2));

    let scale = api
        .patch_scale("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}})))
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(api.get("a").await.unwrap().data["spec"]["replicas"], 3);
    let green = api.list(&ListParams::default().fields("spec.color=green")).await.unwrap();
    assert_eq!(green.items.len(), 1);
    let mut unversioned = widget("a", &json!({"color": "red"}));
    unversioned.metadata.resource_version = None;
    assert_eq!(status(api.replace("a", &PostParams::default(), &unversioned).await).code, 422);

    let crds: Api<CustomResourceDefinition> = Api::all(client);
    let uid = crds.get("widgets.test.dev").await.unwrap().uid().unwrap();
    crds.delete("widgets.test.dev", &DeleteParams::default()).await.unwrap();
    soon(wait::await_condition(crds, "widgets.test.dev", wait::conditions::is_deleted(&uid))).await.unwrap();
    assert_eq!(status(api.list(&ListParams::default()).await).code, 404);
}

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

#[tokio::test]
async fn finalizers_hold_pods_after_grace() {
    let (_server, client) = start().await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut held = pod("p");
    held.metadata.finalizers = Some(vec!["slotwright.dev/track".to_owned()]);
    held.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    pods.create(&PostParams::default(), &held).await.unwrap();
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

#[tokio::test]
async fn owners_take_their_dependents_along() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let owned = |name: &str, owners: &[&ConfigMap]| -> ConfigMap {
        let refs: Vec<Value> = owners
            .iter()
            .map(|o| {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": o.name_any(), "uid": o.uid(),
                "blockOwnerDeletion": true})
            })
            .collect();
        as_kind(json!({"metadata": {"name": name, "ownerReferences": refs}}))
    };
    let gone = async |object: &ConfigMap| {
        let uid = object.uid().unwrap();
        let name = object.name_any();
        soon(wait::await_condition(maps.clone(), &name, wait::conditions::is_deleted(&uid))).await.unwrap();
    };
    let create = async |object: &ConfigMap| maps.create(&PostParams::default(), object).await.unwrap();
    let (a, b) = (create(&map("a", "1")).await, create(&map("b", "1")).await);
    let child = create(&owned("child", &[&a])).await;
    let shared = create(&owned("shared", &[&a, &b])).await;
    maps.delete("a", &DeleteParams::background()).await.unwrap();
    gone(&child).await;
    let left = maps.get("shared").await.unwrap();
    assert!(left.owner_references().iter().any(|o| o.name == "b"));

    let deep = create(&owned("deep", &[&shared])).await;
    maps.delete("b", &DeleteParams::foreground()).await.unwrap();
    gone(&b).await;
    gone(&deep).await;
    assert_eq!(status(maps.get("shared").await).code, 404);

    let c = create(&map("c", "1")).await;
    create(&owned("orphan", &[&c])).await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    maps.delete("c", &orphan).await.unwrap();
    gone(&c).await;
    assert!(maps.get("orphan").await.unwrap().owner_references().is_empty());
    // An owner that never was is one that is gone.
    let stray = create(&owned("stray", &[&c])).await;
    gone(&stray).await;
}

#[tokio::test]
async fn namespaces_are_emptied_before_they_go() {
    let (_server, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces
        .create(&PostParams::default(), &as_kind(json!({"metadata": {"name": "team"}})))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "team");
    let mut held = map("held", "1");
    held.metadata.finalizers = Some(vec!["a.io/b".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    maps.create(&PostParams::default(), &map("free", "1")).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let refused = status(maps.create(&PostParams::default(), &map("late", "1")).await);
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.ends_with("in namespace team because it is being terminated"),
        "{}",
        refused.message
    );
    maps.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": []}})))
        .await
        .unwrap();
    let uid = made.uid().unwrap();
    soon(wait::await_condition(namespaces, "team", wait::conditions::is_deleted(&uid))).await.unwrap();
}

#[tokio::test]
async fn events_are_one_store_behind_two_apis() {
    let (_server, client) = start().await;
    let new: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client.clone(), "default");
    let event = as_kind(json!({"metadata": {"name": "e"}, "eventTime": "2030-01-01T00:00:00.000000Z",
        "reason": "Matched", "note": "on n1", "type": "Normal", "action": "Match", "reportingController": "c",
        "reportingInstance": "i", "regarding": {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"}}));
    new.create(&PostParams::default(), &event).await.unwrap();
    let old: Api<CoreEvent> = Api::namespaced(client, "default");
    let found = old
        .list(&ListParams::default().fields("involvedObject.uid=u,involvedObject.kind=Pod"))
        .await
        .unwrap();
    assert_eq!(found.items[0].message.as_deref(), Some("on n1"));
    let found = new.list(&ListParams::default().fields("regarding.name=p")).await.unwrap();
    assert_eq!(found.items[0].note.as_deref(), Some("on n1"));
}

#[tokio::test]
async fn leases_and_counts() {
    let (server, client) = start().await;
    let leases: Api<Lease> = Api::namespaced(client, "kube-system");
    let lease = as_kind(
        json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
        "renewTime": "2030-01-01T00:00:00.123456Z"}}),
    );
    let made: Lease = leases.create(&PostParams::default(), &lease).await.unwrap();
    leases.get("l").await.unwrap();
    assert!(made.spec.unwrap().renew_time.is_some());
    let counts = server.request_counts();
    let writes: u64 =
        counts.iter().filter(|(k, _)| k.is_write() && k.resource == "leases").map(|(_, n)| n).sum();
    assert_eq!(writes, 1);
    server.shutdown().await;
}

fn watch_all() -> WatchParams {
    WatchParams::default().timeout(290)
}

#[tokio::test]
async fn watches_follow_a_selection() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let from = server.resource_version().to_string();
    let mut events = maps.watch(&watch_all().labels("v=1"), &from).await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("other", "2")).await.unwrap();
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let relabel = |v: &str| Patch::Merge(json!({"metadata": {"labels": {"v": v}}}));
    maps.patch("a", &PatchParams::default(), &relabel("2")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &relabel("1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut kinds = Vec::new();
    let mut versions = Vec::new();
    for _ in 0..4 {
        let (kind, object) = match next(&mut events).await.unwrap() {
            WatchEvent::Added(o) => ("added", o),
            WatchEvent::Modified(o) => ("modified", o),
            WatchEvent::Deleted(o) => ("deleted", o),
            other => panic!("{other:?}"),
        };
        kinds.push(kind);
        versions.push(object.resource_version().unwrap().parse::<u64>().unwrap());
    }
    assert_eq!(kinds, ["added", "deleted", "added", "deleted"]);
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    server.send_bookmarks();
    let Ok(WatchEvent::Bookmark(mark)) = next(&mut events).await else { panic!("no bookmark") };
    assert_eq!(mark.metadata.resource_version, server.resource_version().to_string());
    server.shutdown().await;
    assert!(soon(events.next()).await.is_none(), "shutdown ends the watch");
}

#[tokio::test]
async fn old_versions_are_gone() {
    let (server, client) = start_with(ServerConfig { history: 2, ..fixed() }).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let old = server.resource_version().to_string();
    for i in 0..4 {
        maps.create(&PostParams::default(), &map(&format!("m{i}"), "1")).await.unwrap();
    }
    let mut events = maps.watch(&watch_all(), &old).await.unwrap().boxed();
    let gone = match next(&mut events).await {
        Ok(WatchEvent::Error(status)) => status,
        Err(Error::Api(status)) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
    let far = (server.resource_version() + 100).to_string();
    let error = maps.watch(&watch_all(), &far).await.map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Api(s) if s.code == 504), "{error:?}");
}

fn told(event: watcher::Event<ConfigMap>) -> String {
    match event {
        watcher::Event::Init => "init".to_owned(),
        watcher::Event::InitApply(o) => format!("init {}", o.name_any()),
        watcher::Event::InitDone => "done".to_owned(),
        watcher::Event::Apply(o) => format!("apply {}", o.name_any()),
        watcher::Event::Delete(o) => format!("delete {}", o.name_any()),
    }
}

async fn names_of_watcher(config: watcher::Config, client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let mut events = std::pin::pin!(watcher(maps.clone(), config));
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(told(next(&mut events).await.unwrap()));
    }
    maps.create(&PostParams::default(), &map("b", "1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    for _ in 0..2 {
        seen.push(told(next(&mut events).await.unwrap()));
    }
    assert_eq!(seen, ["init", "init a", "done", "apply b", "delete a"]);
    maps.delete("b", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn watchers_list_in_pages_and_as_a_stream() {
    let (_server, client) = start().await;
    names_of_watcher(watcher::Config::default().page_size(1), &client).await;
    names_of_watcher(watcher::Config::default().streaming_lists(), &client).await;
}

#[tokio::test]
async fn metadata_only() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let metas: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client, "default");
    assert_eq!(metas.get("a").await.unwrap().labels()["v"], "1");
    assert_eq!(metas.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let mut events = std::pin::pin!(watcher(metas, watcher::Config::default().streaming_lists()));
    assert!(matches!(next(&mut events).await, Ok(watcher::Event::Init)));
    let Ok(watcher::Event::InitApply(meta)) = next(&mut events).await else { panic!("no object") };
    assert_eq!(meta.name_any(), "a");
    assert!(matches!(next(&mut events).await, Ok(watcher::Event::InitDone)));
}

#[tokio::test]
async fn kube_discovers_what_is_served() {
    let (_server, client) = start().await;
    widgets(&client).await;
    let old = kube::Discovery::new(client.clone()).run().await.unwrap();
    let new = kube::Discovery::new(client).run_aggregated().await.unwrap();
    for discovery in [old, new] {
        let (resource, capabilities) =
            discovery.resolve_gvk(&GroupVersionKind::gvk("test.dev", "v1", "Widget")).unwrap();
        assert_eq!(resource.plural, "widgets");
        assert!(capabilities.supports_operation("watch"));
        assert!(discovery.resolve_gvk(&GroupVersionKind::gvk("", "v1", "Pod")).is_some());
    }
}

#[tokio::test]
async fn server_side_apply_owns_fields() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let body =
        |spec: &Value| Patch::Apply(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "spec": spec}));
    let (me, other) = (PatchParams::apply("me"), PatchParams::apply("other"));
    let made = api.patch("a", &me, &body(&json!({"color": "red"}))).await.unwrap();
    assert_eq!(made.data["spec"]["replicas"], 1);
    let again = api.patch("a", &me, &body(&json!({"color": "red"}))).await.unwrap();
    assert_eq!(again.resource_version(), made.resource_version(), "nothing changed");
    let conflict = status(api.patch("a", &other, &body(&json!({"color": "green"}))).await);
    assert_eq!((conflict.code, conflict.reason.as_str()), (409, "Conflict"));
    assert!(
        conflict.message.starts_with("Apply failed with 1 conflict: conflict with \"me\""),
        "{}",
        conflict.message
    );
    assert_eq!(conflict.details.unwrap().causes[0].reason, "FieldManagerConflict");
    let forced = api.patch("a", &other.clone().force(), &body(&json!({"color": "green"}))).await.unwrap();
    assert_eq!(forced.data["spec"]["color"], "green");
    let nameless = PatchParams { field_manager: None, ..PatchParams::default() };
    assert_eq!(status(api.patch("a", &nameless, &body(&json!({"color": "red"}))).await).code, 422);

    let report =
        Patch::Apply(json!({"apiVersion": "test.dev/v1", "kind": "Widget", "status": {"replicas": 2}}));
    let reported = api.patch_status("a", &me, &report).await.unwrap();
    assert_eq!((&reported.data["status"]["replicas"], reported.metadata.generation), (&json!(2), Some(2)));
    let again = api.patch_status("a", &me, &report).await.unwrap();
    assert_eq!(again.resource_version(), reported.resource_version());
    let missing = status(api.patch_status("b", &me, &report).await);
    assert_eq!(missing.code, 404, "a status is not applied to what is not there");
}

#[tokio::test]
async fn unknown_fields_warn_or_fail() {
    let (_server, client) = start().await;
    let api = widgets(&client).await;
    let mut strict = PostParams::default();
    strict.field_manager = Some("me".to_owned());
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let uri = |strict: bool| {
        format!("/api/v1/namespaces/default/pods{}", if strict { "?fieldValidation=Strict" } else { "" })
    };
    let body = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"nodeNam": "n",
        "containers": [{"name": "c", "image": "i"}]}});
    let send = async |uri: String| {
        let request = http::Request::post(uri).header("content-type", "application/json");
        client.request::<Pod>(request.body(body.to_string().into_bytes()).unwrap()).await
    };
    let refused = status(send(uri(true)).await);
    assert_eq!(refused.code, 400);
    assert!(refused.message.contains("unknown field \"spec.nodeNam\""), "{}", refused.message);
    send(uri(false)).await.unwrap();
    assert_eq!(pods.get("p").await.unwrap().spec.unwrap().node_name, None);
    api.create(&strict, &widget("a", &json!({"color": "red", "junk": 1}))).await.unwrap();
}
