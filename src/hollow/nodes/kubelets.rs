//! The shell around all kubelets of a set: one watch on pods, one timer, one queue of writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::agent::Held;
use super::agents::Word;
use super::clock::Clock;
use super::core::{Action, Event, NodeState, step};
use super::devices::Assigned;
use super::status;
use super::view::{Phase, PodView};
use super::writer::Writers;

/// How long a shutdown waits for writes under way.
const DRAIN: Duration = Duration::from_secs(5);

/// What the handle asks of the shell.
pub(super) enum Command {
    /// A kubelet starts; `pods` are those bound to its node.
    Start { state: Box<NodeState>, pods: Vec<PodView>, done: oneshot::Sender<()> },
    /// A kubelet dies: its writes that are not under way are lost.
    Kill { name: String, done: oneshot::Sender<()> },
    /// The node of these pods is gone for good: fail and delete them, as the pod garbage collector does.
    Collect { pods: Vec<PodView> },
    /// Which devices does this pod hold?
    Devices { namespace: String, name: String, reply: oneshot::Sender<Option<Assigned>> },
    /// The agent of a node starts to do as pods ask, or no longer does.
    Agent { name: String, works: bool, done: oneshot::Sender<()> },
    /// The agent of a node sent a renewal of its Lease then, and it succeeded.
    Renewed { name: String, at: Timestamp },
    /// How many pods do the living kubelets run?
    Running { reply: oneshot::Sender<i64> },
}

struct Kubelet {
    state: NodeState,
    wake: Option<Timestamp>,
    /// What its agent was told of its pods.
    held: Option<Held>,
    alive: CancellationToken,
}

/// All living kubelets of a set.
pub(super) struct Kubelets {
    clock: Clock,
    living: HashMap<String, Kubelet>,
    /// Next wake of each kubelet that has one.
    wakes: BTreeSet<(Timestamp, String)>,
    writers: Writers,
    agents: mpsc::UnboundedSender<Word>,
    /// Pods of a listing that is not complete yet.
    listing: Vec<PodView>,
}

impl Kubelets {
    pub(super) fn new(
        clock: Clock,
        states: Vec<(String, NodeState)>,
        writers: Writers,
        agents: mpsc::UnboundedSender<Word>,
    ) -> Self {
        let kubelet = |state| Kubelet { state, wake: None, held: None, alive: CancellationToken::new() };
        let living = states.into_iter().map(|(name, state)| (name, kubelet(state))).collect();
        Self { clock, living, wakes: BTreeSet::new(), writers, agents, listing: Vec::new() }
    }

    /// Runs until `stop`, then waits a little for writes under way.
    pub(super) async fn run(
        mut self,
        client: Client,
        mut commands: mpsc::Receiver<Command>,
        stop: CancellationToken,
    ) {
        // Pods without a node are nobody's here; a selector cannot name many nodes, so the others' are dropped below.
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut events = pin!(watcher(Api::<Pod>::all(client), bound).default_backoff());
        loop {
            let wake = self.wakes.first().map(|(at, _)| *at);
            tokio::select! {
                () = stop.cancelled() => break,
                Some(command) = commands.recv() => self.obey(command),
                Some(event) = events.next() => match event {
                    Ok(event) => self.watched(event),
                    Err(error) => warn!("hollow nodes: the watch on pods broke and starts again: {error}"),
                },
                () = self.clock.sleep_until(wake) => self.tick(),
            }
        }
        self.writers.drain(DRAIN).await;
    }

    fn watched(&mut self, event: watcher::Event<Pod>) {
        match event {
            watcher::Event::Init => self.listing.clear(),
            watcher::Event::InitApply(pod) => {
                let ours = |view: &PodView| self.living.contains_key(&view.node);
                self.listing.extend(PodView::from_pod(&pod).filter(ours));
            }
            watcher::Event::InitDone => self.relisted(),
            watcher::Event::Apply(pod) => {
                let Some(view) = PodView::from_pod(&pod) else { return };
                let node = view.node.clone();
                self.happened(&node, Event::Pod(Box::new(view)));
            }
            watcher::Event::Delete(pod) => {
                let (Some(node), Some(uid)) = (pod.spec.and_then(|spec| spec.node_name), pod.metadata.uid)
                else {
                    return;
                };
                self.happened(&node, Event::Gone(uid));
            }
        }
    }

