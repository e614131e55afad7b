//! Keeps [`Known`] up to date by watches of the few kinds that others refer to.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use futures::{FutureExt, Stream};
use kube::api::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::sleep;

use api::{ConcurrencyLimit, GroupQuota, Negotiator, NodePolicy, SubmitPolicy};

use crate::known::{Known, Objects};

/// How long changes are gathered before what is known is made anew.
const GATHER: Duration = Duration::from_millis(50);

/// Watches, and sends what is known after each change. Until every watch knows all objects, nothing is sent: an object is
/// then checked by itself only. While a watch has lost the API server, the last known objects count.
pub(crate) async fn follow(client: Client, out: watch::Sender<Arc<Known>>) {
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
        let known = Known::all(&Objects {
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
fn watched<K>(client: &Client) -> (Store<K>, stream::BoxStream<'static, ()>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(Api::all(client.clone()), watcher::Config::default()).default_backoff().modify(
        |object: &mut K| {
            object.meta_mut().managed_fields = None;
        },
    );
    (store, told(events.reflect(writer)).boxed())
}

fn told<K: Resource<DynamicType = ()>>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
) -> impl Stream<Item = ()> + Send + 'static {
    events.map(|event| {
        if let Err(error) = event {
            let kind = K::kind(&()).into_owned();
            tracing::warn!(
                kind,
                error = &error as &dyn std::error::Error,
                "a watch of the webhook failed and is resumed"
            );
        }
    })
}

fn is_ready<K: Resource<DynamicType = ()> + Clone + 'static>(store: &Store<K>) -> bool {
    store.wait_until_ready().now_or_never().is_some_and(|ready| ready.is_ok())
}

fn all<K: Resource<DynamicType = ()> + Clone + 'static>(store: &Store<K>) -> Vec<K> {
    store.state().into_iter().map(|object| K::clone(&object)).collect()
}
