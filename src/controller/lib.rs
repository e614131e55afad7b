//! Kubernetes I/O: watches become events, effects become API calls, and one of several operators leads. There is no
//! policy here.

mod cache;
pub mod convert;
mod engine;
mod health;
mod impatient;
mod journal;
pub mod kinds;
mod leader;
mod metrics;
mod publisher;
pub mod render;
mod serving;
mod surroundings;
mod watch;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::engine::Engine;
use self::health::Health;
use self::leader::{Election, HighestCluster};
pub use self::surroundings::{Clock, Cycles, Pauses, Surroundings, Thinking};
use self::writer::{Context, Writer};

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where `/livez` and `/readyz` are served; nowhere if unset.
    pub health_addr: Option<SocketAddr>,
    /// Where `/metrics` is served; nowhere if unset.
    pub metrics_addr: Option<SocketAddr>,
    /// Elect a leader by a Lease in this namespace. Without one the operator decides at once: only for a cluster in which
    /// no other can run.
    pub leader_elect_namespace: Option<String>,
    /// Who this is, in the Lease and in events: the pod's name.
    pub identity: String,
}

/// Why the operator ended by itself.
#[derive(Debug, Error)]
pub enum Error {
    /// No client can be made of the configuration.
    #[error("the API server cannot be reached with this configuration: {0}")]
    Client(#[from] Box<kube::Error>),
    /// Another operator may lead now. This process must end, so as not to disturb that one.
    #[error("leadership was lost; restart to stand for it again")]
    LeadershipLost,
    /// A server of health or metrics ended.
    #[error("health or metrics cannot be served: {0}")]
    Health(#[from] std::io::Error),
}

/// The lease's name.
const LEASE: &str = "slotwright-operator";
/// The most changes that wait for the engine. A watch that has one more waits itself.
const AHEAD: usize = 4096;

/// Runs the operator until `stop`, on the cluster that `config` names.
///
/// # Errors
/// When there is no client, an address cannot be bound, or the leadership was lost.
pub async fn run(config: Config, options: Options, stop: CancellationToken) -> Result<(), Error> {
    run_in(Surroundings::of_a_process(client(config)?), options, stop).await
}

/// Runs the operator until `stop`, in these surroundings. If the future is dropped, all tasks of the operator end.
///
/// # Errors
/// When an address cannot be bound, or the leadership was lost.
pub async fn run_in(
    surroundings: Surroundings,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    let health = Arc::new(Health::default());
    let clock = surroundings.clock;
    // Cancelled once the last write is answered: until then the lease is renewed.
    let done = CancellationToken::new();
    let mut aside: JoinSet<std::io::Result<()>> = JoinSet::new();
    if let Some(addr) = options.health_addr {
        aside.spawn(serving::serve_at(addr, health::probes(Arc::clone(&health), clock)));
    }
    if let Some(addr) = options.metrics_addr {
        aside.spawn(serving::serve_at(addr, health::metrics(Arc::clone(&health))));
    }
    let lost = CancellationToken::new();
    let mut keeper = None;
    let mut highest = HighestCluster::default();
    if let Some(namespace) = &options.leader_elect_namespace {
        let election = Election::new(surroundings.client.clone(), clock, namespace, LEASE, &options.identity);
        tokio::select! {
            biased;
            won = election.win(&stop) => if !won { return Ok(()) },
            Some(ended) = aside.join_next() => return health_ended(ended),
        }
        tracing::info!(identity = options.identity, "this operator leads");
        highest = election.highest_cluster();
        let (done, lost) = (done.clone(), lost.clone());
        let keep = async move { election.keep(done, lost).await };
        keeper = Some(AbortOnDropHandle::new(tokio::spawn(keep)));
    }
    health.leads(clock.now());
    let ending = stop.child_token();
    let engine = lead(surroundings, &options, (health, highest), ending.clone());
    tokio::select! {
        biased;
        // A former leader may do nothing more: the engine is dropped, and its calls with it.
        () = lost.cancelled() => return Err(Error::LeadershipLost),
        () = engine => {}
        Some(ended) = aside.join_next() => return health_ended(ended),
    }
    done.cancel();
    if let Some(keeper) = keeper {
        let _ = keeper.await;
    }
    Ok(())
}

fn health_ended(ended: Result<std::io::Result<()>, tokio::task::JoinError>) -> Result<(), Error> {
    match ended {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::Health(std::io::Error::other(error))),
    }
}

fn client(mut config: Config) -> Result<Client, Error> {
    // The writer retries, with a bound and a log.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(4));
    // Longer than a watch may be silent: a connection that brings no byte for this long is lost.
    config.read_timeout = Some(Duration::from_mins(5));
    Client::try_from(config).map_err(|error| Error::Client(Box::new(error)))
}

/// Watches and decides until `stop`.
async fn lead(
    surroundings: Surroundings,
    options: &Options,
    (health, highest): (Arc<Health>, HighestCluster),
    stop: CancellationToken,
) {
    let Surroundings { client, clock, cycles, chance } = surroundings;
    let (out, seen) = mpsc::channel(AHEAD);
    let mut watches = JoinSet::new();
    let pauses = Pauses::new(chance);
    let watching = impatient::impatient(client.clone());
    for kind in kinds::ALL {
        watches.spawn((kind.watch)(watching.clone(), &pauses, out.clone()));
    }
    drop(out);
    let writer = Writer::new(Context::new(client, clock, &options.identity));
    tokio::select! {
        biased;
        () = Engine::new(writer, (health, highest), clock, cycles).run(seen, stop) => {}
        Some(Err(fault)) = watches.join_next() => {
            // A fault of the operator's own ends the operator: without the watch it would be blind for that kind.
            if let Ok(panic) = fault.try_into_panic() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
