//! The embedded API server under many writers and watchers at once.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use hollow::server::{HollowServer, ServerConfig};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{NotUsed, Object};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};

const PODS: usize = 200;
const WATCHERS: usize = 12;

type EventsByPod = BTreeMap<String, Vec<(&'static str, u64)>>;

/// Watches pods from `version` until `total` pods have been deleted. Returns the events of each pod, in order.
async fn follow(pods: Api<Pod>, version: String, total: usize) -> EventsByPod {
    let params = WatchParams::default().timeout(290);
    let mut events = pods.watch(&params, &version).await.unwrap().boxed();
    let (mut seen, mut gone) = (EventsByPod::new(), 0);
    while gone < total {
        let (kind, pod) = match events.next().await.expect("the watch ended").unwrap() {
            WatchEvent::Added(pod) => ("added", pod),
            WatchEvent::Modified(pod) => ("modified", pod),
            WatchEvent::Deleted(pod) => ("deleted", pod),
            other => panic!("{other:?}"),
        };
        gone += usize::from(kind == "deleted");
        let version = pod.resource_version().unwrap().parse().unwrap();
        seen.entry(pod.name_any()).or_default().push((kind, version));
    }
    seen
}

async fn life(pods: &Api<Pod>, name: &str) -> Result<(), Error> {
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"nodeName": "n1",
        "containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}]}}))
    .unwrap();
    pods.create(&PostParams::default(), &pod).await?;
    for phase in ["Running", "Succeeded"] {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        pods.patch_status(name, &PatchParams::default(), &patch).await?;
    }
    pods.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_every_change_in_order() {
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), ServerConfig::default()).await.unwrap();
    let client = Client::try_from(server.kube_config().unwrap()).unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let version = server.resource_version().to_string();
    let watchers: Vec<_> =
        (0..WATCHERS).map(|_| tokio::spawn(follow(pods.clone(), version.clone(), PODS))).collect();
    let start = Instant::now();
    let lives = stream::iter((0..PODS).map(|i| format!("p{i}")).map(|name| {
        let pods = pods.clone();
        async move { life(&pods, &name).await }
    }));
    lives.buffer_unordered(16).try_collect::<Vec<()>>().await.unwrap();
    let mut all = Vec::new();
    for watcher in watchers {
        all.push(watcher.await.unwrap());
    }
    println!("{} writes seen by {WATCHERS} watchers in {:?}", PODS * 4, start.elapsed());
    for seen in &all {
        assert_eq!(seen.len(), PODS);
        assert_eq!(seen, &all[0]);
        for story in seen.values() {
            let kinds: Vec<_> = story.iter().map(|(kind, _)| *kind).collect();
            assert_eq!(kinds, ["added", "modified", "modified", "deleted"]);
            assert!(story.is_sorted_by(|a, b| a.1 < b.1), "{story:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_increments_lose_nothing() {
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), ServerConfig::default()).await.unwrap();
    let client = Client::try_from(server.kube_config().unwrap()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let counter = serde_json::from_value(json!({"metadata": {"name": "n"}, "data": {"n": "0"}})).unwrap();
    maps.create(&PostParams::default(), &counter).await.unwrap();
    let add = async |maps: Api<ConfigMap>| {
        loop {
            let mut map = maps.get("n").await.unwrap();
            let data = map.data.as_mut().unwrap();
            let n: u64 = data["n"].parse().unwrap();
            data.insert("n".to_owned(), (n + 1).to_string());
            match maps.replace("n", &PostParams::default(), &map).await {
                Ok(_) => return,
                Err(Error::Api(status)) if status.is_conflict() => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    stream::iter(0..40).map(|_| add(maps.clone())).buffer_unordered(8).collect::<Vec<()>>().await;
    assert_eq!(maps.get("n").await.unwrap().data.unwrap()["n"], "40");
    // A patch without a version does not fail with a conflict, even if others write at the same time.
    let label = async |i: u32| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {format!("l{i}"): "x"}}}));
        maps.patch("n", &PatchParams::default(), &patch).await.unwrap();
    };
    stream::iter(0..40).map(label).buffer_unordered(8).collect::<Vec<()>>().await;
    assert_eq!(maps.get("n").await.unwrap().labels().len(), 40);
}

#[tokio::test]
async fn bodies_are_bounded_and_garbage_is_refused() {
    let config = ServerConfig { body_limit: 20_000, ..ServerConfig::default() };
    let server = HollowServer::start(([127, 0, 0, 1], 0).into(), config).await.unwrap();
    let client = Client::try_from(server.kube_config().unwrap()).unwrap();
    let send = async |method: &str, path: &str, media: &str, body: Vec<u8>| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", media);
        match client.request::<Object<Value, NotUsed>>(request.body(body).unwrap()).await {
            Err(Error::Api(status)) => status.code,
            other => panic!("{other:?}"),
        }
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let json = "application/json";
    assert_eq!(send("POST", maps, json, vec![b' '; 20_001]).await, 413);
    assert_eq!(send("POST", maps, json, b"{".to_vec()).await, 400);
    assert_eq!(send("POST", maps, json, b"[]".to_vec()).await, 400);
    assert_eq!(send("POST", maps, json, br#"{"kind":"Pod","apiVersion":"v1"}"#.to_vec()).await, 400);
    assert_eq!(send("POST", maps, json, br#"{"metadata":[]}"#.to_vec()).await, 400);
    assert_eq!(send("POST", maps, json, "[".repeat(19_000).into_bytes()).await, 400);
    assert_eq!(send("POST", maps, "application/yaml", b"\t{".to_vec()).await, 400);
    assert_eq!(send("POST", maps, "application/x-protobuf", vec![]).await, 415);
    assert_eq!(send("POST", maps, "application/vnd.kubernetes.protobuf", b"k8s\0\x09".to_vec()).await, 400);
    assert_eq!(send("PATCH", &format!("{maps}/a"), "text/plain", vec![]).await, 415);
    assert_eq!(send("PUT", maps, json, vec![]).await, 405);
    assert_eq!(send("GET", "/api/v1/nothings", json, vec![]).await, 404);
    assert_eq!(send("GET", "/api/v1/namespaces/default/nodes", json, vec![]).await, 404);
    assert_eq!(send("GET", "/api/v1/pods?limit=x", json, vec![]).await, 400);
}
