//! Kubernetes I/O: watches become events, effects become API calls, and one of several operators leads. There is no
//! policy here.

pub mod archive;
mod cache;
pub mod convert;
pub mod creators;
mod engine;
mod health;
mod journal;
pub mod kinds;
mod leader;
mod metrics;
mod packed;
mod pool_lease;
mod progress;
pub mod proxy;
mod publisher;
pub mod render;
pub mod seal;
pub mod serving;
mod start;
mod surroundings;
mod uid;
mod watch;
mod writer;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::archive::Archive;
use self::creators::{Creators, Stamps};
use self::engine::Engine;
use self::health::Health;
use self::leader::{Election, Held, HighestClusterId};
use self::pool_lease::Taken;
use self::seal::Seals;
pub use self::surroundings::{Clock, Cycles, Surroundings, Thinking};
use self::watch::Watching;
use self::writer::{Tools, Writer};

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where `/livez` and `/readyz` are served; nowhere if unset.
    pub health_addr: Option<SocketAddr>,
    /// Where `/metrics` is served; nowhere if unset.
    pub metrics_addr: Option<SocketAddr>,
    /// The namespace of the Lease by which operators elect a leader. If unset, there is no election: this is safe only in a cluster in
    /// which no other operator can run.
    pub leader_elect_namespace: Option<String>,
    /// Where the history of jobs is kept; nowhere if unset.
    pub history: Option<Box<archive::Options>>,
    /// Whether the admission webhook of this process can answer; unset if the process has none. Until the webhook can, the process is not
    /// ready.
    pub webhook_serves: Option<tokio::sync::watch::Receiver<bool>>,
    /// The name of this operator in the Lease and in events: the name of the operator's pod. Two operators may have the same name.
    pub identity: String,
    /// The uid of the pod that the operator runs in. An operator that starts again in its pod takes back at once the Leases that its
    /// predecessor held there: a kubelet starts a container only after the container before has ended. If unset, such Leases are
    /// another's, and have to expire first.
    pub pod_uid: Option<String>,
}

impl Options {
    /// The name by which this operator holds Leases. Each process has a name of its own, made with the random number `chance`, or each pod
    /// if the uid of the pod is known. Two operators that were given the same identity thus never take one Lease for the Lease of both.
    fn holder(&self, chance: u64) -> String {
        match &self.pod_uid {
            Some(uid) => format!("{}_{uid}", self.identity),
            None => format!("{}_{chance:016x}", self.identity),
        }
    }
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
    /// Another operator, of another release or without an election, decides about the same nodes and pods.
    #[error(
        "the pool of this cluster is {owner}'s, which is at work (Lease {ns}/{lease}): two operators would evict each \
         other's pods. Remove one of the two operators; this operator can start 30 s after the other has stopped",
        ns = kinds::lease::NAMESPACE,
        lease = api::labels::POOL_LEASE
    )]
    PoolTaken {
        /// The owner of the pool: namespace and name of the other operator's leader Lease, or the name by which the other operator
        /// holds Leases if that operator runs without an election.
        owner: String,
    },
    /// The machine's clock has jumped ahead.
    #[error(
        "the machine's clock has jumped ahead by {0:#} since the operator started; restart to go by the new time"
    )]
    ClockBehind(SignedDuration),
    /// An address of health, metrics or the history cannot be bound.
    #[error("health, metrics or the history cannot be served: {0}")]
    Health(#[from] std::io::Error),
}

/// The lease's name.
const LEASE: &str = "slotwright-operator";
/// The most changes that wait for the engine. A watch that has one more waits itself.
const AHEAD: usize = 4096;

/// Runs the operator until `stop`, on the cluster that `config` names. The operator believes a seal or a stamp about who created
/// a job.
///
/// # Errors
/// When there is no client, an address cannot be bound, the leadership was lost, the pool is another operator's, or the machine's
/// clock has jumped ahead.
pub async fn run(
    config: Config,
    options: Options,
    (seals, stamps): (Seals, Stamps),
    stop: CancellationToken,
) -> Result<(), Error> {
    let (client, elections) = (client(config.clone())?, client(config)?);
    let surroundings = Surroundings { seals, stamps, ..Surroundings::of_a_process(client, elections) };
    let clock = surroundings.clock;
    tokio::select! {
        biased;
        ended = run_in(surroundings, options, stop) => ended,
        ahead = clock.falls_behind() => Err(Error::ClockBehind(ahead)),
    }
}

