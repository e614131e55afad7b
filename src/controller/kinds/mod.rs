//! The kinds that the operator watches. A kind's file has everything that the shell must know of the kind: when the
//! operator's start hands its objects to the pool, how it is watched, what a change of an object means, and what an
//! object's status says. To add a kind, write its file and add a line to [`ALL`].

mod absent_machine;
pub mod concurrency_limit;
mod conditions;
pub mod crontab;
mod document;
pub mod drain_request;
mod governing;
pub mod group_quota;
pub mod job;
pub mod lease;
pub mod negotiator;
pub mod node;
pub mod node_policy;
pub mod node_report;
mod offered;
mod partitionable_slot;
pub mod pod;
mod sighting;
pub mod slot;
pub mod submit_policy;
pub mod submitter;

use std::fmt::Debug;

use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::cache::{CachedObject, Kind, ObjectKey};
use super::watch::{self, Watching};
use answers::{Decode, Item, Parts, Pauses};
use model::pool::{Document, Pool, Time};

pub use self::document::{Rendered, object_of, render};
pub use self::sighting::{Names, News, Sighting, Trace, Unread, WatchMessage, gone, there};

use self::node::SlimNode;
use self::pod::SlimPod;

/// Every kind that the operator watches. The watches begin in this order; [`Stage`] orders what they find.
pub const ALL: [Entry; 15] = [
    Entry::watched::<SlimNode>(),
    Entry::watched::<SlimPod>(),
    Entry::watched::<Lease>(),
    Entry::shown::<api::HTCJob>(),
    Entry::shown::<api::Slot>(),
    Entry::shown::<api::PartitionableSlot>(),
    Entry::shown::<api::Submitter>(),
    Entry::shown::<api::GroupQuota>(),
    Entry::shown::<api::ConcurrencyLimit>(),
    Entry::shown::<api::NodePolicy>(),
    Entry::shown::<api::SubmitPolicy>(),
    Entry::shown::<api::Negotiator>(),
    Entry::watched::<api::NodeReport>(),
    Entry::shown::<api::DrainRequest>(),
    Entry::shown::<api::AbsentMachine>(),
];

/// The order in which the pool is told of existing objects at the start: objects to which others refer come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Negotiators: submitters have an account with each.
    Negotiators,
    /// Policies of nodes and of submission.
    Policies,
    /// The other settings of admins: quotas, limits, drains.
    Settings,
    /// Submitters with their accounts.
    Submitters,
    /// Nodes, the Leases of their kubelets and agents, and what the agents report.
    Machines,
    /// Jobs.
    Jobs,
    /// Slots with their claims: each names its machine and its job.
    Slots,
    /// Pods: each names its claim.
    Pods,
}

/// A kind that the operator watches.
pub trait Watched: Debug + 'static {
    /// The type into which the watch decodes an object.
    type Object: Decode<Of: Resource<DynamicType: Clone + Debug + Default + Eq>> + Clone + Send + 'static;
    /// The part of an object that is kept as long as the object is there.
    type Kept: Clone + Debug + Send + 'static;
    /// The kind's names.
    const KIND: Kind;
    /// When the pool is told of the objects at the start.
    const STAGE: Stage;
    /// Whether the deciders begin only once all objects are known.
    const AWAITED: bool = true;
    /// Whether the cache keeps the objects. It keeps objects of the operator's own kinds only.
    const CACHED: bool = false;
    /// How many objects a page of a list has at most.
    const PAGE: u32 = 500;

    /// The objects that are watched.
    fn api(client: Client) -> Api<Item<Self::Object>>;

    /// Returns the part of an object that is kept, given the part that was kept before.
    fn keep(object: &Self::Object, before: Option<&Self::Kept>) -> Self::Kept;

    /// Lets what is kept of an object share texts with what was kept of the object before or, of a new object, with what is kept of
    /// its neighbour in the order of namespaces and names. Pods of one job have one namespace, and slots of one node one machine: a
    /// text is kept once for all of them.
    fn share(_: &mut Self::Kept, _: &Self::Kept) {}

    /// Makes a stand-in for an object that cannot be decoded and was not known before, from the object's metadata.
    ///
    /// `None` if the operator ignores such an object.
    fn taken_for(_: ObjectMeta) -> Option<Self::Object> {
        None
    }

    /// The news that follow when an object is created or changes.
    fn there(object: Self::Object, kept: &Self::Kept) -> Vec<News>;

    /// The news that follow when an object is gone.
    fn gone(names: &Names, kept: Self::Kept) -> Vec<News>;

    /// The part of an object that the cache keeps.
    fn known(_: &Self::Object) -> Option<(ObjectKey, CachedObject)> {
        None
    }

    /// The document whose status the object shows; none if the operator writes no status of the object.
    fn document(_: &Self::Object, _: &Self::Kept) -> Option<Document> {
        None
    }
}

