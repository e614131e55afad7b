//! Hollow nodes: kubelets without containers.
//!
//! Each hollow node registers a Node, renews a Lease, admits the pods that are bound to it as a kubelet does, and
//! pretends to run them: a pod is Pending, then Running, then Succeeded or Failed when the time that its annotation
//! gives is over (see [`script`]). The nodes are plain clients of the Kubernetes HTTP API, so the same code works
//! with the embedded API server and with a real kube-apiserver that has no kubelets. One process runs a thousand
//! nodes with one watch, one timer and a few writers.
//!
//! `core` decides what a kubelet does, and is pure. `kubelets` (watch and timers), `writer`, `keeper` (leases) and
//! `registry` (Node objects) do the I/O. [`HollowNodes`] is the handle for tests and the demo.
//!
//! A node may have an agent ([`NodeShape::agent`]). The agent senses what an [`Owner`] does, suspends and kills pods
//! as their annotations ask, runs benchmarks on request, and reports all that in a NodeReport. `agent` decides and
//! is pure; `agents` does the I/O.
//!
//! A pod ends as under a kubelet: its main container is reported as terminated while the phase is still Running; the
//! terminal phase follows a second after all containers have ended; then the kubelet deletes a pod whose deletion was
//! asked for, with grace period 0. A grace period that becomes shorter while containers stop has no effect, and
//! containers whose pod's object is gone end in their time.
//!
//! Hollow nodes leave out: container restarts (a pod whose annotation gives a runtime ends once, whatever its restart
//! policy), probes, init containers that take time, logs and exec, eviction under pressure, static pods.
//!
//! When a kubelet dies, its containers keep running, as they do under a real kubelet; after a restart the kubelet
//! reports what has ended meanwhile. A restarted kubelet does not remember for how long its pods were suspended.
//!
//! With [`Options::lifecycle`] the nodes also stand in for the node lifecycle controller (Ready=Unknown and taints on
//! dead nodes) and for the pod garbage collector (pods of removed nodes). Nothing evicts pods because of taints.

mod admission;
mod agent;
mod agents;
mod clock;
mod core;
mod devices;
mod keeper;
mod kubelets;
mod life;
mod owner;
mod placement;
mod registry;
pub mod resources;
pub mod script;
pub mod shape;
pub mod shapes;
mod status;
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
use self::agents::{AgentCommand, Agents};
use self::clock::Clock;
use self::core::NodeState;
use self::devices::Assigned;
use self::keeper::{Directory, Entry, Keeper, Power};
use self::kubelets::{Command, Kubelets};
use self::registry::{Readiness, Registry};
use self::view::PodView;
use self::writer::{Counters, Writers};

pub use self::owner::{Owner, Visit};
pub use self::registry::{Error, LEASE_NAMESPACE, NOT_READY, UNREACHABLE, UNSCHEDULABLE};
pub use self::shape::NodeShape;
pub use self::status::Lost;

/// The most registrations under way at a time.
const REGISTRATIONS: usize = 16;

/// How a set of hollow nodes behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often each node renews its lease, at least 10 ms. Kubelet's default is 10 s.
    pub lease_interval: Duration,
    /// The lease's `leaseDurationSeconds`; fractions of a second are dropped. Kubelet's default is 40 s.
    pub lease_duration: Duration,
    /// The most pod writes under way at a time, over all nodes.
    pub writers: usize,
    /// Whether to do the work of the node lifecycle controller and of the pod garbage collector too. This does no
    /// harm where the real ones run.
    pub lifecycle: bool,
    /// With `lifecycle`: how long after its kubelet's death a node becomes Ready=Unknown and unreachable. The
    /// controller's default is 40 s.
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

/// How many writes to pods a set has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodWrites {
    /// Status patches and deletes that succeeded.
    pub written: u64,
    /// Attempts that failed and were repeated.
    pub retried: u64,
    /// Writes that were given up, because the pod no longer exists or the kubelet died.
    pub dropped: u64,
}

/// A running set of hollow nodes.
///
/// Dropping the set stops its kubelets at once, like `kill -9`; [`HollowNodes::shutdown`] lets queued writes finish.
/// Either way the Nodes, Leases and pods stay in the API server, and a new set with the same shapes continues them.
pub struct HollowNodes {
    client: Client,
    options: Options,
    clock: Clock,
    registry: Registry,
    directory: Directory,
    commands: mpsc::Sender<Command>,
    agent_commands: mpsc::UnboundedSender<AgentCommand>,
    counters: Arc<Counters>,
    stop: DropGuard,
    shell: JoinHandle<()>,
    keeper: JoinHandle<()>,
    agents: JoinHandle<()>,
}