/// Runs the operator until `stop`, in these surroundings. If the future is dropped, all tasks of the operator end.
///
/// # Errors
/// When an address cannot be bound, the leadership was lost, or the pool is another operator's.
pub async fn run_in(
    surroundings: Surroundings,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    let health = Arc::new(Health::beside(options.webhook_serves.clone()));
    let clock = surroundings.clock;
    // Before the operator stands for election: an operator that cannot serve keeps no Lease from others.
    let mut aside = JoinSet::new();
    if let Some(addr) = options.health_addr {
        aside.spawn(serving::serve_at(addr, health::probes(Arc::clone(&health), clock)).await?);
    }
    if let Some(addr) = options.metrics_addr {
        aside.spawn(serving::serve_at(addr, health::metrics(Arc::clone(&health))).await?);
    }
    if let Some(history) = &options.history
        && let Some((addr, token)) = history.serve.clone()
    {
        aside.spawn(serving::serve_at(addr, archive::router(&history.directory, token, clock)).await?);
    }
    until_a_fault(Box::pin(stand(surroundings, options, health, stop)), &mut aside).await
}

/// Stands for election, and leads, until `stop`.
async fn stand(
    surroundings: Surroundings,
    options: Options,
    health: Arc<Health>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let clock = surroundings.clock;
    let (lost, highest) = (CancellationToken::new(), HighestClusterId::default());
    let lease = options.leader_elect_namespace.as_deref().map(|namespace| (namespace, LEASE));
    let mut leading = None;
    let client = answers::guarded(surroundings.elections.clone());
    let holder = options.holder(surroundings.chance);
    if let Some(lease) = lease {
        let election = Election::new(client.clone(), clock, lease, &holder, highest.clone());
        let Some(held) = election.win(&stop).await else { return Ok(()) };
        leading = Some(RenewedLease::new(election, held, &lost));
        tracing::info!(identity = holder, "this operator leads");
    }
    let owner = pool_lease::owner(lease, &holder);
    let of_pool = pool_lease::election(client, clock, &owner, highest.clone());
    let owning = tokio::select! {
        biased;
        () = lost.cancelled() => return Err(Error::LeadershipLost),
        taken = pool_lease::take(&of_pool, &health, &stop) => match taken {
            Ok(held) => held.map(|held| RenewedLease::new(of_pool, held, &lost)),
            Err(Taken(owner)) => return Err(Error::PoolTaken { owner }),
        },
    };
    if owning.is_some() {
        health.leads(clock.now());
        // The future is in a box, since the caller keeps the future of the operator on the stack.
        let engine = Box::pin(lead(surroundings, &options, (health, highest), stop.child_token()));
        tokio::select! {
            biased;
            // A former leader may do nothing more: the engine is dropped, and its calls with it.
            () = lost.cancelled() => return Err(Error::LeadershipLost),
            () = engine => {}
        }
    }
    // The pool's Lease first: the next leader of this release takes that Lease under the same name.
    for kept in [owning, leading].into_iter().flatten() {
        kept.give_back().await;
    }
    Ok(())
}

/// A lease that is renewed until the operator gives it up. If this value is dropped, renewing ends.
struct RenewedLease {
    done: CancellationToken,
    keeper: AbortOnDropHandle<()>,
}

impl RenewedLease {
    /// Renews the lease. If that fails for too long, `lost` is cancelled.
    fn new(lease: Election, held: Held, lost: &CancellationToken) -> Self {
        let (done, lost) = (CancellationToken::new(), lost.clone());
        let until = done.clone();
        let keep = async move { lease.keep(held, until, lost).await };
        Self { done, keeper: AbortOnDropHandle::new(tokio::spawn(keep)) }
    }

