//! Hollow nodes: kubelets without containers.
//!
//! Each hollow node registers a Node, keeps a Lease, admits the pods bound to it as a kubelet does, and lets them
//! "run": Pending, Running, then Succeeded or Failed when the time given by an annotation is over (see [`script`]).
//! They are plain clients of the Kubernetes HTTP API, so the same code serves the embedded API server and a real
//! kube-apiserver that has no kubelets. One process runs a thousand of them: one watch, one timer, a few writers.
//!
//! [`core`] decides and is pure; `kubelets` (watch and timers), `writer`, `keeper` (leases) and `registry` (Node
//! objects) do the I/O. [`HollowNodes`] is the handle.
//!
//! A node may have an agent ([`NodeShape::agent`]): it senses what an [`Owner`] does, holds pods still and kills them as
//! their annotations ask, answers benchmarks, and says all that in a NodeReport. [`agent`] is pure, `agents` does the I/O.
//!
//! What they leave out: container restarts (a pod whose annotation gives a runtime ends once, whatever its restart
//! policy), probes, init containers that take time, logs and exec, eviction under pressure, static pods. On a dead
//! node containers keep running, as they do under a dead kubelet: what ended meanwhile is reported after a restart.
//! With [`Options::lifecycle`] they also stand in for the node lifecycle controller (Ready=Unknown and taints on dead
//! nodes) and the pod garbage collector (pods of removed nodes), but nobody evicts pods by taints. For how long a pod stood
//! still is forgotten when its kubelet starts anew.

pub mod admission;
pub mod agent;
mod agents;
mod clock;
pub mod core;
pub mod devices;
mod keeper;
mod kubelets;
pub mod life;
pub mod owner;
pub mod placement;
mod registry;
pub mod resources;
pub mod script;
pub mod shape;
pub mod shapes;
pub mod status;
pub mod view;
mod writer;

#[cfg(test)]
mod core_tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::agent::Agent;
use self::agents::{Agents, Word};
use self::clock::Clock;
use self::core::NodeState;
use self::devices::Assigned;
use self::keeper::{Directory, Entry, Keeper, Power};
use self::kubelets::{Command, Kubelets};
use self::registry::{Readiness, Registry};
use self::view::PodView;
use self::writer::{Counters, Writers};

pub use self::owner::Owner;
pub use self::registry::{Error, LEASE_NAMESPACE, NOT_READY, UNREACHABLE, UNSCHEDULABLE};
pub use self::shape::NodeShape;

/// Registrations under way at a time.
const REGISTRATIONS: usize = 16;

/// How a set of hollow nodes behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often each node renews its lease; kubelet's default is 10 s. At least 10 ms.
    pub lease_interval: Duration,
    /// What the lease says it is good for; kubelet's default is 40 s. Whole seconds.
    pub lease_duration: Duration,
    /// Status writes under way at a time, over all nodes.
    pub writers: usize,
    /// Do what the node lifecycle controller and the pod garbage collector would. Harmless beside real ones.
    pub lifecycle: bool,
    /// With `lifecycle`: when a killed node becomes Ready=Unknown and unreachable. The controller's default is 40 s.
    pub dead_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease_interval: Duration::from_secs(10),
            lease_duration: Duration::from_secs(40),
            writers: 16,
            lifecycle: true,
            dead_after: Duration::from_secs(40),
        }
    }
}

/// What the writers of a set did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Status patches and deletes that the API server took.
    pub written: u64,
    /// Attempts that were repeated.
    pub retried: u64,
    /// Writes that had become pointless (the pod is gone) or whose kubelet died.
    pub dropped: u64,
}

/// A running set of hollow nodes. Dropping it stops them at once, like kill -9; [`HollowNodes::shutdown`] lets writes
/// finish. Nodes, leases and pods stay in the API either way, and a new set with the same shapes continues them.
pub struct HollowNodes {
    client: Client,
    options: Options,
    clock: Clock,
    registry: Registry,
    directory: Directory,
    commands: mpsc::Sender<Command>,
    words: mpsc::UnboundedSender<Word>,
    counters: Arc<Counters>,
    stop: DropGuard,
    shell: JoinHandle<()>,
    keeper: JoinHandle<()>,
    agents: JoinHandle<()>,
}

