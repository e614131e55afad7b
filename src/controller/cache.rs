//! The operator's own objects as they were last seen: versions, uids and statuses. By these a write that would change
//! nothing is left out, and the API server refuses a write that would overwrite what the operator has not seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::packed::Packed;
use crate::render::KeptTemplate;
use crate::uid::{Uid, Version};
use answers::{Decode, Item, Parts};
use model::BoxMap;
use model::pool::JobUid;

/// A kind, by its name in CamelCase and its plural. A kind takes no more than a pointer, because the key of each object has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(&'static (&'static str, &'static str));

impl Kind {
    /// The kind of this name and this plural.
    pub const fn of(names: &'static (&'static str, &'static str)) -> Self {
        Self(names)
    }

    /// The name, in CamelCase.
    pub const fn name(self) -> &'static str {
        self.0.0
    }

    /// The plural, by which the API server calls the objects.
    pub const fn plural(self) -> &'static str {
        self.0.1
    }

    /// A kind of the operator's own API, as a dynamic client calls it.
    pub fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(api::GROUP, api::VERSION, self.name());
        ApiResource::from_gvk_with_plural(&kind, self.plural())
    }

    /// The object of this name, of a kind without namespaces.
    pub fn object(self, name: impl Into<Box<str>>) -> ObjectKey {
        ObjectKey { kind: self, namespace: None, name: name.into() }
    }
}

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The kind.
    pub kind: Kind,
    /// The namespace, of a namespaced kind.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Box<str>,
}

impl ObjectKey {
    /// The key of an object of this kind.
    pub fn of(kind: Kind, metadata: &ObjectMeta) -> Self {
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        Self { kind, namespace: namespace.map(Into::into), name: name.unwrap_or_default().into() }
    }
}

/// Tells the object that the operator has seen from an object that somebody made later under the same name, and the state that the
/// operator has seen from a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The object's uid.
    pub uid: Uid,
    /// The object's version.
    pub version: Version,
}

/// An object as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedObject {
    /// Its uid.
    pub uid: Uid,
    /// Its version.
    pub version: Version,
    status: Packed,
}

impl CachedObject {
    /// The cache's entry for an object with this metadata and this text of its status.
    pub fn new(metadata: &ObjectMeta, status: &str) -> Self {
        Self { uid: Uid::of(metadata), version: Version::of(metadata), status: status.into() }
    }

    /// The cache's entry for the object in an answer, as far as the answer can be read.
    pub fn of(answer: Item<Answer>) -> Self {
        let metadata = answer.metadata().clone();
        let status = answer.object().map(|answer| answer.status);
        Self::new(&metadata, status.as_deref().unwrap_or("null"))
    }

    /// The object's identity.
    pub fn identity(&self) -> Identity {
        Identity { uid: self.uid.clone(), version: self.version.clone() }
    }

    /// The status; null if there is none, or if the status nests too deep.
    pub fn status(&self) -> Value {
        serde_json::from_slice(&self.status.text()).unwrap_or_default()
    }
}

/// The status of an object of the operator's own API, in the answer to a call. Beside the metadata, nothing else is read.
#[derive(Clone, Debug)]
pub struct Answer {
    status: Box<str>,
}

impl Decode for Answer {
    type Of = DynamicObject;

    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self { status: parts.text("status").into() })
    }
}

/// Everything seen.
#[derive(Debug, Default)]
pub struct Cache {
    objects: BoxMap<ObjectKey, CachedObject>,
    /// The uids of objects that were deleted while a write to them was under way. If the answer to the write comes after
    /// the watch has told of the deletion, the answer shows an object that is gone.
    gone: BTreeMap<ObjectKey, Uid>,
    /// The templates of jobs' pods, with their items.
    templates: BTreeMap<JobUid, Arc<KeptTemplate>>,
}

impl Cache {
    /// An object as it was last seen.
    pub fn get(&self, key: &ObjectKey) -> Option<&CachedObject> {
        self.objects.get(key)
    }

    /// Notes that the first lists have come: what they have shown is kept in as little memory as possible.
    pub fn listed(&mut self) {
        self.objects.pack();
    }

    /// The template of a job's pods.
    pub fn template(&self, job: &JobUid) -> Option<&Arc<KeptTemplate>> {
        self.templates.get(job)
    }

    /// Keeps the template of a job's pods. With `None`, because the job is gone, forgets the template.
    pub fn keep_template(&mut self, job: JobUid, template: Option<Arc<KeptTemplate>>) {
        match template {
            Some(template) => self.templates.insert(job, template),
            None => self.templates.remove(&job),
        };
    }

