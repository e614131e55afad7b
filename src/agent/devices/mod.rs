//! Which devices each pod has got, as the node's kubelet tells.
//!
//! | file | holds |
//! | --- | --- |
//! | `wire` | the kubelet's answer, read: pure |
//! | `call` | the call on the kubelet's socket |
//!
//! The kubelet chooses a pod's devices before the pod's first process starts, and never chooses others for it. So the agent asks
//! when a pod of the pool has started, and not by the clock. The kubelet names pods by namespace and name, and not by uid.

mod call;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::call::Error;
use self::wire::Devices;
use super::pods::{Pods, Uid};
use api::PodDevices;

/// How long the kubelet may take to answer. A call that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(5);
/// The pause after a failure.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// The kubelet's answer, by `NAMESPACE/NAME`.
type Answer = Result<BTreeMap<String, Devices>, Error>;

/// Knows which devices the pool's pods have.
#[derive(Debug)]
pub(crate) struct FoundDevices {
    /// The socket of the kubelet's pod-resources API; none if the agent is not to ask.
    socket: Option<PathBuf>,
    /// The devices of each pod that the kubelet was asked about after the pod had started.
    known: BTreeMap<Uid, Devices>,
    /// The pods that the answer under way is about.
    asked: BTreeSet<Uid>,
    asking: JoinSet<Answer>,
    not_before: Instant,
}

impl FoundDevices {
    pub(crate) fn new(socket: Option<PathBuf>) -> Self {
        let (known, asked) = (BTreeMap::new(), BTreeSet::new());
        Self { socket, known, asked, asking: JoinSet::new(), not_before: Instant::now() }
    }

    /// Asks the kubelet if one of the pods that run is new.
    pub(crate) fn ask_about(&mut self, running: &BTreeSet<Uid>) {
        let Some(socket) = &self.socket else { return };
        self.known.retain(|uid, _| running.contains(uid));
        let new = running.iter().any(|uid| !self.known.contains_key(uid));
        if !new || !self.asking.is_empty() || self.not_before > Instant::now() {
            return;
        }
        self.asked.clone_from(running);
        let socket = socket.clone();
        self.asking
            .spawn(async move { timeout(LIMIT, call::list(&socket)).await.unwrap_or(Err(Error::TooSlow)) });
    }

    /// The answer under way; waits for ever if there is none. A future that is dropped has lost nothing.
    pub(crate) async fn answer(&mut self) -> Result<BTreeMap<String, Devices>, String> {
        match self.asking.join_next().await {
            Some(Ok(answer)) => answer.map_err(|error| error.to_string()),
            Some(Err(error)) => Err(error.to_string()),
            None => std::future::pending().await,
        }
    }

    /// Takes note of an answer. After a failure, the known devices of older pods stay true.
    pub(crate) fn heard(&mut self, answer: Result<BTreeMap<String, Devices>, String>, pods: &Pods) {
        let asked = std::mem::take(&mut self.asked);
        match answer {
            Ok(answer) => {
                let of = |uid: &Uid| answer.get(&*pods.get(uid)?.name).cloned();
                for uid in asked {
                    let devices = of(&uid).unwrap_or_default();
                    self.known.entry(uid).or_insert(devices);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the kubelet does not tell which devices pods have");
                self.not_before = Instant::now() + RETRY_AFTER;
            }
        }
    }

    /// The devices of each pod, in the order of the pods' uids.
    pub(crate) fn of_pods(&self) -> Vec<PodDevices> {
        let of = |(uid, devices): (&Uid, &Devices)| {
            let uid = Arc::clone(uid);
            let one = move |(resource, ids): (&String, &Vec<String>)| PodDevices {
                uid: uid.to_string(),
                resource: resource.clone(),
                ids: ids.clone(),
            };
            devices.iter().map(one).collect::<Vec<_>>()
        };
        self.known.iter().flat_map(of).collect()
    }
}
