//! The pool's pods as the API server showed them while a test ran.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::machine::is_ours;

/// The uids of the pods that were asked to go: somebody deleted them, or a condition says that they are disrupted.
pub struct AskedToGo {
    asked: Arc<Mutex<HashSet<String>>>,
    watch: JoinHandle<()>,
}

impl AskedToGo {
    pub fn start(client: &Client) -> Self {
        let asked = Arc::new(Mutex::new(HashSet::new()));
        let (pods, known): (Api<Pod>, _) = (Api::all(client.clone()), asked.clone());
        let watch = tokio::spawn(async move {
            let mut events =
                watcher(pods, watcher::Config::default()).default_backoff().touched_objects().boxed();
            loop {
                match events.try_next().await {
                    Ok(Some(pod)) if is_ours(&pod) && is_asked(&pod) => {
                        known.lock().unwrap().extend(pod.uid());
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return,
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
        Self { asked, watch }
    }

    pub fn was_asked(&self, uid: &str) -> bool {
        self.asked.lock().unwrap().contains(uid)
    }
}

impl Drop for AskedToGo {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn is_asked(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_some()
        || conditions.into_iter().any(|c| c.type_ == "DisruptionTarget" && c.status == "True")
}