    /// A complete list: what is not in it is gone.
    fn relisted(&mut self) {
        let mut by_node: BTreeMap<String, Vec<PodView>> = BTreeMap::new();
        for view in std::mem::take(&mut self.listing) {
            by_node.entry(view.node.clone()).or_default().push(view);
        }
        let nodes: Vec<String> = self.living.keys().cloned().collect();
        for node in nodes {
            self.listed(&node, by_node.remove(&node).unwrap_or_default());
        }
    }

    fn listed(&mut self, node: &str, pods: Vec<PodView>) {
        let Some(kubelet) = self.living.get(node) else { return };
        let listed: BTreeSet<&str> = pods.iter().map(|view| view.key.uid.as_str()).collect();
        let gone: Vec<String> =
            kubelet.state.uids().filter(|uid| !listed.contains(uid)).map(str::to_owned).collect();
        for uid in gone {
            self.happened(node, Event::Gone(uid));
        }
        for view in in_order_of_admission(pods) {
            self.happened(node, Event::Pod(Box::new(view)));
        }
    }

    fn happened(&mut self, node: &str, event: Event) {
        let Some(kubelet) = self.living.get_mut(node) else { return };
        let actions = step(&mut kubelet.state, event, self.clock.now());
        self.writers.send(actions, &kubelet.alive);
        if kubelet.state.has_agent() {
            let held = kubelet.state.held();
            if kubelet.held.as_ref() != Some(&held) {
                kubelet.held = Some(held.clone());
                // A closed channel means shutdown: nobody reports any more.
                let _ = self.agents.send(Word::Held(node.to_owned(), held));
            }
        }
        let next = kubelet.state.next_wake();
        if next != kubelet.wake {
            if let Some(wake) = kubelet.wake {
                self.wakes.remove(&(wake, node.to_owned()));
            }
            self.wakes.extend(next.map(|wake| (wake, node.to_owned())));
            kubelet.wake = next;
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        let due: Vec<String> =
            self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, node)| node.clone()).collect();
        for node in due {
            self.happened(&node, Event::Tick);
        }
    }

    fn obey(&mut self, command: Command) {
        // Who asked may have gone meanwhile; then nobody waits for the answer.
        match command {
            Command::Start { state, pods, done } => {
                let name = state.name().to_owned();
                self.kill(&name);
                let kubelet =
                    Kubelet { state: *state, wake: None, held: None, alive: CancellationToken::new() };
                self.living.insert(name.clone(), kubelet);
                self.listed(&name, pods);
                let _ = done.send(());
            }
            Command::Kill { name, done } => {
                self.kill(&name);
                let _ = done.send(());
            }
            Command::Agent { name, works, done } => {
                // One that starts knows nothing of the pods yet.
                if let Some(kubelet) = self.living.get_mut(&name) {
                    kubelet.held = None;
                }
                self.happened(&name, Event::Agent(works));
                let _ = done.send(());
            }
            Command::Renewed { name, at } => self.happened(&name, Event::Renewed(at)),
            Command::Collect { pods } => self.collect(pods),
            Command::Devices { namespace, name, reply } => {
                let found = self.living.values().find_map(|k| k.state.devices_of(&namespace, &name));
                let _ = reply.send(found);
            }
            Command::Running { reply } => {
                let _ = reply.send(self.living.values().map(|kubelet| kubelet.state.used().0).sum());
            }
        }
    }

    fn kill(&mut self, name: &str) {
        let Some(kubelet) = self.living.remove(name) else { return };
        kubelet.alive.cancel();
        if let Some(wake) = kubelet.wake {
            self.wakes.remove(&(wake, name.to_owned()));
        }
        info!(node = name, "hollow nodes: kubelet stopped");
    }

    fn collect(&self, pods: Vec<PodView>) {
        let collector = CancellationToken::new();
        for view in pods {
            let mut actions = vec![Action::Remove(view.key.clone())];
            if !view.phase.is_terminal() {
                let patch = status::orphaned(&view, self.clock.now());
                actions.insert(0, Action::Report { pod: view.key, phase: Phase::Failed, patch });
            }
            self.writers.send(actions, &collector);
        }
    }
}

/// Pods that already run come first, or newer ones could take their place; then the oldest, as kubelet does.
fn in_order_of_admission(mut pods: Vec<PodView>) -> Vec<PodView> {
    pods.sort_by_cached_key(|view| (view.phase != Phase::Running, view.created, view.key.clone()));
    pods
}
