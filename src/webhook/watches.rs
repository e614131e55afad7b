//! Keeps [`OtherObjects`] up to date by watches of the few kinds that others refer to.

use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use futures::{FutureExt, Stream};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::sleep;

use answers::{Item, Pauses, patient, watching};
use api::{ConcurrencyLimit, GroupQuota, Negotiator, NodePolicy, SubmitPolicy};

use crate::known::{Objects, OtherObjects};

/// A kind that the webhook watches.
trait Watched: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static> Watched for K {}

/// How long changes are gathered before what is known is made anew.
const GATHER: Duration = Duration::from_millis(50);

/// Watches, and sends what is known after each change. Until every watch knows all objects, nothing is sent: an object is
/// then checked by itself only. While a watch has lost the API server, the last known objects count.
pub(crate) async fn follow(client: Client, out: watch::Sender<Arc<OtherObjects>>) {
    let (groups, seen_groups) = watched::<GroupQuota>(&client);
    let (limits, seen_limits) = watched::<ConcurrencyLimit>(&client);
    let (policies, seen_policies) = watched::<SubmitPolicy>(&client);
    let (negotiators, seen_negotiators) = watched::<Negotiator>(&client);
    let (nodes, seen_nodes) = watched::<NodePolicy>(&client);
    let mut seen =
        stream::select_all([seen_groups, seen_limits, seen_policies, seen_negotiators, seen_nodes]);
    loop {
        if seen.next().await.is_none() {
            return;
        }
        // Changes that come together make one new snapshot.
        let pause = sleep(GATHER);
        let mut pause = std::pin::pin!(pause);
        loop {
            tokio::select! {
                biased;
                () = &mut pause => break,
                more = seen.next() => if more.is_none() { return },
            }
        }
        if [
            is_ready(&groups),
            is_ready(&limits),
            is_ready(&policies),
            is_ready(&negotiators),
            is_ready(&nodes),
        ]
        .contains(&false)
        {
            continue;
        }
        let known = OtherObjects::all(&Objects {
            groups: &all(&groups),
            limits: &all(&limits),
            policies: &all(&policies),
            negotiators: &all(&negotiators),
            nodes: &all(&nodes),
        });
        out.send_replace(Arc::new(known));
    }
}

/// A store of all objects of a kind, and a stream that has an item whenever the store may have changed.
fn watched<K: Watched>(client: &Client) -> (Store<Item<K>>, stream::BoxStream<'static, ()>) {
    let (store, writer) = reflector::store();
    let api: Api<Item<K>> = Api::all(watching(client.clone(), || {}));
    // A number of this process and this watch, so that replicas and watches are out of step with each other.
    let chance = RandomState::new().hash_one(K::kind(&()));
    let events = patient(watcher(api, watcher::Config::default()), Pauses::new(chance));
    (store, told(events.reflect(writer)).boxed())
}

fn told<K: Watched>(
    events: impl Stream<Item = watcher::Result<watcher::Event<Item<K>>>> + Send + 'static,
) -> impl Stream<Item = ()> + Send + 'static {
    events.map(|event| {
        let kind = K::kind(&()).into_owned();
        match event {
            Ok(Event::Apply(item) | Event::InitApply(item)) => {
                let (metadata, object) = item.into_parts();
                if let Err(error) = object {
                    let name = metadata.name.unwrap_or_default();
                    tracing::warn!(kind, name, %error, "the webhook cannot decode an object, and goes without it");
                }
            }
            Ok(Event::Delete(_) | Event::Init | Event::InitDone) => {}
            Err(error) => tracing::warn!(
                kind,
                error = %answers::chain(&error),
                "a watch of the webhook failed and is resumed"
            ),
        }
    })
}

fn is_ready<K: Watched>(store: &Store<Item<K>>) -> bool {
    store.wait_until_ready().now_or_never().is_some_and(|ready| ready.is_ok())
}

/// The objects of a store. An object that cannot be decoded is left out: the others count all the same.
fn all<K: Watched>(store: &Store<Item<K>>) -> Vec<K> {
    store.state().into_iter().filter_map(|item| Item::clone(&item).object().ok()).collect()
}
