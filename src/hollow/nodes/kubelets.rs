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

use super::agent::PodActivity;
use super::agents::AgentCommand;
use super::clock::Clock;
use super::core::{Action, Event, NodeState, step};
use super::devices::Assigned;
use super::status;
use super::view::{Phase, PodView};
use super::writer::Writers;

/// How long a shutdown waits for queued writes.
const DRAIN: Duration = Duration::from_secs(5);

/// A command to the shell of the kubelets.
pub(super) enum Command {
    /// Start a kubelet; `pods` are the pods that are bound to its node.
    Start { state: Box<NodeState>, pods: Vec<PodView>, done: oneshot::Sender<()> },
    /// Stop a kubelet as if it died: its queued writes are lost.
    Kill { name: String, done: oneshot::Sender<()> },
    /// Fail and delete these pods, as the pod garbage collector does: their node has been deleted.
    Collect { pods: Vec<PodView> },
    /// Reply with the devices that are assigned to this pod.
    Devices { namespace: String, name: String, reply: oneshot::Sender<Option<Assigned>> },
    /// The agent of a node starts or stops to suspend and kill pods as their annotations ask.
    Agent { name: String, works: bool, done: oneshot::Sender<()> },
    /// The agent of a node renewed its Lease successfully, with a request that it sent at this time.
    Renewed { name: String, at: Timestamp },
    /// Reply with the number of pods that take resources on nodes whose kubelets run.
    Running { reply: oneshot::Sender<i64> },
}

struct Kubelet {
    state: NodeState,
    wake: Option<Timestamp>,
    /// The activity of the pods that the node's agent was last told; `None` if it has not been told since it started.
    activity: Option<PodActivity>,
    alive: CancellationToken,
}

/// All running kubelets of a set.
pub(super) struct Kubelets {
    clock: Clock,
    living: HashMap<String, Kubelet>,
    /// The next wake of each kubelet that has one.
    wakes: BTreeSet<(Timestamp, String)>,
    writers: Writers,
    agents: mpsc::UnboundedSender<AgentCommand>,
    /// The pods that a list in progress has shown so far.
    listing: Vec<PodView>,
}

impl Kubelets {
    pub(super) fn new(
        clock: Clock,
        states: Vec<(String, NodeState)>,
        writers: Writers,
        agents: mpsc::UnboundedSender<AgentCommand>,
    ) -> Self {
        let kubelet = |state| Kubelet { state, wake: None, activity: None, alive: CancellationToken::new() };
        let living = states.into_iter().map(|(name, state)| (name, kubelet(state))).collect();
        Self { clock, living, wakes: BTreeSet::new(), writers, agents, listing: Vec::new() }
    }

    /// Runs until `stop`, then waits up to [`DRAIN`] for queued writes.
    pub(super) async fn run(
        mut self,
        client: Client,
        mut commands: mpsc::Receiver<Command>,
        stop: CancellationToken,
    ) {
        // The watch skips pods that no node runs. A field selector cannot name a set of nodes, so the pods of other
        // nodes are dropped below.
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut events = pin!(watcher(Api::<Pod>::all(client), bound).default_backoff());
        loop {
            let wake = self.wakes.first().map(|(at, _)| *at);
            tokio::select! {
                () = stop.cancelled() => break,
                Some(command) = commands.recv() => self.handle(command),
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
            watcher::Event::InitDone => self.apply_list(),
            watcher::Event::Apply(pod) => {
                let Some(view) = PodView::from_pod(&pod) else { return };
                let node = view.node.clone();
                self.handle_event(&node, Event::Pod(Box::new(view)));
            }
            watcher::Event::Delete(pod) => {
                let (Some(node), Some(uid)) = (pod.spec.and_then(|spec| spec.node_name), pod.metadata.uid)
                else {
                    return;
                };
                self.handle_event(&node, Event::Gone(uid));
            }
        }
    }

    /// Gives each kubelet the pods of its node from a complete list. Pods that are not in the list no longer exist.
    fn apply_list(&mut self) {
        let mut by_node: BTreeMap<String, Vec<PodView>> = BTreeMap::new();
        for view in std::mem::take(&mut self.listing) {
            by_node.entry(view.node.clone()).or_default().push(view);
        }
        let nodes: Vec<String> = self.living.keys().cloned().collect();
        for node in nodes {
            self.apply_list_of_node(&node, by_node.remove(&node).unwrap_or_default());
        }
    }

    fn apply_list_of_node(&mut self, node: &str, pods: Vec<PodView>) {
        let Some(kubelet) = self.living.get(node) else { return };
        let listed: BTreeSet<&str> = pods.iter().map(|view| view.key.uid.as_str()).collect();
        let gone: Vec<String> =
            kubelet.state.uids().filter(|uid| !listed.contains(uid)).map(str::to_owned).collect();
        for uid in gone {
            self.handle_event(node, Event::Gone(uid));
        }
        for view in in_order_of_admission(pods) {
            self.handle_event(node, Event::Pod(Box::new(view)));
        }
    }

    /// Gives `event` to the kubelet of `node`, if it runs; queues its writes, tells the agent what the pods do now,
    /// and sets the kubelet's next wake.
    fn handle_event(&mut self, node: &str, event: Event) {
        let Some(kubelet) = self.living.get_mut(node) else { return };
        let actions = step(&mut kubelet.state, event, self.clock.now());
        self.writers.send(actions, &kubelet.alive);
        if kubelet.state.has_agent() {
            let activity = kubelet.state.pod_activity();
            if kubelet.activity.as_ref() != Some(&activity) {
                kubelet.activity = Some(activity.clone());
                // The channel is closed only during a shutdown, when agents no longer report.
                let _ = self.agents.send(AgentCommand::Pods(node.to_owned(), activity));
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
            self.handle_event(&node, Event::Tick);
        }
    }

    fn handle(&mut self, command: Command) {
        // Sending an answer fails if the caller has gone; then nobody waits for it.
        match command {
            Command::Start { state, pods, done } => {
                let name = state.name().to_owned();
                self.kill(&name);
                let kubelet =
                    Kubelet { state: *state, wake: None, activity: None, alive: CancellationToken::new() };
                self.living.insert(name.clone(), kubelet);
                self.apply_list_of_node(&name, pods);
                let _ = done.send(());
            }
            Command::Kill { name, done } => {
                self.kill(&name);
                let _ = done.send(());
            }
            Command::Agent { name, works, done } => {
                // An agent that starts knows nothing of the pods: `handle_event` must tell it, even if nothing changed.
                if let Some(kubelet) = self.living.get_mut(&name) {
                    kubelet.activity = None;
                }
                self.handle_event(&name, Event::Agent(works));
                let _ = done.send(());
            }
            Command::Renewed { name, at } => self.handle_event(&name, Event::Renewed(at)),
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

/// Sorts pods into the order in which the kubelet admits them: first those that already run, because others must not
/// take their resources; then by age, oldest first, as kubelet does.
fn in_order_of_admission(mut pods: Vec<PodView>) -> Vec<PodView> {
    pods.sort_by_cached_key(|view| (view.phase != Phase::Running, view.created, view.key.clone()));
    pods
}
