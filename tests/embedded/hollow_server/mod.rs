//! Tests of the embedded API server with kube-rs as the client.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod collect;
mod custom;
mod kubectl;
mod load;
mod objects;
mod pods;
mod templates;
mod watches;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt};
use hollow::server::{Clock, HollowServer, RunningServer, ServerConfig};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Binding, ConfigMap, Event as CoreEvent, Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, WatchEvent, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind, PartialObjectMeta, Status};
use kube::runtime::events::{EventType, Recorder};
use kube::runtime::{wait, watcher};
use kube::{Client, Error, Resource, ResourceExt};
use serde_json::{Value, json};

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

/// Waits for `work`, and fails after a time that no healthy run needs.
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