impl HollowNodes {
    /// Registers a node for each shape and starts its kubelet. Returns when all nodes are registered, Ready and
    /// without not-ready taints; pods bound to them are picked up a moment later.
    pub async fn start(client: Client, shapes: Vec<NodeShape>, options: Options) -> Result<Self, Error> {
        let clock = Clock::new();
        let registry = Registry::new(&client, options.lease_duration);
        let directory = Directory::default();
        for shape in shapes {
            enlist(&directory, shape)?;
        }
        registry.prepare().await?;
        let mut entries: Vec<Entry> = directory.lock().values().cloned().collect();
        let register = |entry: &Entry| {
            let (registry, entry) = (registry.clone(), entry.clone());
            async move { registry.register(&entry.shape, &core::host_ip(entry.number), clock.now()).await }
        };
        let registrations: Vec<_> = entries.iter().map(register).collect();
        futures::stream::iter(registrations).buffer_unordered(REGISTRATIONS).try_collect::<Vec<()>>().await?;

        for entry in entries.iter_mut().filter(|entry| entry.agent) {
            let (name, at) = (entry.shape.name.as_str(), clock.now());
            registry.renew_agent(name, at).await?;
            entry.renewed = Some(at);
            if let Some(known) = directory.lock().get_mut(name) {
                known.renewed = entry.renewed;
            }
        }
        let states = entries.iter().map(|e| (e.shape.name.clone(), state(e))).collect();
        let writers = Writers::start(&client, options.writers, writer::BACKOFF);
        let counters = Arc::clone(&writers.counters);
        let stop = CancellationToken::new();
        let (commands, inbox) = mpsc::channel(16);
        let (words, heard) = mpsc::unbounded_channel();
        for Entry { shape, .. } in entries.iter().filter(|entry| entry.agent) {
            let agent = Box::new(Agent::new(shape, clock.now()));
            words.send(Word::Start(shape.name.clone(), agent)).map_err(|_| Error::Down)?;
        }
        let agents = Agents::new(&client, clock, registry.clone());
        let agents = tokio::spawn(agents.run(heard, stop.clone()));
        let kubelets = Kubelets::new(clock, states, writers, words.clone());
        let shell = tokio::spawn(kubelets.run(client.clone(), inbox, stop.clone()));
        let keeper = Keeper {
            directory: directory.clone(),
            registry: registry.clone(),
            clock,
            kubelets: commands.clone(),
            renew_every: options.lease_interval.max(Duration::from_millis(10)),
            dead_after: options.lifecycle.then_some(options.dead_after),
        };
        let ended = stop.clone();
        let keeper = tokio::spawn(async move {
            ended.run_until_cancelled(keeper.run()).await;
        });
        let stop = stop.drop_guard();
        Ok(Self {
            client,
            options,
            clock,
            registry,
            directory,
            commands,
            words,
            counters,
            stop,
            shell,
            keeper,
            agents,
        })
    }

    /// The names of all nodes of the set, dead ones too.
    pub fn names(&self) -> Vec<String> {
        self.directory.lock().keys().cloned().collect()
    }

    /// Adds a node.
    pub async fn add(&self, shape: NodeShape) -> Result<(), Error> {
        let name = shape.name.clone();
        enlist(&self.directory, shape)?;
        self.boot(&name).await
    }

