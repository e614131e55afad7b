//! Feeds a [`Watchdog`] from a cluster.

use std::pin::pin;

use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::warn;

use super::{Observation, Resources, SeenPod, Watchdog, seen_node};

/// A watchdog that watches a cluster. It stops when it is dropped.
pub struct Watch {
    seen: watch::Receiver<Watchdog>,
    _tasks: JoinSet<()>,
}

impl Watch {
    /// Starts to watch all pods and nodes of a cluster.
    pub fn start(client: &Client) -> Self {
        let (sender, seen) = watch::channel(Watchdog::default());
        let mut tasks = JoinSet::new();
        let pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default()).default_backoff();
        let nodes = watcher(Api::<Node>::all(client.clone()), watcher::Config::default()).default_backoff();
        tasks.spawn(follow(pods, PODS, sender.clone()));
        tasks.spawn(follow(nodes, NODES, sender));
        Self { seen, _tasks: tasks }
    }

    /// The watchdog's state now.
    pub fn report(&self) -> Watchdog {
        self.seen.borrow().clone()
    }

    /// Waits until `enough` is true of the watchdog's state. May wait for ever, so callers need a timeout.
    pub async fn until(&self, enough: impl FnMut(&Watchdog) -> bool) -> Watchdog {
        let mut seen = self.seen.clone();
        // `wait_for` fails only if the tasks have ended, and they end only when this object is dropped.
        seen.wait_for(enough).await.map(|seen| seen.clone()).unwrap_or_default()
    }
}

/// A kind of objects that the watchdog follows. `T` is the part of an object that the watchdog looks at.
struct Followed<K, T> {
    /// The kind, for messages.
    kind: &'static str,
    seen: fn(&K) -> Option<T>,
    one: fn(T) -> Observation,
    all: fn(Vec<T>) -> Observation,
    gone: fn(K) -> Option<Observation>,
}

const PODS: Followed<Pod, SeenPod> = Followed {
    kind: "pods",
    seen: SeenPod::from_pod,
    one: Observation::Pod,
    all: Observation::Pods,
    gone: |pod| pod.metadata.uid.map(Observation::PodGone),
};

const NODES: Followed<Node, (String, Resources)> = Followed {
    kind: "nodes",
    seen: seen_node,
    one: |(name, has)| Observation::Node(name, has),
    all: Observation::Nodes,
    gone: |node| node.metadata.name.map(Observation::NodeGone),
};

/// Tells the watchdog what a watch of a kind tells.
async fn follow<K, T>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>>,
    of: Followed<K, T>,
    to: watch::Sender<Watchdog>,
) {
    let mut events = pin!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let seen = match event {
            Err(error) => {
                warn!("watchdog: the watch on {} broke and starts again: {error}", of.kind);
                continue;
            }
            Ok(watcher::Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                listing.extend((of.seen)(&object));
                continue;
            }
            Ok(watcher::Event::InitDone) => Some((of.all)(std::mem::take(&mut listing))),
            Ok(watcher::Event::Apply(object)) => (of.seen)(&object).map(of.one),
            Ok(watcher::Event::Delete(object)) => (of.gone)(object),
        };
        if let Some(seen) = seen {
            to.send_modify(|watchdog| watchdog.observe(seen, Timestamp::now()));
        }
    }
}
