//! The state of one server, and the basic writes that all request handlers use.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::User;
use super::config::ServerConfig;
use super::counts::Counts;
use super::error::ApiError;
use super::ids::Ids;
use super::json::{finalizers, int, is_deleting};
use super::params::Params;
use super::registry::Registry;
use super::resource::Resource;
use super::store::{Key, Object, Stale, Store};

/// How often a write is tried when others write the same object at the same time.
pub(super) const RETRIES: usize = 64;

/// The state of one server.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) store: Store,
    pub(super) registry: Registry,
    pub(super) ids: Ids,
    pub(super) counts: Counts,
    pub(super) config: ServerConfig,
    pub(super) stop: CancellationToken,
    /// How often bookmarks were sent. Each change of this number makes every watch send one.
    pub(super) bookmarks: watch::Sender<u64>,
    /// The keys of all Event objects, oldest first.
    events: Mutex<VecDeque<Key>>,
    /// The namespaces whose webhook for new pods never answers.
    hanging: Mutex<BTreeSet<String>>,
}

/// One request to one resource.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) res: Arc<Resource>,
    pub(super) params: Params,
    /// The manager that owns the fields that this call writes.
    pub(super) manager: String,
    /// Who sends the request.
    pub(super) user: User,
    pub(super) now: Timestamp,
    /// Warnings that the client gets in Warning headers.
    pub(super) warnings: Vec<String>,
}

impl Api {
    pub(super) fn new(config: ServerConfig) -> Self {
        Self {
            store: Store::new(config.history),
            registry: Registry::new(),
            ids: Ids::new(config.seed),
            counts: Counts::default(),
            stop: CancellationToken::new(),
            bookmarks: watch::Sender::new(0),
            events: Mutex::default(),
            hanging: Mutex::default(),
            config,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Lets every later creation of a pod in this namespace hang.
    pub(super) fn hang(&self, namespace: &str) {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.to_owned());
    }

    /// Whether a new pod of this namespace is never answered.
    pub(super) fn hangs(&self, namespace: &str) -> bool {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner).contains(namespace)
    }

    /// Returns the object, or the error 404.
    pub(super) fn fetch(&self, res: &Resource, key: &Key) -> Result<Arc<Object>, ApiError> {
        self.store.get(&res.storage, key).ok_or_else(|| ApiError::not_found(res, &key.name))
    }

    /// Stores a new object.
    pub(super) fn insert(&self, res: &Resource, value: Value) -> Result<Arc<Object>, Stale> {
        let object = self.store.put(&res.storage, None, value)?;
        self.update_registry(res, &object, false);
        if res.custom.is_none() && res.kind == "Event" {
            self.record_event(res, Key::of(&object.value));
        }
        Ok(object)
    }

    /// Records a new Event object, and deletes the oldest if there are more than `max_events`.
    fn record_event(&self, res: &Resource, new: Key) {
        let oldest = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push_back(new);
            if events.len() > self.config.max_events { events.pop_front() } else { None }
        };
        if let Some(old) = oldest.and_then(|key| self.store.get(&res.storage, &key)) {
            // If somebody writes or deletes the old event at this moment, this removal fails, and the event may stay.
            let _ = self.erase(res, &old, old.value.clone());
        }
    }

    /// Stores the next state of an object; or removes the object, if its deletion has waited for this state.
    pub(super) fn commit(&self, res: &Resource, old: &Object, new: Value) -> Result<Arc<Object>, Stale> {
        let key = Key::of(&old.value);
        let deleted = completes_deletion(&old.value, &new);
        let object = if deleted {
            self.store.remove(&res.storage, &key, old.version, new)?
        } else {
            self.store.put(&res.storage, Some(old.version), new)?
        };
        self.update_registry(res, &object, deleted);
        Ok(object)
    }

    /// Removes an object; watches show `last` as its last state.
    pub(super) fn erase(&self, res: &Resource, old: &Object, last: Value) -> Result<Arc<Object>, Stale> {
        let object = self.store.remove(&res.storage, &Key::of(&old.value), old.version, last)?;
        self.update_registry(res, &object, true);
        Ok(object)
    }

    /// Reads an object, changes it and writes it; starts again if somebody else wrote it in between. Nothing is written
    /// if `change` returns false.
    pub(super) fn mutate(
        &self,
        res: &Resource,
        key: &Key,
        mut change: impl FnMut(&mut Value) -> Result<bool, ApiError>,
    ) -> Result<Arc<Object>, ApiError> {
        for _ in 0..RETRIES {
            let old = self.fetch(res, key)?;
            let mut new = old.value.clone();
            if !change(&mut new)? || new == old.value {
                return Ok(old);
            }
            if let Ok(object) = self.commit(res, &old, new) {
                return Ok(object);
            }
        }
        Err(ApiError::modified(res, &key.name))
    }

    /// If the object is a CRD, serves what the CRD says now.
    fn update_registry(&self, res: &Resource, object: &Object, deleted: bool) {
        if !res.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            return;
        }
        let name = super::json::meta(&object.value, "name");
        if deleted {
            self.registry.remove(name, object.version);
        } else {
            self.registry.serve(name, object.version, super::crd::resources(&object.value));
        }
    }
}

/// Whether the update removed the last finalizer of an object whose deletion waited for nothing else.
fn completes_deletion(old: &Value, new: &Value) -> bool {
    // Only the garbage collector removes a namespace, when nothing is left in it.
    let waits = super::json::text(new, &["kind"]) == Some("Namespace")
        && super::strategy::has_namespace_finalizers(new);
    is_deleting(new)
        && !waits
        && finalizers(new).is_empty()
        && !finalizers(old).is_empty()
        && int(new, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0
}
