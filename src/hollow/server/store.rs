//! The store: the objects, their versions, and the history that watches read.
//!
//! One counter numbers all changes of all storages. Each storage has an ordered map of its objects and a ring of its
//! last changes. Readers share the objects, and each object is encoded at most once. There is one lock; the store locks
//! it only for operations on maps, and never across an `await`.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::gc::Work;
use super::json::{list, meta, set, text};
use super::resource::StorageId;

/// The key of an object in its storage. The namespace of a cluster-wide object is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(super) fn of(object: &Value) -> Self {
        Self::new(meta(object, "namespace"), meta(object, "name"))
    }
}

/// One version of an object.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) value: Value,
    pub(super) version: u64,
    json: OnceLock<Bytes>,
    metadata: OnceLock<Bytes>,
}

impl Object {
    pub(super) fn new(value: Value, version: u64) -> Self {
        Self { value, version, json: OnceLock::new(), metadata: OnceLock::new() }
    }

    /// The stored form as JSON, encoded once for all readers.
    pub(super) fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }

    /// The object as `PartialObjectMetadata`, encoded once for all readers.
    pub(super) fn metadata(&self) -> Bytes {
        let encode = || {
            let meta = self.value.get("metadata").map_or_else(|| "{}".to_owned(), Value::to_string);
            Bytes::from(format!(
                r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{meta}}}"#
            ))
        };
        self.metadata.get_or_init(encode).clone()
    }
}

/// One change of one object.
#[derive(Debug)]
pub(super) struct Change {
    /// The object after the change. After a delete, this is its last state with the version of the delete.
    pub(super) object: Arc<Object>,
    /// The object before the change; `None` if the change created it.
    pub(super) before: Option<Arc<Object>>,
    pub(super) deleted: bool,
}

/// The error of a write that expected another version than the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stale;

/// The error of a read from a version that the history no longer reaches. Has the oldest version that it does reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooOld(pub(super) u64);

#[derive(Debug)]
struct Table {
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Arc<Change>>,
    /// The version of the newest change that is no longer in the ring.
    lost: u64,
    changed: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), history: VecDeque::new(), lost: 0, changed: watch::Sender::new(0) }
    }
}

#[derive(Debug, Default)]
struct Inner {
    version: u64,
    /// The version of the last [`Store::compact`]. New watches must not start from an older version.
    compacted: u64,
    tables: HashMap<StorageId, Table>,
    /// Every object by uid.
    uids: HashMap<String, (StorageId, Key)>,
    /// The dependents of each owner, by the owner's uid.
    dependents: HashMap<String, HashSet<(StorageId, Key)>>,
    /// Work that the garbage collector has not taken yet.
    work: HashSet<Work>,
}

/// All objects of one server.
#[derive(Debug)]
pub(super) struct Store {
    inner: Mutex<Inner>,
    ring: usize,
    /// Notified when there is work for the garbage collector.
    pub(super) collect: tokio::sync::Notify,
}

