//! The garbage collector. It deletes dependents of deleted owners, contents of deleted namespaces, and objects of
//! deleted CRDs.
//!
//! For each change the store queues the work that may follow from it ([`work_of`]), and one task does the work. Each
//! item of work reads the objects again, so it does no harm to do an item twice.

use std::sync::Arc;

use serde_json::Value;

use super::api::Api;
use super::crd;
use super::delete::{FOREGROUND, ORPHAN, Options, delete};
use super::json::{finalizers, get, is_deleting, list, meta, set, text, texts};
use super::resource::{Resource, StorageId};
use super::store::{Change, Key};

/// An item of work for the collector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Work {
    /// The object with this uid was removed and had dependents.
    OwnerGone(String),
    /// A dependent of the object with this uid was removed. The owner may have waited for this.
    DependentGone(String),
    /// This object has owners that may not exist, or it is being deleted with one of the collector's finalizers.
    Object(StorageId, Key),
    /// This namespace is being deleted, or an object in it was removed.
    Namespace(String),
    /// This CRD is being deleted.
    Definition(String),
    /// An object of this storage was removed. Its CRD may have waited for this.
    ObjectOf(StorageId),
}

/// The work that may follow from a change.
pub(super) fn work_of(id: &StorageId, key: &Key, change: &Change) -> Vec<Work> {
    let object = &change.object.value;
    let mut work = Vec::new();
    let owners = list(object, &["metadata", "ownerReferences"]);
    if change.deleted {
        work.extend(
            owners.iter().filter_map(|o| text(o, &["uid"])).map(|u| Work::DependentGone(u.to_owned())),
        );
        if !key.namespace.is_empty() {
            work.push(Work::Namespace(key.namespace.clone()));
        }
        work.push(Work::ObjectOf(id.clone()));
        return work;
    }
    let old_owners =
        change.before.as_ref().map_or(&[][..], |b| list(&b.value, &["metadata", "ownerReferences"]));
    let ours = is_deleting(object) && finalizers(object).iter().any(|f| matches!(*f, FOREGROUND | ORPHAN));
    if ours || (!owners.is_empty() && owners != old_owners) {
        work.push(Work::Object(id.clone(), key.clone()));
    }
    if is_deleting(object) {
        match text(object, &["kind"]) {
            Some("Namespace") if *id == StorageId::new("", "namespaces") => {
                work.push(Work::Namespace(key.name.clone()));
            }
            Some("CustomResourceDefinition") => work.push(Work::Definition(key.name.clone())),
            _ => {}
        }
    }
    work
}

/// Does the collector's work until the server stops.
pub(super) async fn run(api: Arc<Api>) {
    loop {
        tokio::select! {
            () = api.stop.cancelled() => return,
            () = api.store.collect.notified() => {}
        }
        for work in api.store.take_work() {
            collect(&api, &work);
            tokio::task::yield_now().await;
        }
    }
}

fn collect(api: &Api, work: &Work) {
    match work {
        Work::OwnerGone(uid) => {
            for (id, key) in api.store.dependents(uid) {
                collect_object(api, &id, &key);
            }
        }
        Work::DependentGone(uid) => {
            if let Some((id, key)) = api.store.find_uid(uid) {
                collect_object(api, &id, &key);
            }
        }
        Work::Object(id, key) => collect_object(api, id, key),
        Work::Namespace(name) => namespace(api, name),
        Work::Definition(name) => definition(api, name),
        Work::ObjectOf(id) => {
            let definition =
                api.registry.by_storage(id).and_then(|r| r.custom.as_ref().map(|c| c.crd.clone()));
            if let Some(name) = definition {
                self::definition(api, &name);
            }
        }
    }
}

/// Deletes an object whose owners no longer exist, or continues its deletion if it has a finalizer of the collector.
fn collect_object(api: &Api, id: &StorageId, key: &Key) {
    let (Some(res), Some(object)) = (api.registry.by_storage(id), api.store.get(id, key)) else { return };
    let value = &object.value;
    let uid = meta(value, "uid");
    if is_deleting(value) {
        let names = finalizers(value);
        if names.contains(&ORPHAN) {
            for (id, key) in api.store.dependents(uid) {
                remove_owner(api, &id, &key, uid);
            }
            remove_finalizer(api, &res, key, ORPHAN);
        } else if names.contains(&FOREGROUND) {
            delete_dependents(api, &res, key, uid);
        }
        return;
    }
    let owners = list(value, &["metadata", "ownerReferences"]);
    let gone: Vec<&str> =
        owners.iter().filter_map(|o| text(o, &["uid"])).filter(|u| !api.store.exists(u)).collect();
    if gone.is_empty() {
        return;
    }
    if gone.len() == owners.len() {
        // An error means that the object has been removed, or another object has its name now.
        let _ = delete(api, &res, key, &Options::background(uid));
    } else {
        for owner in gone {
            remove_owner(api, id, key, owner);
        }
    }
}

