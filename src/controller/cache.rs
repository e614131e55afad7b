//! The operator's own objects as they were last seen: versions, uids and statuses. By these a write that would change
//! nothing is left out, and the API server refuses a write that would overwrite what the operator has not seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::render::Kept;
use answers::{Decode, Item, Parts};
use model::pool::JobUid;

/// The names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The name, in CamelCase.
    pub name: &'static str,
    /// The plural, by which the API server calls the objects.
    pub plural: &'static str,
}

impl Kind {
    /// A kind of the operator's own API, as a dynamic client calls it.
    pub fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(api::GROUP, api::VERSION, self.name);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    /// The object of this name, of a kind without namespaces.
    pub fn object(self, name: impl Into<String>) -> ObjectKey {
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
    pub name: String,
}

impl ObjectKey {
    /// The key of an object of this kind.
    pub fn of(kind: Kind, metadata: &ObjectMeta) -> Self {
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        Self { kind, namespace: namespace.map(Into::into), name: name.unwrap_or_default().to_owned() }
    }
}

/// An object as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    status: Box<str>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl Known {
    /// The cache's entry for an object with this metadata and this text of its status.
    pub fn new(metadata: &ObjectMeta, status: &str) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            status: status.into(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
        }
    }

    /// The cache's entry for the object in an answer, as far as the answer can be read.
    pub fn of(answer: Item<Answer>) -> Self {
        let metadata = answer.metadata().clone();
        let status = answer.object().map(|answer| answer.status);
        Self::new(&metadata, status.as_deref().unwrap_or("null"))
    }

    /// The status; null if there is none, or if the status nests too deep. The text of the status is kept, which takes a fraction
    /// of the memory of a JSON tree.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.status).unwrap_or_default()
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
    objects: BTreeMap<ObjectKey, Known>,
    /// The uids of objects that were deleted while a write to them was under way. If the answer to the write comes after
    /// the watch has told of the deletion, the answer shows an object that is gone.
    gone: BTreeMap<ObjectKey, String>,
    /// The templates of jobs' pods, with their items.
    templates: BTreeMap<JobUid, Arc<Kept>>,
}

impl Cache {
    /// An object as it was last seen.
    pub fn get(&self, key: &ObjectKey) -> Option<&Known> {
        self.objects.get(key)
    }

    /// The template of a job's pods.
    pub fn template(&self, job: &JobUid) -> Option<&Arc<Kept>> {
        self.templates.get(job)
    }

    /// Keeps the template of a job's pods; none where the job is gone.
    pub fn keep_template(&mut self, job: JobUid, template: Option<Arc<Kept>>) {
        match template {
            Some(template) => self.templates.insert(job, template),
            None => self.templates.remove(&job),
        };
    }

    /// Remembers an object as a watch or the answer to a write shows it. If two of them show one object, the newer
    /// version counts: the answer to a write often comes before the watch shows an older version.
    pub fn see(&mut self, key: ObjectKey, known: Known) {
        if self.gone.get(&key).is_some_and(|uid| *uid == known.uid) {
            return;
        }
        self.gone.remove(&key);
        match self.objects.get_mut(&key) {
            Some(old) if old.uid == known.uid && newer(&old.version, &known.version) => {}
            Some(old) => *old = known,
            None => {
                self.objects.insert(key, known);
            }
        }
    }

    /// Forgets an object of this uid. A newer object of the same name stays.
    pub fn forget(&mut self, key: &ObjectKey, uid: &str) {
        if self.objects.get(key).is_some_and(|known| known.uid == uid) {
            self.objects.remove(key);
        }
    }

    /// Forgets an object to which a write is under way. The answer to that write will be ignored: it shows an object that
    /// is gone.
    pub fn forget_deleted(&mut self, key: ObjectKey, uid: String) {
        self.forget(&key, &uid);
        self.gone.insert(key, uid);
    }

    /// Notes that no write to an object is under way any more: no answer can bring the object back.
    pub fn nobody_writes(&mut self, key: &ObjectKey) {
        self.gone.remove(key);
    }
}

/// Whether version `a` is newer than version `b`. Versions of one resource are growing numbers: Kubernetes guarantees
/// that since 1.35, and every API server has always done so. If one of the two is not a number, the version that is seen
/// later counts.
fn newer(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a > b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(uid: &str, version: &str) -> Known {
        Known { uid: uid.into(), version: version.into(), status: "null".into(), finalizers: vec![] }
    }

    #[test]
    fn an_older_sight_does_not_hide_a_newer_one() {
        let key = Kind { name: "Slot", plural: "slots" }.object("s");
        let mut cache = Cache::default();
        for (uid, version, expected) in [("1", "5", "5"), ("1", "4", "5"), ("1", "10", "10"), ("2", "7", "7")]
        {
            cache.see(key.clone(), known(uid, version));
            assert_eq!(cache.get(&key).unwrap().version, expected);
        }
        cache.forget(&key, "1");
        assert!(cache.get(&key).is_some());
        cache.forget(&key, "2");
        assert!(cache.get(&key).is_none());
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_is_gone() {
        let key = Kind { name: "Slot", plural: "slots" }.object("s");
        let mut cache = Cache::default();
        cache.see(key.clone(), known("1", "5"));
        cache.forget_deleted(key.clone(), "1".into());
        cache.see(key.clone(), known("1", "6"));
        assert!(cache.get(&key).is_none());
        cache.see(key.clone(), known("2", "7"));
        assert_eq!(cache.get(&key).unwrap().version, "7");
    }

    #[test]
    fn what_is_gone_is_remembered_for_as_long_as_a_write_is_under_way() {
        let key = Kind { name: "Slot", plural: "slots" }.object("s");
        let mut cache = Cache::default();
        cache.see(key.clone(), known("1", "5"));
        cache.forget_deleted(key.clone(), "1".into());
        cache.nobody_writes(&key);
        assert!(cache.gone.is_empty());
    }
}
