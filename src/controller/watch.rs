//! Watches: streams of changes for the engine, with deletes worked out after a relist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::Pauses;
use super::cache::Kind;

/// A change of one object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// The object was made or has changed.
    Apply(K),
    /// The object is gone. This is how it was last seen.
    Gone(K),
    /// Everything that existed when the watch began has been reported.
    Synced,
    /// Whether the API server has the kind at all, told when that changes.
    Served(bool),
}

/// The objects that a watch has shown. After a relist, which sends no deletes, those that the list does not show are
/// gone.
#[derive(Debug)]
pub struct Tracker<K> {
    known: BTreeMap<String, K>,
    listed: Option<BTreeSet<String>>,
    synced: bool,
}

impl<K> Default for Tracker<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), listed: None, synced: false }
    }
}

impl<K: Resource + Clone> Tracker<K> {
    /// What a watch event means.
    pub fn observe(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = key(&object);
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                self.apply(key, object)
            }
            Event::Apply(object) => self.apply(key(&object), object),
            Event::Delete(object) => {
                self.known.remove(&key(&object));
                vec![Change::Gone(object)]
            }
            Event::InitDone => self.finish_list(),
        }
    }

    fn apply(&mut self, key: String, object: K) -> Vec<Change<K>> {
        let old = self.known.insert(key, object.clone());
        let replaced = old.filter(|old| old.meta().uid != object.meta().uid);
        // The object was deleted, and another was made under its name, while the watch was down.
        replaced.map(Change::Gone).into_iter().chain([Change::Apply(object)]).collect()
    }

    fn finish_list(&mut self) -> Vec<Change<K>> {
        let listed = self.listed.take().unwrap_or_default();
        let vanished: Vec<String> = self.known.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        let mut changes: Vec<Change<K>> =
            vanished.iter().filter_map(|key| self.known.remove(key)).map(Change::Gone).collect();
        if !std::mem::replace(&mut self.synced, true) {
            changes.push(Change::Synced);
        }
        changes
    }
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.meta().namespace.as_deref().unwrap_or_default(), object.name_any())
}

/// Whether the API server does not have the kind: its CustomResourceDefinition is not there.
fn is_missing(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.is_not_found(),
        _ => false,
    }
}

/// Watches a kind until nobody receives any more. After an error, which is logged, the watch begins anew; the pauses
/// before that grow.
pub async fn run<K, T>(
    (kind, api): (Kind, Api<K>),
    pauses: Pauses,
    out: mpsc::Sender<T>,
    wrap: impl Fn(Change<K>) -> T,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let slim = |object: &mut K| object.managed_fields_mut().clear();
    let mut tracker = Tracker::default();
    let mut served = true;
    let mut missing = pauses.clone();
    loop {
        let stream = watch(api.clone(), watcher::Config::default()).backoff(pauses.clone()).modify(slim);
        let mut stream = pin!(stream);
        // The stream ends only by this loop: for a kind that is missing, another stream begins with a list. That list tells
        // that the kind is back, which the beginning of a watch would not.
        while let Some(event) = stream.next().await {
            let back = !served && matches!(event, Ok(Event::InitDone));
            let (changes, gone) = match event {
                Ok(event) => (tracker.observe(event), false),
                Err(error) => {
                    tracing::warn!(
                        kind = kind.plural,
                        error = &error as &dyn std::error::Error,
                        "a watch failed and is resumed"
                    );
                    (Vec::new(), is_missing(&error))
                }
            };
            let turn = (back || (served && gone)).then_some(Change::Served(back));
            for change in changes.into_iter().chain(turn) {
                if out.send(wrap(change)).await.is_err() {
                    return;
                }
            }
            served = back || (served && !gone);
            if gone {
                break;
            }
        }
        tokio::time::sleep(missing.while_missing()).await;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, uid: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    fn told(changes: Vec<Change<ConfigMap>>) -> Vec<String> {
        let text = |verb: &str, o: &ConfigMap| {
            format!("{verb} {} {}", o.name_any(), o.metadata.uid.as_deref().unwrap_or(""))
        };
        changes
            .iter()
            .map(|change| match change {
                Change::Apply(o) => text("apply", o),
                Change::Gone(o) => text("gone", o),
                Change::Synced => "synced".to_owned(),
                Change::Served(there) => format!("served {there}"),
            })
            .collect()
    }

    #[test]
    fn what_vanished_during_a_disconnect_is_noticed() {
        let mut tracker = Tracker::default();
        assert!(tracker.observe(Event::Init).is_empty());
        assert_eq!(told(tracker.observe(Event::InitApply(object("a", "1")))), ["apply a 1"]);
        assert_eq!(told(tracker.observe(Event::InitApply(object("b", "2")))), ["apply b 2"]);
        assert_eq!(told(tracker.observe(Event::InitDone)), ["synced"]);
        assert_eq!(told(tracker.observe(Event::Apply(object("c", "3")))), ["apply c 3"]);
        tracker.observe(Event::Init);
        assert_eq!(told(tracker.observe(Event::InitApply(object("a", "9")))), ["gone a 1", "apply a 9"]);
        assert_eq!(told(tracker.observe(Event::InitApply(object("c", "3")))), ["apply c 3"]);
        assert_eq!(told(tracker.observe(Event::InitDone)), ["gone b 2"]);
    }

    /// The API server of a test has no such kind for the first minute.
    fn without_kind_for_a_minute() -> kube::Client {
        let began = tokio::time::Instant::now();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| async move {
            let there = began.elapsed().as_secs() >= 60;
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let (code, answer) = match (there, watches) {
                (false, _) => (
                    404,
                    serde_json::json!({"kind": "Status", "status": "Failure", "code": 404,
                    "message": "the server could not find the requested resource", "reason": "NotFound"}),
                ),
                (true, false) => {
                    (200, serde_json::json!({"metadata": {"resourceVersion": "1"}, "items": []}))
                }
                (true, true) => std::future::pending().await,
            };
            let body = kube::client::Body::from(answer.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
        });
        kube::Client::new(service, "ns")
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_missing_is_told_and_seen_soon_after_it_is_back() {
        let (out, mut seen) = mpsc::channel(10);
        let api: Api<ConfigMap> = Api::all(without_kind_for_a_minute());
        let kind = Kind { name: "ConfigMap", plural: "configmaps" };
        let began = tokio::time::Instant::now();
        let watching = tokio::spawn(run((kind, api), Pauses::new(7), out, |change| change));
        let mut next = async || told(seen.recv().await.into_iter().collect());
        assert_eq!(next().await, ["served false"]);
        assert!(began.elapsed().as_secs() < 1, "readyz says so at once");
        assert_eq!(next().await, ["synced"]);
        assert_eq!(next().await, ["served true"]);
        assert!((60..=65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        watching.abort();
    }
}
