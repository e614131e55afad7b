//! The messages from the watches to the engine.

use std::sync::Arc;

use super::{Stage, Watched};
use crate::cache::{CachedObject, Kind, ObjectKey};
use crate::creators::CreatorAnnotations;
use crate::render::KeptTemplate;
use crate::uid::Uid;
use answers::Undecodable;
use model::pool::{Document, Event, JobFacts, JobUid, PodFacts};

/// A message from a watch.
#[derive(Debug)]
pub enum WatchMessage {
    /// A change of an object.
    Object(Box<Sighting>),
    /// Every object of a kind that existed when its watch began has been told.
    All(Kind),
    /// Whether the API server has the kind at all, told when that changes.
    Served(Kind, bool),
    /// An object that cannot be decoded, told once for each of its versions.
    Undecodable(Box<Unread>),
}

/// An object that cannot be decoded. The names of the object are told, as far as they can be read.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Its kind.
    pub kind: Kind,
    /// The version of its kind's API, with the group.
    pub api_version: String,
    /// Its namespace, of a namespaced kind.
    pub namespace: Option<String>,
    /// Its name; empty if it cannot be read.
    pub name: String,
    /// Its uid; empty if it cannot be read.
    pub uid: String,
    /// Why it cannot be decoded.
    pub why: Undecodable,
}

/// A change of an object.
#[derive(Debug)]
pub struct Sighting {
    /// When the pool is told, at the start.
    pub stage: Stage,
    /// The change of the cache, if the cache keeps objects of this kind.
    pub trace: Option<Trace>,
    /// The consequences of the change, in this order.
    pub news: Vec<News>,
}

/// The change that the cache makes for an object of the operator's own kinds.
#[derive(Debug)]
pub enum Trace {
    /// The object is there, and shows this document, if the operator writes its status.
    There(ObjectKey, CachedObject, Option<Document>),
    /// The object of this uid is gone.
    Gone(ObjectKey, Uid),
}

/// A consequence of a change of an object.
#[derive(Debug)]
pub enum News {
    /// An event for the pool.
    Event(Box<Event>),
    /// A job was seen, with what the job's annotations say of its creator. The engine tells the pool of the job, and of
    /// the creator only if the seal or the stamp is genuine.
    Job(Box<JobFacts>, Box<CreatorAnnotations>),
    /// A pod of a proc exists: the writer may still wait for the answer to its creation.
    Pod(Arc<PodFacts>),
    /// The template of a job's pods; `None` if the job is gone.
    Template(JobUid, Option<Arc<KeptTemplate>>),
    /// A document has to be written anew if it does not say what the pool says.
    Stale(Document),
}

impl From<Event> for News {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

/// The news that consist of this event alone; none without an event.
pub(super) fn told(event: impl Into<Option<Event>>) -> Vec<News> {
    event.into().map(News::from).into_iter().collect()
}

/// The names of an object.
#[derive(Clone, Debug)]
pub struct Names {
    /// Its namespace, of a namespaced kind.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: Uid,
}

/// The message that an object was made or has changed.
pub fn there<W: Watched>(object: W::Object, kept: &W::Kept) -> WatchMessage {
    let document = W::document(&object, kept);
    let trace = W::known(&object).map(|(key, known)| Trace::There(key, known, document));
    WatchMessage::Object(Box::new(Sighting { stage: W::STAGE, trace, news: W::there(object, kept) }))
}

/// The message that an object is gone.
pub fn gone<W: Watched>(names: Names, kept: W::Kept) -> WatchMessage {
    let news = W::gone(&names, kept);
    let Names { namespace, name, uid } = names;
    let key = ObjectKey { kind: W::KIND, namespace: namespace.map(Into::into), name: name.into() };
    WatchMessage::Object(Box::new(Sighting {
        stage: W::STAGE,
        trace: W::CACHED.then_some(Trace::Gone(key, uid)),
        news,
    }))
}

/// Keeps an equal text once: `text` becomes a clone of `near`, which takes no memory of its own, if both are equal.
pub(super) fn keep_once<T: Clone + PartialEq>(text: &mut T, near: &T) {
    if text == near {
        text.clone_from(near);
    }
}