    /// The kubelet dies, and the agent: no lease renewals, no pod updates; writes that are not under way are lost.
    pub async fn kill(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |entry| entry.power = Power::Off { since: Instant::now(), marked: false })?;
        self.say(Word::Stop(name.to_owned()))?;
        let (done, answer) = oneshot::channel();
        self.ask(Command::Kill { name: name.to_owned(), done }, answer).await
    }

    /// Starts the kubelet again, dead or alive: it registers, takes over the pods that run, and reports what ended.
    pub async fn restart(&self, name: &str) -> Result<(), Error> {
        self.kill(name).await?;
        self.boot(name).await
    }

    /// The agent of a node dies: no lease renewals, no reports, and nothing is done about pods. What it holds still stays so.
    pub async fn kill_agent(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |entry| entry.agent = false)?;
        self.say(Word::Stop(name.to_owned()))?;
        self.agent_works(name, false).await
    }

    /// Starts the agent of a node, also of one whose shape has none: that one's owner never comes by itself.
    pub async fn start_agent(&self, name: &str) -> Result<(), Error> {
        let shape = self.entry(name, |entry| {
            entry.agent = true;
            entry.shape.clone()
        })?;
        let at = self.clock.now();
        self.registry.renew_agent(name, at).await?;
        self.say(Word::Start(name.to_owned(), Box::new(Agent::new(&shape, self.clock.now()))))?;
        self.renewed(name, at).await?;
        self.agent_works(name, true).await
    }

    /// The owner of a node sits down at it, with this load in processes. Nobody sees that on a node without an agent. From
    /// now on the owner does only what is said so.
    pub fn owner_comes(&self, name: &str, load: f64) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.say(Word::Owner(name.to_owned(), Some(load)))
    }

    /// The owner of a node goes.
    pub fn owner_goes(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.say(Word::Owner(name.to_owned(), None))
    }

    async fn agent_works(&self, name: &str, works: bool) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.ask(Command::Agent { name: name.to_owned(), works, done }, answer).await
    }

    fn say(&self, word: Word) -> Result<(), Error> {
        self.words.send(word).map_err(|_| Error::Down)
    }

    /// The kubelet reports the node as Ready or not; its pods go on. With [`Options::lifecycle`] the taints follow.
    pub async fn set_ready(&self, name: &str, ready: bool) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        let to = if ready { Readiness::Ready } else { Readiness::NotReady };
        self.registry.set_readiness(name, to, self.options.lifecycle || ready, self.clock.now()).await
    }

    /// Cordons the node (`kubectl cordon`).
    pub async fn cordon(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.registry.cordon(name, true).await
    }

    /// Takes the cordon away.
    pub async fn uncordon(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.registry.cordon(name, false).await
    }

    /// The machine is gone: the kubelet dies, Node and Lease are deleted. With [`Options::lifecycle`] its pods are
    /// failed and deleted.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.kill(name).await?;
        self.directory.lock().remove(name);
        self.registry.remove(name).await?;
        if !self.options.lifecycle {
            return Ok(());
        }
        let pods = self.pods_of(name).await?;
        self.commands.send(Command::Collect { pods }).await.map_err(|_| Error::Down)
    }

    /// The device ids that a pod holds, by resource; `None` when no living node runs it.
    pub async fn devices(&self, namespace: &str, name: &str) -> Result<Option<Assigned>, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask(Command::Devices { namespace: namespace.to_owned(), name: name.to_owned(), reply }, answer)
            .await
    }

    /// How many pods take resources on living nodes now: starting, running or stopping.
    pub async fn running(&self) -> Result<i64, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask(Command::Running { reply }, answer).await
    }

    /// What was written to pods so far.
    pub fn written(&self) -> Written {
        let Counters { written, retried, dropped } = self.counters.as_ref();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Written { written: read(written), retried: read(retried), dropped: read(dropped) }
    }

    /// Stops all kubelets after their queued writes, which get five seconds.
    pub async fn shutdown(self) {
        drop(self.stop);
        let ended =
            [("kubelets", self.shell.await), ("leases", self.keeper.await), ("agents", self.agents.await)];
        for (task, result) in ended {
            if let Err(error) = result {
                tracing::error!("hollow nodes: the task of {task} died: {error}");
            }
        }
    }

    /// Registers a known node and starts its kubelet with the pods that are bound to it.
    async fn boot(&self, name: &str) -> Result<(), Error> {
        // On before it registers: from here on nobody may mark the node as dead.
        let entry = self.entry(name, |entry| {
            entry.power = Power::On;
            entry.clone()
        })?;
        let booted = self.try_boot(&entry).await;
        if booted.is_err() {
            self.entry(name, |entry| entry.power = Power::Off { since: Instant::now(), marked: false })?;
        }
        booted
    }

    async fn try_boot(&self, entry: &Entry) -> Result<(), Error> {
        let Entry { shape, number, agent, .. } = entry;
        let mut renewed = None;
        self.registry.register(shape, &core::host_ip(*number), self.clock.now()).await?;
        let pods = self.pods_of(&shape.name).await?;
        if *agent {
            let at = self.clock.now();
            self.registry.renew_agent(&shape.name, at).await?;
            renewed = Some(at);
            self.say(Word::Start(shape.name.clone(), Box::new(Agent::new(shape, self.clock.now()))))?;
        }
        // By the renewal before: what it ends is ended before the new one counts.
        let state = Box::new(state(entry));
        let (done, answer) = oneshot::channel();
        self.ask(Command::Start { state, pods, done }, answer).await?;
        match renewed {
            Some(at) => self.renewed(&shape.name, at).await,
            None => Ok(()),
        }
    }

    /// The agent of a node sent a renewal of its Lease then, and it succeeded.
    async fn renewed(&self, name: &str, at: jiff::Timestamp) -> Result<(), Error> {
        self.entry(name, |entry| entry.renewed = Some(at))?;
        self.commands.send(Command::Renewed { name: name.to_owned(), at }).await.map_err(|_| Error::Down)
    }

    async fn pods_of(&self, node: &str) -> Result<Vec<PodView>, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let bound = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let listed = pods.list(&bound).await;
        let failed = |source| Error::Api {
            node: node.to_owned(),
            action: "listing its pods",
            source: Box::new(source),
        };
        Ok(listed.map_err(failed)?.items.iter().filter_map(PodView::from_pod).collect())
    }

    fn entry<T>(&self, name: &str, read: impl FnOnce(&mut Entry) -> T) -> Result<T, Error> {
        self.directory.lock().get_mut(name).map(read).ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    async fn ask<T>(&self, command: Command, answer: oneshot::Receiver<T>) -> Result<T, Error> {
        self.commands.send(command).await.map_err(|_| Error::Down)?;
        answer.await.map_err(|_| Error::Down)
    }
}

/// A kubelet that starts, with what its node's agent promised.
fn state(entry: &Entry) -> NodeState {
    let mut state = NodeState::new(&entry.shape, entry.number);
    state.set_agent(entry.agent);
    state.set_renewed(entry.renewed);
    state
}

/// Gives a new node the lowest free number: numbers make addresses.
fn enlist(directory: &Directory, shape: NodeShape) -> Result<(), Error> {
    let mut nodes = directory.lock();
    if nodes.contains_key(&shape.name) {
        return Err(Error::Duplicate(shape.name));
    }
    let taken: std::collections::HashSet<u16> = nodes.values().map(|entry| entry.number).collect();
    let number = (1..u16::MAX).find(|number| !taken.contains(number)).unwrap_or(u16::MAX);
    let agent = shape.agent.is_some();
    nodes.insert(shape.name.clone(), Entry { shape, number, power: Power::On, agent, renewed: None });
    Ok(())
}