    async fn give_back(self) {
        self.done.cancel();
        let _ = self.keeper.await;
    }
}

/// A client for the operator, which does not retry by itself.
///
/// # Errors
/// When no client can be made of the configuration.
pub fn client(config: Config) -> Result<Client, Error> {
    Client::try_from(answers::for_a_daemon(config)).map_err(|error| Error::Client(Box::new(error)))
}

/// Says again and again that the operator lives, whose loop has not begun. Without this, `/livez` would end an operator that waits for an
/// answer of the API server. Never returns.
async fn beat(health: &Health, clock: Clock) {
    loop {
        health.leads(clock.now());
        tokio::time::sleep(BEAT).await;
    }
}

/// How often an operator that waits for its first answers says that it lives.
const BEAT: Duration = Duration::from_secs(10);

/// Watches and decides until `stop`.
async fn lead(
    surroundings: Surroundings,
    options: &Options,
    (health, highest): (Arc<Health>, HighestClusterId),
    stop: CancellationToken,
) {
    let Surroundings { client, elections: _, clock, cycles, chance, seals, stamps, pods_at_once, shelf } =
        surroundings;
    let (out, seen) = mpsc::channel(AHEAD);
    let mut tasks = JoinSet::new();
    let pauses = answers::Pauses::new(chance);
    let watching = Watching { client: client.clone(), clock, health: Arc::clone(&health) };
    for kind in kinds::ALL {
        tasks.spawn((kind.watch)(watching.clone(), &pauses, out.clone()));
    }
    // Only the writer's client is guarded here. The watches guard theirs themselves, so that each answer is checked
    // once.
    let client = answers::guarded(client);
    drop(out);
    let mut creators = Creators::new(seals, stamps, client.clone(), &pauses);
    let archive = match shelf {
        Some(shelf) if options.history.is_none() => Archive::on(shelf),
        _ => begin_history(options, clock, &health, &pauses, &mut tasks),
    };
    let tools = Tools::new(client, clock, &options.identity).counted(health.failed_calls());
    let writer = Writer::new(tools);
    let waiting = Arc::clone(&health);
    // The pool is told each job with its creator, so `creators` must be ready before the engine takes in the first job.
    tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = creators.wait() => {}
        () = beat(&waiting, clock) => {}
    }
    let engine = Engine::new(writer, (health, highest), clock, (cycles, creators), archive);
    let engine = engine.creating_at_once(pods_at_once);
    until_a_fault(engine.run(seen, stop), &mut tasks).await;
}

/// The result of a task that has ended; `None` if the task was cancelled.
///
/// # Panics
/// With the panic of the task. A fault ends the operator: without a watch the operator would be blind for a kind, without the history's
/// thread the ads of all procs would be lost, and the pool would wait for ever for the outcome of a write.
fn unless_cancelled<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(result) => Some(result),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// Runs the engine until it ends, or until the fault of a task.
///
/// # Panics
/// With the panic of the task.
async fn until_a_fault<T>(engine: impl Future<Output = T>, tasks: &mut JoinSet<()>) -> T {
    let mut engine = pin!(engine);
    loop {
        tokio::select! {
            biased;
            ended = &mut engine => return ended,
            Some(ended) = tasks.join_next() => {
                unless_cancelled(ended);
            }
        }
    }
}

/// Begins the thread that writes the history. Puts two tasks into `tasks`: the task that ships the history, and a task that fails if the
/// thread fails.
fn begin_history(
    options: &Options,
    clock: Clock,
    health: &Health,
    pauses: &answers::Pauses,
    tasks: &mut JoinSet<()>,
) -> Archive {
    let Some(history) = &options.history else { return Archive::off() };
    let progress = archive::HistoryProgress::new(history.elastic.is_some());
    if let Some(elastic) = history.elastic.clone() {
        let (directory, pauses) = (history.directory.clone(), pauses.of("adstash"));
        tasks.spawn(archive::ship(elastic, directory, clock, pauses, health.history(), progress.clone()));
    }
    Archive::begin(history, clock, health.history(), progress, tasks)
}

#[cfg(test)]
mod tests;