/// A kind of the operator's own API.
pub trait Custom: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {
    /// As [`Watched::Kept`].
    type Kept: Clone + Debug + Send + 'static;
    /// As [`Watched::KIND`].
    const KIND: Kind;
    /// As [`Watched::STAGE`].
    const STAGE: Stage;
    /// As [`Watched::PAGE`].
    const PAGE: u32 = 500;

    /// As [`Watched::keep`].
    fn keep(object: &Self) -> Self::Kept;

    /// As [`Watched::there`].
    fn there(object: Self, kept: &Self::Kept) -> Vec<News>;

    /// As [`Watched::share`].
    fn share(_: &mut Self::Kept, _: &Self::Kept) {}

    /// As [`Watched::gone`].
    fn gone(names: &Names, kept: Self::Kept) -> Vec<News>;

    /// As [`Watched::document`].
    fn document(_: &Self, _: &Self::Kept) -> Option<Document> {
        None
    }
}

/// An object of the operator's own API, and what the cache keeps of it.
#[derive(Clone, Debug)]
pub struct Own<K> {
    object: K,
    known: CachedObject,
}

impl<K: DeserializeOwned> Decode for Own<K> {
    type Of = K;

    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self { object: parts.typed()?, known: CachedObject::new(parts.metadata(), parts.text("status")) })
    }
}

impl<K: Custom> Watched for K {
    type Object = Own<K>;
    type Kept = <K as Custom>::Kept;
    const KIND: Kind = <K as Custom>::KIND;
    const STAGE: Stage = <K as Custom>::STAGE;
    const CACHED: bool = true;
    const PAGE: u32 = <K as Custom>::PAGE;

    fn api(client: Client) -> Api<Item<Own<K>>> {
        Api::all(client)
    }

    fn keep(own: &Own<K>, _: Option<&Self::Kept>) -> Self::Kept {
        <K as Custom>::keep(&own.object)
    }

    fn share(kept: &mut Self::Kept, near: &Self::Kept) {
        <K as Custom>::share(kept, near);
    }

    fn there(own: Own<K>, kept: &Self::Kept) -> Vec<News> {
        <K as Custom>::there(own.object, kept)
    }

    fn gone(names: &Names, kept: Self::Kept) -> Vec<News> {
        <K as Custom>::gone(names, kept)
    }

    fn known(own: &Own<K>) -> Option<(ObjectKey, CachedObject)> {
        Some((ObjectKey::of(<K as Custom>::KIND, own.object.meta()), own.known.clone()))
    }

    fn document(own: &Own<K>, kept: &Self::Kept) -> Option<Document> {
        <K as Custom>::document(&own.object, kept)
    }
}

/// A kind whose objects' status the operator writes.
pub trait Shown: Custom {
    /// The type by which a document of this kind names its object.
    type Subject;

    /// The subject of a document: what its object is about. `None` if the document is of another kind.
    fn subject(document: &Document) -> Option<&Self::Subject>;

    /// The object that a subject names.
    fn object(pool: &Pool, subject: &Self::Subject) -> Option<ObjectKey>;

    /// Renders the object as it should be now. `old` are its conditions: one that does not change keeps its time.
    fn render(pool: &Pool, subject: &Self::Subject, old: &[Condition], now: Time) -> Rendered;
}

/// A kind in the list of [`ALL`].
pub struct Entry {
    /// The kind's names.
    pub kind: Kind,
    /// As [`Watched::STAGE`].
    pub stage: Stage,
    /// As [`Watched::AWAITED`].
    pub awaited: bool,
    /// Watches the kind until nobody receives any more.
    pub watch: fn(Watching, &Pauses, mpsc::Sender<WatchMessage>) -> BoxFuture<'static, ()>,
    status: Option<Status>,
}

/// [`Shown`], for any document.
#[derive(Clone, Copy)]
struct Status {
    object: fn(&Pool, &Document) -> Option<ObjectKey>,
    render: fn(&Pool, &Document, &[Condition], Time) -> Option<Rendered>,
}

impl Entry {
    const fn watched<K: Watched>() -> Self {
        Self { kind: K::KIND, stage: K::STAGE, awaited: K::AWAITED, watch: follow::<K>, status: None }
    }

    const fn shown<K: Shown>() -> Self {
        let status = Status {
            object: |pool, document| K::object(pool, K::subject(document)?),
            render: |pool, document, old, now| Some(K::render(pool, K::subject(document)?, old, now)),
        };
        Self { status: Some(status), ..Self::watched::<K>() }
    }
}

fn follow<K: Watched>(
    watching: Watching,
    pauses: &Pauses,
    out: mpsc::Sender<WatchMessage>,
) -> BoxFuture<'static, ()> {
    Box::pin(watch::run::<K>(watching, pauses.of(K::KIND.plural()), out))
}

#[cfg(test)]
mod kit;
#[cfg(test)]
mod tests;
