//! The shell around all agents of a set of nodes: one watch on NodeReports, one timer, and for each report at most
//! one write at a time.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::agent::{Agent, PodActivity};
use super::clock::Clock;
use super::life::after;
use super::registry::Registry;
use agent::report::Write;
use api::NodeReport;

/// The pause after a failed write.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A command to the shell of the agents, about the node of this name.
pub(super) enum AgentCommand {
    /// Start this agent.
    Start(String, Box<Agent>),
    /// Stop the agent as if it died: a write under way is lost.
    Stop(String),
    /// Tell the agent what the pods of its node do now.
    Pods(String, PodActivity),
    /// Set the node's owner to present, with a load, or to absent.
    Owner(String, Option<f64>),
}

struct Worker {
    agent: Agent,
    wake: Option<Timestamp>,
    writing: Option<AbortHandle>,
    /// Set after a failed write: the next attempt must not start before this time.
    not_before: Option<Timestamp>,
}

type Reports = Pin<Box<dyn Stream<Item = watcher::Result<watcher::Event<NodeReport>>> + Send>>;
type WrittenReport = (String, Timestamp, Option<Write>);

/// All running agents of a set.
pub(super) struct Agents {
    client: Client,
    clock: Clock,
    registry: Registry,
    living: HashMap<String, Worker>,
    wakes: BTreeSet<(Timestamp, String)>,
    writes: JoinSet<WrittenReport>,
    /// The watch on NodeReports. It begins with the first agent, because a cluster without agents may not serve
    /// the kind.
    reports: Option<Reports>,
    /// Names of the reports that a list in progress has shown so far.
    listed: BTreeSet<String>,
}

impl Agents {
    pub(super) fn new(client: &Client, clock: Clock, registry: Registry) -> Self {
        Self {
            client: client.clone(),
            clock,
            registry,
            living: HashMap::new(),
            wakes: BTreeSet::new(),
            writes: JoinSet::new(),
            reports: None,
            listed: BTreeSet::new(),
        }
    }

    /// Runs until `stop`; writes that are under way then are lost.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<AgentCommand>,
        stop: CancellationToken,
    ) {
        loop {
            let wake = self.wakes.first().map(|(at, _)| *at);
            tokio::select! {
                () = stop.cancelled() => return,
                Some(command) = commands.recv() => self.handle(command),
                Some(Ok(written)) = self.writes.join_next() => self.written(written),
                Some(event) = next(&mut self.reports) => match event {
                    Ok(event) => self.watched(event),
                    Err(error) => warn!("hollow nodes: the watch on NodeReports broke and starts again: {error}"),
                },
                () = self.clock.sleep_until(wake) => self.tick(),
            }
        }
    }

    fn handle(&mut self, command: AgentCommand) {
        let now = self.clock.now();
        match command {
            AgentCommand::Start(name, agent) => {
                self.stop(&name);
                let worker = Worker { agent: *agent, wake: None, writing: None, not_before: None };
                self.living.insert(name.clone(), worker);
                let watch = || {
                    let reports = watcher(Api::all(self.client.clone()), watcher::Config::default());
                    reports.default_backoff().boxed()
                };
                self.reports.get_or_insert_with(watch);
                self.schedule(&name);
            }
            AgentCommand::Stop(name) => self.stop(&name),
            AgentCommand::Pods(name, activity) => self.change(&name, |agent| agent.observe_pods(activity)),
            AgentCommand::Owner(name, load) => self.change(&name, |agent| agent.set_owner(load, now)),
        }
    }

    fn stop(&mut self, name: &str) {
        let Some(worker) = self.living.remove(name) else { return };
        if let Some(writing) = worker.writing {
            writing.abort();
        }
        if let Some(wake) = worker.wake {
            self.wakes.remove(&(wake, name.to_owned()));
        }
    }

    fn watched(&mut self, event: watcher::Event<NodeReport>) {
        let now = self.clock.now();
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(report) => {
                self.listed.insert(report.name_any());
                self.change(&report.name_any(), |agent| agent.observe_report(&report, now));
            }
            watcher::Event::InitDone => {
                let missing = self.living.keys().filter(|name| !self.listed.contains(*name));
                for name in missing.cloned().collect::<Vec<_>>() {
                    self.report_deleted(&name);
                }
            }
            watcher::Event::Apply(report) => {
                self.change(&report.name_any(), |agent| agent.observe_report(&report, now));
            }
            watcher::Event::Delete(report) => self.report_deleted(&report.name_any()),
        }
    }

    /// Handles that the report of this name does not exist. If the agent is writing it at this moment, the write
    /// creates it, and there is nothing to do.
    fn report_deleted(&mut self, name: &str) {
        if self.living.get(name).is_some_and(|worker| worker.writing.is_none()) {
            self.change(name, Agent::report_deleted);
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        let due: Vec<String> =
            self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, name)| name.clone()).collect();
        for name in due {
            self.schedule(&name);
        }
    }

    fn written(&mut self, (name, at, write): WrittenReport) {
        let Some(worker) = self.living.get_mut(&name) else { return };
        worker.writing = None;
        worker.not_before = write.is_none().then(|| after(self.clock.now(), RETRY_AFTER));
        self.change(&name, |agent| {
            if let Some(write) = write {
                agent.record_write(write.status, at);
            }
        });
    }

    /// Changes the agent of this name, if it runs, and schedules the write that the change may ask for.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Agent)) {
        if let Some(worker) = self.living.get_mut(name) {
            change(&mut worker.agent);
            self.schedule(name);
        }
    }

    /// Starts the agent's write if one is due and none is under way; then sets the agent's next wake.
    fn schedule(&mut self, name: &str) {
        let Some(worker) = self.living.get_mut(name) else { return };
        let now = self.clock.now();
        if worker.writing.is_none() && worker.not_before.is_none_or(|at| at <= now) {
            worker.not_before = None;
            if let Some(write) = worker.agent.due_write(now) {
                let (registry, name) = (self.registry.clone(), name.to_owned());
                worker.writing = Some(self.writes.spawn(async move {
                    match registry.report(&name, &write.patch).await {
                        Ok(()) => (name, now, Some(write)),
                        Err(error) => {
                            warn!("hollow nodes: {error}; tried again in {RETRY_AFTER:?}");
                            (name, now, None)
                        }
                    }
                }));
            }
        }
        // While a write is under way, no wake is set: `written` schedules the agent again when the write ends.
        let next = worker.agent.next_wake(now).filter(|_| worker.writing.is_none());
        let next = next.map(|next| worker.not_before.map_or(next, |at| at.max(next)));
        if next != worker.wake {
            if let Some(wake) = std::mem::replace(&mut worker.wake, next) {
                self.wakes.remove(&(wake, name.to_owned()));
            }
            self.wakes.extend(next.map(|wake| (wake, name.to_owned())));
        }
    }
}

/// The next event of the watch; waits for ever if the watch has not begun.
async fn next(reports: &mut Option<Reports>) -> Option<watcher::Result<watcher::Event<NodeReport>>> {
    match reports {
        Some(reports) => reports.next().await,
        None => std::future::pending().await,
    }
}