    /// Whether this is a later state of an object that is known, with another status than is known.
    pub fn is_surprised(&self, key: &ObjectKey, known: &CachedObject) -> bool {
        let old = self.objects.get(key).filter(|old| old.uid == known.uid);
        old.is_some_and(|old| known.version.is_newer_than(&old.version) && known.status != old.status)
    }

    /// Remembers an object as a watch or the answer to a write shows it. If two of them show objects of one name, the newer
    /// version counts: the answer to a write often comes before the watch shows an older version, or an earlier object of that name.
    pub fn see(&mut self, key: ObjectKey, known: CachedObject) {
        if self.gone.get(&key).is_some_and(|uid| *uid == known.uid) {
            return;
        }
        self.gone.remove(&key);
        match self.objects.get_mut(&key) {
            Some(old) if old.version.is_newer_than(&known.version) => {}
            Some(old) => *old = known,
            None => {
                self.objects.insert(key, known);
            }
        }
    }

    /// Forgets an object of this uid. A newer object of the same name stays.
    pub fn forget(&mut self, key: &ObjectKey, uid: &Uid) {
        if self.objects.get(key).is_some_and(|known| known.uid == *uid) {
            self.objects.remove(key);
        }
    }

    /// Forgets an object to which a write is under way. The answer to that write will be ignored: it shows an object that
    /// is gone.
    pub fn forget_deleted(&mut self, key: ObjectKey, uid: Uid) {
        self.forget(&key, &uid);
        self.gone.insert(key, uid);
    }

    /// Notes that no write to an object is under way any more: no answer can bring the object back.
    pub fn nobody_writes(&mut self, key: &ObjectKey) {
        self.gone.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(uid: &str, version: &str) -> CachedObject {
        CachedObject { uid: uid.into(), version: version.into(), status: "null".into() }
    }

    #[test]
    fn an_older_sight_does_not_hide_a_newer_one() {
        let key = Kind::of(&("Slot", "slots")).object("s");
        let mut cache = Cache::default();
        for (uid, version, expected) in [
            ("1", "5", ("1", "5")),
            ("1", "4", ("1", "5")),
            ("1", "10", ("1", "10")),
            ("2", "12", ("2", "12")),
            ("1", "11", ("2", "12")),
        ] {
            cache.see(key.clone(), known(uid, version));
            let Identity { uid, version } = cache.get(&key).unwrap().identity();
            assert_eq!((uid, version), (expected.0.into(), expected.1.into()));
        }
        cache.forget(&key, &"1".into());
        assert!(cache.get(&key).is_some());
        cache.forget(&key, &"2".into());
        assert!(cache.get(&key).is_none());
    }

    /// The answer to the operator's own write shows the version that the watch tells, and is no surprise.
    #[test]
    fn a_status_that_somebody_else_wrote_is_a_surprise() {
        let key = Kind::of(&("Slot", "slots")).object("s");
        let with = |uid, version, status: &str| CachedObject { status: status.into(), ..known(uid, version) };
        let mut cache = Cache::default();
        assert!(!cache.is_surprised(&key, &with("1", "5", "{}")), "a new object");
        cache.see(key.clone(), with("1", "5", "{}"));
        for (uid, version, status, surprised) in [
            ("1", "5", "{}", false),
            ("1", "6", "{}", false),
            ("1", "6", r#"{"a":1}"#, true),
            ("1", "4", r#"{"a":1}"#, false),
            ("2", "6", r#"{"a":1}"#, false),
        ] {
            assert_eq!(
                cache.is_surprised(&key, &with(uid, version, status)),
                surprised,
                "{uid} {version} {status}"
            );
        }
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_is_gone() {
        let key = Kind::of(&("Slot", "slots")).object("s");
        let mut cache = Cache::default();
        cache.see(key.clone(), known("1", "5"));
        cache.forget_deleted(key.clone(), "1".into());
        cache.see(key.clone(), known("1", "6"));
        assert!(cache.get(&key).is_none());
        cache.see(key.clone(), known("2", "7"));
        assert_eq!(cache.get(&key).unwrap().version, "7".into());
    }

    #[test]
    fn what_is_gone_is_remembered_for_as_long_as_a_write_is_under_way() {
        let key = Kind::of(&("Slot", "slots")).object("s");
        let mut cache = Cache::default();
        cache.see(key.clone(), known("1", "5"));
        cache.forget_deleted(key.clone(), "1".into());
        cache.nobody_writes(&key);
        assert!(cache.gone.is_empty());
    }
}
