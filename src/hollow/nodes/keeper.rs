//! Renews the leases of running nodes, and marks dead nodes as unreachable, as the node lifecycle controller would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use super::clock::Clock;
use super::devices::fnv64;
use super::kubelets::Command;
use super::registry::{Error, Readiness, Registry};
use super::shape::NodeShape;

/// Into how many parts the renewal interval is divided. Each node has its turn in one of the parts, so that the
/// writes spread over the interval.
const TURNS: u64 = 10;
/// The most lease writes under way at a time.
const WRITES: usize = 8;

/// Whether a node's kubelet runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Power {
    On,
    /// The kubelet was killed at `since`; `marked` says whether the node has been marked as unreachable.
    Off {
        since: Instant,
        marked: bool,
    },
}

/// One node of the set.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) shape: NodeShape,
    pub(super) number: u16,
    pub(super) power: Power,
    /// Whether the node has a Node object. A kubelet does not make it again until it starts again.
    pub(super) registered: bool,
    /// Whether the node's agent runs whenever the kubelet runs.
    pub(super) agent: bool,
    /// When the node's agent sent the last successful renewal of its Lease.
    pub(super) renewed: Option<Timestamp>,
}

/// The nodes of a set by name, those with a dead kubelet included.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory(Arc<Mutex<BTreeMap<String, Entry>>>);

impl Directory {
    /// Locks the directory. The caller must not keep the guard across an `await`. A poisoned lock is used as it is:
    /// no change of the map can panic halfway.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that renews leases and marks dead nodes.
pub(super) struct Keeper {
    pub(super) directory: Directory,
    pub(super) registry: Registry,
    pub(super) clock: Clock,
    /// The shell of the kubelets, which must know of each renewal of an agent's Lease.
    pub(super) kubelets: mpsc::Sender<Command>,
    pub(super) renew_every: Duration,
    /// How long after its kubelet's death a node is marked as unreachable; `None` leaves that to a real node
    /// lifecycle controller.
    pub(super) dead_after: Option<Duration>,
}

impl Keeper {
    /// Runs for ever; the caller drops the future to stop it.
    pub(super) async fn run(self) {
        let mut turns = interval(self.renew_every / u32::try_from(TURNS).unwrap_or(1));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = 0;
        loop {
            turns.tick().await;
            let due: Vec<(String, Power, bool)> = {
                let nodes = self.directory.lock();
                let due =
                    nodes.iter().filter(|(name, entry)| entry.registered && fnv64(name) % TURNS == turn);
                due.map(|(name, entry)| (name.clone(), entry.power, entry.agent)).collect()
            };
            futures::stream::iter(due)
                .for_each_concurrent(WRITES, |(name, power, agent)| self.renew_or_mark(name, power, agent))
                .await;
            turn = (turn + 1) % TURNS;
        }
    }

    async fn renew_or_mark(&self, name: String, power: Power, agent: bool) {
        let done = match (power, self.dead_after) {
            (Power::On, _) => self.renew(&name, agent).await,
            (Power::Off { since, marked: false }, Some(grace)) if since.elapsed() >= grace => {
                self.mark(&name, since).await
            }
            (Power::Off { .. }, _) => Ok(()),
        };
        if let Err(error) = done {
            warn!("hollow nodes: {error}; tried again in {:?}", self.renew_every);
        }
    }

    async fn renew(&self, name: &str, agent: bool) -> Result<(), Error> {
        self.registry.renew(name, self.clock.now()).await?;
        if !agent {
            return Ok(());
        }
        // The lease counts from before the request is sent. The operator counts from when it sees the renewal, which
        // is later, so the node has ended the pods before the operator takes them for ended.
        let at = self.clock.now();
        self.registry.renew_agent(name, at).await?;
        if let Some(entry) = self.directory.lock().get_mut(name) {
            entry.renewed = Some(at);
        }
        // A closed channel means shutdown.
        let _ = self.kubelets.send(Command::Renewed { name: name.to_owned(), at }).await;
        Ok(())
    }

    /// Marks a dead node as unreachable. If its kubelet was started again meanwhile, marks it Ready again.
    async fn mark(&self, name: &str, dead_since: Instant) -> Result<(), Error> {
        self.registry.set_readiness(name, Readiness::Unknown, true, self.clock.now()).await?;
        let still_dead = self.directory.lock().get_mut(name).is_some_and(|entry| match &mut entry.power {
            Power::Off { since, marked } if *since == dead_since => {
                *marked = true;
                true
            }
            _ => false,
        });
        if still_dead {
            return Ok(());
        }
        self.registry.set_readiness(name, Readiness::Ready, true, self.clock.now()).await
    }
}