/// Deletes the dependents of an object that is deleted in the foreground. When no dependent with
/// `blockOwnerDeletion` is left, removes the object's finalizer.
fn delete_dependents(api: &Api, res: &Resource, key: &Key, uid: &str) {
    let mut blocked = false;
    for (id, key) in api.store.dependents(uid) {
        let (Some(res), Some(object)) = (api.registry.by_storage(&id), api.store.get(&id, &key)) else {
            continue;
        };
        let owners = list(&object.value, &["metadata", "ownerReferences"]);
        let blocks = owners.iter().any(|o| {
            text(o, &["uid"]) == Some(uid) && get(o, &["blockOwnerDeletion"]) == Some(&Value::Bool(true))
        });
        let others = owners.iter().filter_map(|o| text(o, &["uid"])).any(|u| u != uid && api.store.exists(u));
        if others {
            remove_owner(api, &id, &key, uid);
            continue;
        }
        if !is_deleting(&object.value) {
            let options = Options {
                propagation: Some(super::delete::Propagation::Foreground),
                ..Options::background(meta(&object.value, "uid"))
            };
            let _ = delete(api, &res, &key, &options);
        }
        blocked |= blocks && api.store.get(&id, &key).is_some();
    }
    if !blocked {
        remove_finalizer(api, res, key, FOREGROUND);
    }
}

/// Removes an owner from the object's owner references.
fn remove_owner(api: &Api, id: &StorageId, key: &Key, owner: &str) {
    let Some(res) = api.registry.by_storage(id) else { return };
    let _ = api.mutate(&res, key, |object| {
        let mut owners = list(object, &["metadata", "ownerReferences"]).to_vec();
        owners.retain(|o| text(o, &["uid"]) != Some(owner));
        set(object, &["metadata", "ownerReferences"], owners);
        Ok(true)
    });
}

fn remove_finalizer(api: &Api, res: &Resource, key: &Key, name: &str) {
    let _ = api.mutate(res, key, |object| {
        let names: Vec<&str> = finalizers(object).into_iter().filter(|f| *f != name).collect();
        let names = texts(&names);
        set(object, &["metadata", "finalizers"], names);
        Ok(true)
    });
}

/// Deletes the contents of a namespace that is being deleted, and removes the namespace once it is empty.
fn namespace(api: &Api, name: &str) {
    let Some(res) = api.registry.resolve("", "v1", "namespaces") else { return };
    let key = Key::new("", name);
    let Some(object) = api.store.get(&res.storage, &key).filter(|o| is_deleting(&o.value)) else { return };
    for (id, key) in api.store.namespace_content(name) {
        let Some(res) = api.registry.by_storage(&id) else { continue };
        let _ = delete(api, &res, &key, &Options::default());
    }
    let waits = list(&object.value, &["spec", "finalizers"]).iter().any(|f| f.as_str() != Some("kubernetes"));
    if !waits && finalizers(&object.value).is_empty() && api.store.namespace_content(name).is_empty() {
        let _ = api.erase(&res, &object, object.value.clone());
    }
}

/// Deletes the objects of a CRD that is being deleted, and removes the CRD's finalizer once no object is left.
fn definition(api: &Api, name: &str) {
    let Some(res) = api.registry.resolve("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return;
    };
    let key = Key::new("", name);
    let deleting = api.store.get(&res.storage, &key).is_some_and(|o| is_deleting(&o.value));
    if !deleting {
        return;
    }
    // A CRD without a served version has no objects.
    let Some(custom) = api.registry.of_crd(name) else {
        return remove_finalizer(api, &res, &key, crd::CLEANUP);
    };
    for object in api.store.snapshot(&custom.storage, None).0 {
        let _ = delete(api, &custom, &Key::of(&object.value), &Options::default());
    }
    if api.store.snapshot(&custom.storage, None).0.is_empty() {
        remove_finalizer(api, &res, &key, crd::CLEANUP);
    }
}
