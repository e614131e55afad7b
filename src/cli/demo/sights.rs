//! Watches the pool for the scene.

use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::scene::Sight;

/// How many changes may wait to be taken in.
const AHEAD: usize = 1024;

/// The running watches. Dropping the value ends them.
#[derive(Debug)]
pub struct Sights {
    seen: mpsc::Receiver<Sight>,
    _watches: JoinSet<()>,
}

impl Sights {
    /// Watches jobs, slots, pods, submitters and groups. Returns when every watch has read its first list.
    pub async fn start(client: &Client) -> Self {
        let (out, seen) = mpsc::channel(AHEAD);
        let (ready, mut stands) = mpsc::channel(4);
        let mut watches = JoinSet::new();
        let (job, gone) = (|o| Sight::Job(Box::new(o)), |o| Sight::JobGone(Box::new(o)));
        watches.spawn(follow(Api::all(client.clone()), out.clone(), ready.clone(), job, gone));
        let (slot, gone) = (|o| Sight::Slot(Box::new(o)), |o| Sight::SlotGone(Box::new(o)));
        watches.spawn(follow(Api::all(client.clone()), out.clone(), ready.clone(), slot, gone));
        let (pod, gone) = (|o| Sight::Pod(Box::new(o)), |o| Sight::PodGone(Box::new(o)));
        watches.spawn(follow(Api::all(client.clone()), out.clone(), ready.clone(), pod, gone));
        let (submitter, gone) = (|o| Sight::Submitter(Box::new(o)), |o| Sight::SubmitterGone(Box::new(o)));
        watches.spawn(follow(Api::all(client.clone()), out.clone(), ready.clone(), submitter, gone));
        let (group, gone) = (|o| Sight::Group(Box::new(o)), |o| Sight::GroupGone(Box::new(o)));
        watches.spawn(follow(Api::all(client.clone()), out, ready, group, gone));
        for _ in 0..watches.len() {
            stands.recv().await;
        }
        Self { seen, _watches: watches }
    }

    /// The next change; `None` only if all watches have ended, which they do not by themselves.
    pub async fn next(&mut self) -> Option<Sight> {
        self.seen.recv().await
    }

    /// The next change, if one is already waiting.
    pub fn pending(&mut self) -> Option<Sight> {
        self.seen.try_recv().ok()
    }
}

async fn follow<K>(
    api: Api<K>,
    out: mpsc::Sender<Sight>,
    ready: mpsc::Sender<()>,
    there: impl Fn(K) -> Sight,
    gone: impl Fn(K) -> Sight,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut stream = pin!(watch(api, watcher::Config::default()).default_backoff());
    let mut ready = Some(ready);
    while let Some(event) = stream.next().await {
        let sight = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => there(object),
            Ok(Event::Delete(object)) => gone(object),
            Ok(Event::Init) => continue,
            Ok(Event::InitDone) => {
                if let Some(ready) = ready.take() {
                    let _ = ready.send(()).await;
                }
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "the demo's watch failed and is resumed");
                continue;
            }
        };
        if out.send(sight).await.is_err() {
            return;
        }
    }
}