impl Store {
    /// An empty store that remembers `ring` changes per storage, at least one.
    pub(super) fn new(ring: usize) -> Self {
        let inner = Inner { version: 1, ..Inner::default() };
        Self { inner: Mutex::new(inner), ring: ring.max(1), collect: tokio::sync::Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of the newest change.
    pub(super) fn version(&self) -> u64 {
        self.lock().version
    }

    pub(super) fn get(&self, id: &StorageId, key: &Key) -> Option<Arc<Object>> {
        self.lock().tables.get(id)?.objects.get(key).cloned()
    }

    /// Stores `value` with a new `resourceVersion`, if the stored object has the version `expected`. `None` means that
    /// the object must not exist yet.
    pub(super) fn put(
        &self,
        id: &StorageId,
        expected: Option<u64>,
        mut value: Value,
    ) -> Result<Arc<Object>, Stale> {
        let key = Key::of(&value);
        let mut inner = self.lock();
        let before = inner.tables.get(id).and_then(|t| t.objects.get(&key)).cloned();
        if before.as_ref().map(|o| o.version) != expected {
            return Err(Stale);
        }
        inner.version += 1;
        let version = inner.version;
        set(&mut value, &["metadata", "resourceVersion"], version.to_string());
        let object = Arc::new(Object::new(value, version));
        let change = Change { object: Arc::clone(&object), before, deleted: false };
        self.record(&mut inner, id, key, change);
        Ok(object)
    }

    /// Removes the object, if it has the version `expected`. Watches show `last` as its last state.
    pub(super) fn remove(
        &self,
        id: &StorageId,
        key: &Key,
        expected: u64,
        mut last: Value,
    ) -> Result<Arc<Object>, Stale> {
        let mut inner = self.lock();
        let before = inner.tables.get(id).and_then(|t| t.objects.get(key)).cloned();
        if before.as_ref().map(|o| o.version) != Some(expected) {
            return Err(Stale);
        }
        inner.version += 1;
        let version = inner.version;
        set(&mut last, &["metadata", "resourceVersion"], version.to_string());
        let object = Arc::new(Object::new(last, version));
        let change = Change { object: Arc::clone(&object), before, deleted: true };
        self.record(&mut inner, id, key.clone(), change);
        Ok(object)
    }

    fn record(&self, inner: &mut Inner, id: &StorageId, key: Key, change: Change) {
        inner.index(id, &key, &change);
        let table = inner.tables.entry(id.clone()).or_default();
        if change.deleted {
            table.objects.remove(&key);
        } else {
            table.objects.insert(key, Arc::clone(&change.object));
        }
        let version = change.object.version;
        table.history.push_back(Arc::new(change));
        while table.history.len() > self.ring {
            if let Some(old) = table.history.pop_front() {
                table.lost = old.object.version;
            }
        }
        table.changed.send_replace(version);
        if !inner.work.is_empty() {
            self.collect.notify_one();
        }
    }

    /// Forgets the history: from now on, watches and exact lists of older versions get 410 Gone.
    pub(super) fn compact(&self) {
        let mut inner = self.lock();
        inner.compacted = inner.version;
    }

    /// All objects of a storage, or of one of its namespaces, and the current version.
    pub(super) fn snapshot(&self, id: &StorageId, namespace: Option<&str>) -> (Vec<Arc<Object>>, u64) {
        let inner = self.lock();
        let Some(table) = inner.tables.get(id) else { return (Vec::new(), inner.version) };
        let objects = match namespace {
            None => table.objects.values().cloned().collect(),
            Some(ns) => table
                .objects
                .range(Key::new(ns, "")..)
                .take_while(|(key, _)| key.namespace == ns)
                .map(|(_, object)| Arc::clone(object))
                .collect(),
        };
        (objects, inner.version)
    }

    /// All objects of a storage as they were at `version`, rebuilt from the history.
    pub(super) fn snapshot_at(&self, id: &StorageId, version: u64) -> Result<Vec<Arc<Object>>, TooOld> {
        let inner = self.lock();
        let Some(table) = inner.tables.get(id) else { return Ok(Vec::new()) };
        let oldest = table.lost.max(inner.compacted);
        if version < oldest && version != inner.version {
            return Err(TooOld(oldest));
        }
        if table.history.back().is_none_or(|last| last.object.version <= version) {
            return Ok(table.objects.values().cloned().collect());
        }
        let mut objects = table.objects.clone();
        for change in table.history.iter().rev().take_while(|c| c.object.version > version) {
            let key = Key::of(&change.object.value);
            match &change.before {
                Some(before) => objects.insert(key, Arc::clone(before)),
                None => objects.remove(&key),
            };
        }
        Ok(objects.into_values().collect())
    }

    /// A receiver that gets the version of each change of a storage.
    pub(super) fn subscribe(&self, id: &StorageId) -> watch::Receiver<u64> {
        self.lock().tables.entry(id.clone()).or_default().changed.subscribe()
    }

    /// The oldest version that a new watch may start from.
    pub(super) fn oldest(&self, id: &StorageId) -> u64 {
        let inner = self.lock();
        inner.tables.get(id).map_or(0, |t| t.lost).max(inner.compacted)
    }

    /// The changes of a storage after version `cursor`, and the current version.
    pub(super) fn since(&self, id: &StorageId, cursor: u64) -> Result<(Vec<Arc<Change>>, u64), TooOld> {
        let inner = self.lock();
        let Some(table) = inner.tables.get(id) else { return Ok((Vec::new(), inner.version)) };
        if cursor < table.lost {
            return Err(TooOld(table.lost));
        }
        let start = table.history.partition_point(|change| change.object.version <= cursor);
        Ok((table.history.iter().skip(start).cloned().collect(), inner.version))
    }

    /// Whether an object with this uid exists.
    pub(super) fn exists(&self, uid: &str) -> bool {
        self.lock().uids.contains_key(uid)
    }

    /// The storage and key of the object with this uid.
    pub(super) fn find_uid(&self, uid: &str) -> Option<(StorageId, Key)> {
        self.lock().uids.get(uid).cloned()
    }

    /// The objects that name `uid` as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(StorageId, Key)> {
        let mut found: Vec<_> =
            self.lock().dependents.get(uid).map(|s| s.iter().cloned().collect()).unwrap_or_default();
        found.sort();
        found
    }

    /// All objects of a namespace.
    pub(super) fn namespace_content(&self, namespace: &str) -> Vec<(StorageId, Key)> {
        let inner = self.lock();
        let start = Key::new(namespace, "");
        let mut found = Vec::new();
        for (id, table) in &inner.tables {
            let keys = table.objects.range(&start..).take_while(|(key, _)| key.namespace == namespace);
            found.extend(keys.map(|(key, _)| (id.clone(), key.clone())));
        }
        found.sort();
        found
    }

    /// Takes the garbage collector's queued work.
    pub(super) fn take_work(&self) -> Vec<Work> {
        let mut work: Vec<Work> = self.lock().work.drain().collect();
        work.sort();
        work
    }
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    list(object, &["metadata", "ownerReferences"]).iter().filter_map(|owner| text(owner, &["uid"]))
}

impl Inner {
    /// Updates the indexes after a change, and queues the garbage collector's work.
    fn index(&mut self, id: &StorageId, key: &Key, change: &Change) {
        let place = (id.clone(), key.clone());
        if let Some(before) = &change.before {
            for uid in owner_uids(&before.value) {
                if let Some(set) = self.dependents.get_mut(uid) {
                    set.remove(&place);
                    if set.is_empty() {
                        self.dependents.remove(uid);
                    }
                }
            }
        }
        let uid = meta(&change.object.value, "uid");
        if change.deleted {
            self.uids.remove(uid);
            if self.dependents.contains_key(uid) {
                self.work.insert(Work::OwnerGone(uid.to_owned()));
            }
        } else {
            if change.before.is_none() {
                self.uids.insert(uid.to_owned(), place.clone());
            }
            for owner in owner_uids(&change.object.value) {
                self.dependents.entry(owner.to_owned()).or_default().insert(place.clone());
            }
        }
        self.work.extend(super::gc::work_of(id, key, change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn thing(name: &str, n: u64) -> Value {
        json!({"metadata": {"name": name, "namespace": "d", "uid": name}, "n": n})
    }

    fn numbers(objects: &[Arc<Object>]) -> Vec<u64> {
        objects.iter().filter_map(|o| o.value.get("n").and_then(Value::as_u64)).collect()
    }

    #[test]
    fn history_rebuilds_old_lists_until_it_is_lost() {
        let (store, id) = (Store::new(2), StorageId::new("", "things"));
        let a = store.put(&id, None, thing("a", 1)).unwrap().version;
        let b = store.put(&id, None, thing("b", 2)).unwrap().version;
        let a2 = store.put(&id, Some(a), thing("a", 3)).unwrap().version;
        assert_eq!(numbers(&store.snapshot(&id, None).0), [3, 2]);
        assert_eq!(numbers(&store.snapshot_at(&id, b).unwrap()), [1, 2]);
        assert_eq!(numbers(&store.snapshot_at(&id, a).unwrap()), [1]);
        assert!(store.since(&id, a).is_ok_and(|(changes, now)| changes.len() == 2 && now == a2));
        store.remove(&id, &Key::new("d", "b"), b, thing("b", 2)).unwrap();
        assert_eq!(store.since(&id, a).unwrap_err(), TooOld(b));
        assert_eq!(store.snapshot_at(&id, a).map(|_| ()), Err(TooOld(b)));
        assert_eq!(numbers(&store.snapshot_at(&id, b).unwrap()), [1, 2]);
        assert_eq!(numbers(&store.snapshot(&id, Some("d")).0), [3]);
        assert!(store.snapshot(&id, Some("c")).0.is_empty());
    }

    #[test]
    fn a_stale_write_changes_nothing() {
        let (store, id) = (Store::new(9), StorageId::new("", "things"));
        let a = store.put(&id, None, thing("a", 1)).unwrap().version;
        assert_eq!(store.put(&id, None, thing("a", 2)).map(|_| ()), Err(Stale));
        assert_eq!(store.put(&id, Some(a + 1), thing("a", 2)).map(|_| ()), Err(Stale));
        let removed = store.remove(&id, &Key::new("d", "a"), a + 1, thing("a", 2));
        assert_eq!(removed.map(|_| ()), Err(Stale));
        assert_eq!(store.version(), a);
    }

    /// A random history: for each change a name, and whether the object is deleted or written.
    fn histories() -> impl Strategy<Value = Vec<(u8, bool)>> {
        proptest::collection::vec((0_u8..5, any::<bool>()), 1..40)
    }

    fn state(objects: &[Arc<Object>]) -> Vec<(String, u64)> {
        objects.iter().map(|o| (meta(&o.value, "name").to_owned(), o.version)).collect()
    }

    proptest! {
        /// For each version that the ring still reaches, the rebuilt list equals the list of that time, and the changes
        /// since then lead to the current list.
        #[test]
        fn history_leads_from_each_old_list_to_the_present(history in histories(), ring in 1_usize..50) {
            let (store, id) = (Store::new(ring), StorageId::new("", "things"));
            let mut lists = vec![(store.version(), Vec::new())];
            for (i, (name, delete)) in history.into_iter().enumerate() {
                let name = format!("n{name}");
                let key = Key::new("d", &name);
                let old = store.get(&id, &key);
                let new = thing(&name, i as u64);
                match (&old, delete) {
                    (Some(old), true) => store.remove(&id, &key, old.version, new).map(|_| ()),
                    _ => store.put(&id, old.as_ref().map(|o| o.version), new).map(|_| ()),
                }.unwrap();
                lists.push((store.version(), state(&store.snapshot(&id, None).0)));
            }
            let (_, present) = lists.last().cloned().unwrap();
            for (version, list) in lists {
                let (Ok(rebuilt), Ok((changes, _))) = (store.snapshot_at(&id, version), store.since(&id, version))
                else {
                    prop_assert!(version < store.oldest(&id));
                    continue;
                };
                prop_assert_eq!(&state(&rebuilt), &list);
                let mut replayed: BTreeMap<String, u64> = list.into_iter().collect();
                for change in changes {
                    let name = meta(&change.object.value, "name").to_owned();
                    if change.deleted {
                        replayed.remove(&name);
                    } else {
                        replayed.insert(name, change.object.version);
                    }
                }
                prop_assert_eq!(replayed.into_iter().collect::<Vec<_>>(), present.clone());
            }
        }
    }
}
