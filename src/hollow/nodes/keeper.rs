//! Keeps the leases of living nodes, and marks those of dead ones as the node lifecycle controller would.

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

/// The nodes are kept in this many turns, so that the writes spread over the interval.
const TURNS: u64 = 10;
/// Lease writes under way at a time.
const WRITES: usize = 8;

/// Whether a kubelet lives.
#[derive(Debug, Clone, Copy)]
pub(super) enum Power {
    On,
    Off { since: Instant, marked: bool },
}

/// One node of the set.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) shape: NodeShape,
    pub(super) number: u16,
    pub(super) power: Power,
    /// Its agent lives, while the kubelet does.
    pub(super) agent: bool,
    /// When its agent sent the last renewal of its Lease that succeeded.
    pub(super) renewed: Option<Timestamp>,
}

/// The nodes of a set, dead or alive, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory(Arc<Mutex<BTreeMap<String, Entry>>>);

impl Directory {
    /// Never held over an await. A panic elsewhere leaves the map whole, so poison says nothing.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews leases.
pub(super) struct Keeper {
    pub(super) directory: Directory,
    pub(super) registry: Registry,
    pub(super) clock: Clock,
    /// Who is told of the renewals of agents.
    pub(super) kubelets: mpsc::Sender<Command>,
    pub(super) renew_every: Duration,
    /// When to call a dead node unreachable; `None` leaves that to a real node lifecycle controller.
    pub(super) dead_after: Option<Duration>,
}

impl Keeper {
    /// Runs for ever; drop the future to stop.
    pub(super) async fn run(self) {
        let mut turns = interval(self.renew_every / u32::try_from(TURNS).unwrap_or(1));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turn = 0;
        loop {
            turns.tick().await;
            let due: Vec<(String, Power, bool)> = {
                let nodes = self.directory.lock();
                let due = nodes.iter().filter(|(name, _)| fnv64(name) % TURNS == turn);
                due.map(|(name, entry)| (name.clone(), entry.power, entry.agent)).collect()
            };
            futures::stream::iter(due)
                .for_each_concurrent(WRITES, |(name, power, agent)| self.keep(name, power, agent))
                .await;
            turn = (turn + 1) % TURNS;
        }
    }

    async fn keep(&self, name: String, power: Power, agent: bool) {
        let kept = match (power, self.dead_after) {
            (Power::On, _) => self.renew(&name, agent).await,
            (Power::Off { since, marked: false }, Some(grace)) if since.elapsed() >= grace => {
                self.mark(&name, since).await
            }
            (Power::Off { .. }, _) => Ok(()),
        };
        if let Err(error) = kept {
            warn!("hollow nodes: {error}; tried again in {:?}", self.renew_every);
        }
    }

    async fn renew(&self, name: &str, agent: bool) -> Result<(), Error> {
        self.registry.renew(name, self.clock.now()).await?;
        if !agent {
            return Ok(());
        }
        // What counts is when it was sent: the operator counts from when it saw it, which is later.
        let at = self.clock.now();
        self.registry.renew_agent(name, at).await?;
        if let Some(entry) = self.directory.lock().get_mut(name) {
            entry.renewed = Some(at);
        }
        // A closed channel means shutdown.
        let _ = self.kubelets.send(Command::Renewed { name: name.to_owned(), at }).await;
        Ok(())
    }

    /// Marks a dead node as unreachable; if its kubelet came back meanwhile, takes that back.
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
