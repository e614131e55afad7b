//! The state of one server and the small writes that all rooms share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::config::ServerConfig;
use super::counts::Counts;
use super::error::ApiError;
use super::ids::Ids;
use super::json::{finalizers, int, is_deleting};
use super::params::Params;
use super::registry::Registry;
use super::resource::Resource;
use super::store::{Key, Object, Stale, Store};

/// How often a write is tried again after somebody else wrote first.
pub(super) const RETRIES: usize = 64;

/// Everything one server holds.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) store: Store,
    pub(super) registry: Registry,
    pub(super) ids: Ids,
    pub(super) counts: Counts,
    pub(super) config: ServerConfig,
    pub(super) stop: CancellationToken,
    /// Counts the rounds of bookmarks.
    pub(super) bookmarks: watch::Sender<u64>,
    /// Names of the events, oldest first.
    events: Mutex<VecDeque<Key>>,
}

/// One request to one resource: what the handlers need beside the object.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) res: Arc<Resource>,
    pub(super) params: Params,
    /// Who owns the fields that this call writes.
    pub(super) manager: String,
    pub(super) now: Timestamp,
    /// What the client is told in Warning headers.
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
            config,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// The object, or 404.
    pub(super) fn fetch(&self, res: &Resource, key: &Key) -> Result<Arc<Object>, ApiError> {
        self.store.get(&res.storage, key).ok_or_else(|| ApiError::not_found(res, &key.name))
    }

    /// Stores a new object.
    pub(super) fn insert(&self, res: &Resource, value: Value) -> Result<Arc<Object>, Stale> {
        let object = self.store.put(&res.storage, None, value)?;
        self.after(res, &object, false);
        if res.custom.is_none() && res.kind == "Event" {
            self.forget_events(res, Key::of(&object.value));
        }
        Ok(object)
    }

    /// Takes note of a new event, and removes the oldest when there are too many.
    fn forget_events(&self, res: &Resource, new: Key) {
        let oldest = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.push_back(new);
            if events.len() > self.config.max_events { events.pop_front() } else { None }
        };
        if let Some(old) = oldest.and_then(|key| self.store.get(&res.storage, &key)) {
            // Whoever changes or deletes it at this moment may keep it.
            let _ = self.erase(res, &old, old.value.clone());
        }
    }

    /// Stores the next state of an object, or removes it when that state was all that a deletion waited for.
    pub(super) fn commit(&self, res: &Resource, old: &Object, new: Value) -> Result<Arc<Object>, Stale> {
        let key = Key::of(&old.value);
        let deleted = waited_for(&old.value, &new);
        let object = if deleted {
            self.store.remove(&res.storage, &key, old.version, new)?
        } else {
            self.store.put(&res.storage, Some(old.version), new)?
        };
        self.after(res, &object, deleted);
        Ok(object)
    }

    /// Removes an object; watchers see `last`.
    pub(super) fn erase(&self, res: &Resource, old: &Object, last: Value) -> Result<Arc<Object>, Stale> {
        let object = self.store.remove(&res.storage, &Key::of(&old.value), old.version, last)?;
        self.after(res, &object, true);
        Ok(object)
    }

    /// Reads, changes, writes, again when somebody else wrote in between; `change` says whether to write.
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

    /// A changed CRD changes what is served.
    fn after(&self, res: &Resource, object: &Object, deleted: bool) {
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

/// True when the update took the last finalizer from an object whose deletion waited for nothing else.
fn waited_for(old: &Value, new: &Value) -> bool {
    // The collector alone removes a namespace, when nothing is left in it.
    let held = super::json::text(new, &["kind"]) == Some("Namespace") && super::strategy::namespace_held(new);
    is_deleting(new)
        && !held
        && finalizers(new).is_empty()
        && !finalizers(old).is_empty()
        && int(new, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0
}
