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

use super::{Observation, SeenPod, Watchdog, seen_node};

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
        tasks.spawn(follow_pods(pods, sender.clone()));
        tasks.spawn(follow_nodes(nodes, sender));
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

async fn follow_pods(
    events: impl Stream<Item = watcher::Result<watcher::Event<Pod>>>,
    to: watch::Sender<Watchdog>,
) {
    let mut events = pin!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let seen = match event {
            Err(error) => {
                warn!("watchdog: the watch on pods broke and starts again: {error}");
                continue;
            }
            Ok(watcher::Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(pod)) => {
                listing.extend(SeenPod::from_pod(&pod));
                continue;
            }
            Ok(watcher::Event::InitDone) => Some(Observation::Pods(std::mem::take(&mut listing))),
            Ok(watcher::Event::Apply(pod)) => SeenPod::from_pod(&pod).map(Observation::Pod),
            Ok(watcher::Event::Delete(pod)) => pod.metadata.uid.map(Observation::PodGone),
        };
        observe(&to, seen);
    }
}

async fn follow_nodes(
    events: impl Stream<Item = watcher::Result<watcher::Event<Node>>>,
    to: watch::Sender<Watchdog>,
) {
    let mut events = pin!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let seen = match event {
            Err(error) => {
                warn!("watchdog: the watch on nodes broke and starts again: {error}");
                continue;
            }
            Ok(watcher::Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(node)) => {
                listing.extend(seen_node(&node));
                continue;
            }
            Ok(watcher::Event::InitDone) => Some(Observation::Nodes(std::mem::take(&mut listing))),
            Ok(watcher::Event::Apply(node)) => {
                seen_node(&node).map(|(name, has)| Observation::Node(name, has))
            }
            Ok(watcher::Event::Delete(node)) => node.metadata.name.map(Observation::NodeGone),
        };
        observe(&to, seen);
    }
}

fn observe(to: &watch::Sender<Watchdog>, seen: Option<Observation>) {
    if let Some(seen) = seen {
        to.send_modify(|watchdog| watchdog.observe(seen, Timestamp::now()));
    }
}