/// Registers the nodes, several at a time.
async fn register(registry: &Registry, entries: &[Entry], clock: Clock) -> Result<(), Error> {
    let register = |entry: &Entry| {
        let (registry, entry) = (registry.clone(), entry.clone());
        async move { registry.register(&entry.shape, &core::host_ip(entry.number), clock.now()).await }
    };
    let registrations: Vec<_> = entries.iter().map(register).collect();
    futures::stream::iter(registrations).buffer_unordered(REGISTRATIONS).try_collect::<Vec<()>>().await?;
    Ok(())
}

impl HollowNodes {
    /// Registers a node for each shape and starts its kubelet. Returns when all nodes are registered, Ready and
    /// without not-ready taints. The kubelets handle pods that are already bound to them a moment later.
    pub async fn start(client: Client, shapes: Vec<NodeShape>, options: Options) -> Result<Self, Error> {
        let clock = Clock::new();
        let registry = Registry::new(&client, options.lease_duration);
        let directory = Directory::default();
        for shape in shapes {
            add_entry(&directory, shape)?;
        }
        registry.prepare().await?;
        let mut entries: Vec<Entry> = directory.lock().values().cloned().collect();
        register(&registry, &entries, clock).await?;
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
        let (agent_commands, agent_inbox) = mpsc::unbounded_channel();
        for Entry { shape, .. } in entries.iter().filter(|entry| entry.agent) {
            let agent = Box::new(Agent::new(shape, clock.now()));
            agent_commands.send(AgentCommand::Start(shape.name.clone(), agent)).map_err(|_| Error::Down)?;
        }
        let agents = Agents::new(&client, clock, registry.clone());
        let agents = tokio::spawn(agents.run(agent_inbox, stop.clone()));
        let kubelets = Kubelets::new(clock, states, writers, agent_commands.clone());
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
            agent_commands,
            counters,
            stop,
            shell,
            keeper,
            agents,
        })
    }

    /// The names of all nodes of the set, those with a dead kubelet included.
    pub fn names(&self) -> Vec<String> {
        self.directory.lock().keys().cloned().collect()
    }

    /// Adds a node to the set and starts its kubelet.
    pub async fn add(&self, shape: NodeShape) -> Result<(), Error> {
        let name = shape.name.clone();
        add_entry(&self.directory, shape)?;
        self.boot(&name).await
    }

    /// Kills the kubelet and the agent of a node. From now on nobody renews the node's leases or updates its pods,
    /// and queued writes are lost.
    pub async fn kill(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |entry| entry.power = Power::Off { since: Instant::now(), marked: false })?;
        self.tell_agents(AgentCommand::Stop(name.to_owned()))?;
        let (done, answer) = oneshot::channel();
        self.ask(Command::Kill { name: name.to_owned(), done }, answer).await
    }

    /// Starts the kubelet of a node again, whether it runs or not. The new kubelet registers, continues the pods that
    /// run, and reports those that have ended.
    pub async fn restart(&self, name: &str) -> Result<(), Error> {
        self.kill(name).await?;
        self.boot(name).await
    }

    /// Starts a node again that loses its containers, as at a power cut. The new kubelet fails the pods that ran, and says
    /// of their containers what `lost` says.
    pub async fn reboot(&self, name: &str, lost: Lost) -> Result<(), Error> {
        self.kill(name).await?;
        self.boot_with(name, Some(lost)).await
    }

    /// Kills the agent of a node. From now on nobody renews its Lease, writes reports, or suspends, continues and
    /// kills pods. Suspended pods stay suspended.
    pub async fn kill_agent(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |entry| entry.agent = false)?;
        self.tell_agents(AgentCommand::Stop(name.to_owned()))?;
        self.agent_works(name, false).await
    }

    /// Starts the agent of a node. If the node's shape has no agent, its owner never comes by itself.
    pub async fn start_agent(&self, name: &str) -> Result<(), Error> {
        let shape = self.entry(name, |entry| {
            entry.agent = true;
            entry.shape.clone()
        })?;
        let at = self.clock.now();
        self.registry.renew_agent(name, at).await?;
        let agent = Box::new(Agent::new(&shape, self.clock.now()));
        self.tell_agents(AgentCommand::Start(name.to_owned(), agent))?;
        self.renewed(name, at).await?;
        self.agent_works(name, true).await
    }

    /// Lets the owner of a node sit down at it and make this load, in processes. From now on the visits in the node's
    /// shape no longer count. On a node without an agent this has no effect.
    pub fn owner_comes(&self, name: &str, load: f64) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.tell_agents(AgentCommand::Owner(name.to_owned(), Some(load)))
    }

    /// Lets the owner of a node leave it. From now on the visits in the node's shape no longer count.
    pub fn owner_goes(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.tell_agents(AgentCommand::Owner(name.to_owned(), None))
    }

    async fn agent_works(&self, name: &str, works: bool) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.ask(Command::Agent { name: name.to_owned(), works, done }, answer).await
    }

    fn tell_agents(&self, command: AgentCommand) -> Result<(), Error> {
        self.agent_commands.send(command).map_err(|_| Error::Down)
    }

    /// Lets the kubelet report the node as Ready or as not ready. The node's pods go on either way. The taints change
    /// with it if `ready` is true or [`Options::lifecycle`] is set.
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

    /// Uncordons the node (`kubectl uncordon`).
    pub async fn uncordon(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |_| ())?;
        self.registry.cordon(name, false).await
    }

    /// Removes a node from the set, as if its hardware were gone: kills the kubelet, and deletes the Node, its Leases
    /// and its NodeReport. With [`Options::lifecycle`] its pods are failed and deleted too.
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

    /// Deletes the Node and its Leases, while the machine and its kubelet run on (`kubectl delete node`). The kubelet goes
    /// on with its pods and reports their status. With [`Options::lifecycle`] its pods are failed and deleted.
    pub async fn delete_node(&self, name: &str) -> Result<(), Error> {
        self.entry(name, |entry| entry.registered = false)?;
        self.registry.remove(name).await?;
        if !self.options.lifecycle {
            return Ok(());
        }
        let pods = self.pods_of(name).await?;
        self.commands.send(Command::Collect { pods }).await.map_err(|_| Error::Down)
    }

    /// The device ids that are assigned to a pod, by resource; `None` if no running kubelet runs the pod.
    pub async fn devices(&self, namespace: &str, name: &str) -> Result<Option<Assigned>, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask(Command::Devices { namespace: namespace.to_owned(), name: name.to_owned(), reply }, answer)
            .await
    }

    /// How many pods take resources on nodes with a running kubelet: pods that start, run or stop.
    pub async fn running(&self) -> Result<i64, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask(Command::Running { reply }, answer).await
    }

    /// How many writes to pods the set has made so far.
    pub fn written(&self) -> PodWrites {
        let Counters { written, retried, dropped } = self.counters.as_ref();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        PodWrites { written: read(written), retried: read(retried), dropped: read(dropped) }
    }

    /// Stops all kubelets when their queued writes are done, or after five seconds.
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

    /// Registers a node of the set and starts its kubelet with the pods that are bound to it.
    async fn boot(&self, name: &str) -> Result<(), Error> {
        self.boot_with(name, None).await
    }

    /// Does the same as [`HollowNodes::boot`] for a node that may have lost its containers.
    async fn boot_with(&self, name: &str, lost: Option<Lost>) -> Result<(), Error> {
        // The power goes on before the kubelet registers, so that the keeper does not mark the node as dead meanwhile.
        let entry = self.entry(name, |entry| {
            (entry.power, entry.registered) = (Power::On, true);
            entry.clone()
        })?;
        let booted = self.try_boot(&entry, lost).await;
        if booted.is_err() {
            self.entry(name, |entry| entry.power = Power::Off { since: Instant::now(), marked: false })?;
        }
        booted
    }

    async fn try_boot(&self, entry: &Entry, lost: Option<Lost>) -> Result<(), Error> {
        let Entry { shape, number, agent, .. } = entry;
        let mut renewed = None;
        self.registry.register(shape, &core::host_ip(*number), self.clock.now()).await?;
        let pods = self.pods_of(&shape.name).await?;
        if *agent {
            let at = self.clock.now();
            self.registry.renew_agent(&shape.name, at).await?;
            renewed = Some(at);
            let agent = Box::new(Agent::new(shape, self.clock.now()));
            self.tell_agents(AgentCommand::Start(shape.name.clone(), agent))?;
        }
        // The kubelet starts with the previous renewal of the agent's Lease, and learns of the new one afterwards:
        // pods whose lease ran out before the new renewal must still end.
        let mut state = Box::new(state(entry));
        state.set_lost(lost);
        let (done, answer) = oneshot::channel();
        self.ask(Command::Start { state, pods, done }, answer).await?;
        match renewed {
            Some(at) => self.renewed(&shape.name, at).await,
            None => Ok(()),
        }
    }

    /// Records that the agent of a node renewed its Lease, with a request that it sent at this time.
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

/// The state of a kubelet that starts. Includes the last renewal of the agent's Lease: when pods must end follows
/// from it.
fn state(entry: &Entry) -> NodeState {
    let mut state = NodeState::new(&entry.shape, entry.number);
    state.set_agent(entry.agent);
    state.set_renewed(entry.renewed);
    state
}

/// Adds a node to the directory, with the lowest free number. Addresses are made from the number.
fn add_entry(directory: &Directory, shape: NodeShape) -> Result<(), Error> {
    let mut nodes = directory.lock();
    if nodes.contains_key(&shape.name) {
        return Err(Error::Duplicate(shape.name));
    }
    let taken: std::collections::HashSet<u16> = nodes.values().map(|entry| entry.number).collect();
    let number = (1..u16::MAX).find(|number| !taken.contains(number)).unwrap_or(u16::MAX);
    let agent = shape.agent.is_some();
    nodes.insert(
        shape.name.clone(),
        Entry { shape, number, power: Power::On, registered: true, agent, renewed: None },
    );
    Ok(())
}
