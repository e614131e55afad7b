//! What a watch tells the engine.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::{Custom, Stage, Watched};
use crate::cache::{Kind, Known, ObjectKey};
use crate::watch::Change;
use model::pool::{ClaimId, Document, Event, JobUid, PodRef};

/// What a watch saw.
#[derive(Debug)]
pub enum Seen {
    /// A change of an object.
    Object(Box<Sighting>),
    /// Every object of a kind that existed when its watch began has been told.
    All(Kind),
    /// Whether the API server has the kind at all, told when that changes.
    Served(Kind, bool),
}

/// A change of an object.
#[derive(Debug)]
pub struct Sighting {
    /// When the pool is told, at the start.
    pub stage: Stage,
    /// What the cache keeps.
    pub trace: Option<Trace>,
    /// What follows, in this order.
    pub news: Vec<News>,
}

/// What the cache keeps of an object of the operator's own kinds.
#[derive(Debug)]
pub enum Trace {
    /// The object is there.
    There(ObjectKey, Known),
    /// The object of this uid is gone.
    Gone(ObjectKey, String),
}

/// What follows from a change of an object.
#[derive(Debug)]
pub enum News {
    /// The pool is told.
    Event(Box<Event>),
    /// A claim's pod exists: the writer may still wait for the answer to its creation.
    PodSeen(PodRef, ClaimId),
    /// The template of a job's pods is this; none where the job is gone.
    Template(JobUid, Option<Arc<PodTemplateSpec>>),
    /// A document has to be written anew if it does not say what the pool says.
    Stale(Document),
}

impl From<Event> for News {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

/// An event as all that follows.
pub(super) fn told(event: impl Into<Option<Event>>) -> Vec<News> {
    event.into().map(News::from).into_iter().collect()
}

/// What a watch of this kind has seen.
pub(super) fn seen<K: Watched>(change: Change<K::Object>) -> Seen {
    let (trace, news) = match change {
        Change::Synced => return Seen::All(K::KIND),
        Change::Served(there) => return Seen::Served(K::KIND, there),
        Change::Apply(object) => {
            (K::known(&object).map(|(key, known)| Trace::There(key, known)), K::there(object))
        }
        Change::Gone(object) => {
            (K::known(&object).map(|(key, known)| Trace::Gone(key, known.uid)), K::gone(object))
        }
    };
    Seen::Object(Box::new(Sighting { stage: K::STAGE, trace, news }))
}

/// Decodes an object. One that the schema lets through and the type does not is logged, and counts as unseen.
pub(super) fn typed<K: Custom>(object: DynamicObject) -> Option<K> {
    let name = object.name_any();
    let parsed = object.try_parse();
    parsed.inspect_err(|error| tracing::warn!(kind = K::KIND.name, object = name, error = %error, "an object cannot be read")).ok()
}
