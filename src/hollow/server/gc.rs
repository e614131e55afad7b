//! The garbage collector: dependents of deleted owners, contents of deleted namespaces, objects of deleted CRDs.
//!
//! The store says what a change makes worth looking at ([`work_of`]); one task looks at it. Each item is looked at
//! afresh, so doing one twice does no harm.

use std::sync::Arc;

use serde_json::Value;

use super::api::Api;
use super::crd;
use super::delete::{FOREGROUND, ORPHAN, Options, delete};
use super::json::{finalizers, get, is_deleting, list, meta, set, text, texts};
use super::resource::{Resource, StorageId};
use super::store::{Change, Key};

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Work {
    /// The object with this uid is gone and had dependents.
    OwnerGone(String),
    /// A dependent of this uid is gone: a deletion in the foreground may go on.
    DependentGone(String),
    /// This object has owners, one of which may not exist; or it is being deleted with one of our finalizers.
    Look(StorageId, Key),
    /// This namespace is being deleted, or something in it is gone.
    Namespace(String),
    /// This CRD is being deleted.
    Definition(String),
    /// An object of this storage is gone: its CRD may wait for that.
    ObjectOf(StorageId),
}

/// What a change makes worth looking at.
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
        work.push(Work::Look(id.clone(), key.clone()));
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

/// Collects until the server stops.
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
                look(api, &id, &key);
            }
        }
        Work::DependentGone(uid) => {
            if let Some((id, key)) = api.store.find_uid(uid) {
                look(api, &id, &key);
            }
        }
        Work::Look(id, key) => look(api, id, key),
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

fn look(api: &Api, id: &StorageId, key: &Key) {
    let (Some(res), Some(object)) = (api.registry.by_storage(id), api.store.get(id, key)) else { return };
    let value = &object.value;
    let uid = meta(value, "uid");
    if is_deleting(value) {
        let names = finalizers(value);
        if names.contains(&ORPHAN) {
            for (id, key) in api.store.dependents(uid) {
                release(api, &id, &key, uid);
            }
            drop_finalizer(api, &res, key, ORPHAN);
        } else if names.contains(&FOREGROUND) {
            foreground(api, &res, key, uid);
        }
        return;
    }
    let owners = list(value, &["metadata", "ownerReferences"]);
    let gone: Vec<&str> =
        owners.iter().filter_map(|o| text(o, &["uid"])).filter(|u| !api.store.lives(u)).collect();
    if gone.is_empty() {
        return;
    }
    if gone.len() == owners.len() {
        // 404 and 409 mean that it is gone or another object by now.
        let _ = delete(api, &res, key, &Options::background(uid));
    } else {
        for owner in gone {
            release(api, id, key, owner);
        }
    }
}

/// Deletes the dependents of an object that waits for them, and lets it go when none that blocks is left.
fn foreground(api: &Api, res: &Resource, key: &Key, uid: &str) {
    let mut blocked = false;
    for (id, key) in api.store.dependents(uid) {
        let (Some(res), Some(object)) = (api.registry.by_storage(&id), api.store.get(&id, &key)) else {
            continue;
        };
        let owners = list(&object.value, &["metadata", "ownerReferences"]);
        let blocks = owners.iter().any(|o| {
            text(o, &["uid"]) == Some(uid) && get(o, &["blockOwnerDeletion"]) == Some(&Value::Bool(true))
        });
        let others = owners.iter().filter_map(|o| text(o, &["uid"])).any(|u| u != uid && api.store.lives(u));
        if others {
            release(api, &id, &key, uid);
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
        drop_finalizer(api, res, key, FOREGROUND);
    }
}

/// Takes an owner from an object.
fn release(api: &Api, id: &StorageId, key: &Key, owner: &str) {
    let Some(res) = api.registry.by_storage(id) else { return };
    let _ = api.mutate(&res, key, |object| {
        let mut owners = list(object, &["metadata", "ownerReferences"]).to_vec();
        owners.retain(|o| text(o, &["uid"]) != Some(owner));
        set(object, &["metadata", "ownerReferences"], owners);
        Ok(true)
    });
}

fn drop_finalizer(api: &Api, res: &Resource, key: &Key, name: &str) {
    let _ = api.mutate(res, key, |object| {
        let names: Vec<&str> = finalizers(object).into_iter().filter(|f| *f != name).collect();
        let names = texts(&names);
        set(object, &["metadata", "finalizers"], names);
        Ok(true)
    });
}

/// Empties a namespace that is being deleted and removes it once nothing is in it.
fn namespace(api: &Api, name: &str) {
    let Some(res) = api.registry.resolve("", "v1", "namespaces") else { return };
    let key = Key::new("", name);
    let Some(object) = api.store.get(&res.storage, &key).filter(|o| is_deleting(&o.value)) else { return };
    for (id, key) in api.store.namespace_content(name) {
        let Some(res) = api.registry.by_storage(&id) else { continue };
        let _ = delete(api, &res, &key, &Options::default());
    }
    let held = list(&object.value, &["spec", "finalizers"]).iter().any(|f| f.as_str() != Some("kubernetes"));
    if !held && finalizers(&object.value).is_empty() && api.store.namespace_content(name).is_empty() {
        let _ = api.erase(&res, &object, object.value.clone());
    }
}

/// Deletes the objects of a CRD that is being deleted and lets it go once there is none.
fn definition(api: &Api, name: &str) {
    let Some(res) = api.registry.resolve("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return;
    };
    let key = Key::new("", name);
    let deleting = api.store.get(&res.storage, &key).is_some_and(|o| is_deleting(&o.value));
    if !deleting {
        return;
    }
    // A CRD that serves nothing has nothing to clean up.
    let Some(custom) = api.registry.of_crd(name) else {
        return drop_finalizer(api, &res, &key, crd::CLEANUP);
    };
    for object in api.store.snapshot(&custom.storage, None).0 {
        let _ = delete(api, &custom, &Key::of(&object.value), &Options::default());
    }
    if api.store.snapshot(&custom.storage, None).0.is_empty() {
        drop_finalizer(api, &res, &key, crd::CLEANUP);
    }
}
