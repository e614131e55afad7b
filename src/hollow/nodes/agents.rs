//! The shell around all agents of a set: one watch on NodeReports, one timer, one write at a time for each report.

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

use super::agent::{Agent, Held, Write};
use super::clock::Clock;
use super::life::after;
use super::registry::Registry;
use api::NodeReport;

/// How long after a write that failed the next is tried.
const AGAIN: Duration = Duration::from_secs(2);

/// What the shell of the agents is told, each about the node of this name.
pub(super) enum Word {
    /// An agent starts.
    Start(String, Box<Agent>),
    /// An agent dies: its write under way is lost.
    Stop(String),
    /// What its pods do has changed.
    Held(String, Held),
    /// Its owner comes, with a load, or goes.
    Owner(String, Option<f64>),
}

struct Worker {
    agent: Agent,
    wake: Option<Timestamp>,
    writing: Option<AbortHandle>,
    /// The last write failed: not before.
    not_before: Option<Timestamp>,
}

type Reports = Pin<Box<dyn Stream<Item = watcher::Result<watcher::Event<NodeReport>>> + Send>>;
type Written = (String, Timestamp, Option<Write>);

/// All living agents of a set.
pub(super) struct Agents {
    client: Client,
    clock: Clock,
    registry: Registry,
    living: HashMap<String, Worker>,
    wakes: BTreeSet<(Timestamp, String)>,
    writes: JoinSet<Written>,
    /// Begins with the first agent: a cluster may not serve the kind.
    reports: Option<Reports>,
    /// Names in a listing that is not complete yet.
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

    /// Runs until `stop`; what is under way then is lost.
    pub(super) async fn run(mut self, mut words: mpsc::UnboundedReceiver<Word>, stop: CancellationToken) {
        loop {
            let wake = self.wakes.first().map(|(at, _)| *at);
            tokio::select! {
                () = stop.cancelled() => return,
                Some(word) = words.recv() => self.hear(word),
                Some(Ok(written)) = self.writes.join_next() => self.written(written),
                Some(event) = next(&mut self.reports) => match event {
                    Ok(event) => self.watched(event),
                    Err(error) => warn!("hollow nodes: the watch on NodeReports broke and starts again: {error}"),
                },
                () = self.clock.sleep_until(wake) => self.tick(),
            }
        }
    }

    fn hear(&mut self, word: Word) {
        let now = self.clock.now();
        match word {
            Word::Start(name, agent) => {
                self.stop(&name);
                let worker = Worker { agent: *agent, wake: None, writing: None, not_before: None };
                self.living.insert(name.clone(), worker);
                let watch = || {
                    let reports = watcher(Api::all(self.client.clone()), watcher::Config::default());
                    reports.default_backoff().boxed()
                };
                self.reports.get_or_insert_with(watch);
                self.look(&name);
            }
            Word::Stop(name) => self.stop(&name),
            Word::Held(name, held) => self.with(&name, |agent| agent.sees(held)),
            Word::Owner(name, present) => self.with(&name, |agent| agent.owner(present, now)),
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
                self.with(&report.name_any(), |agent| agent.reads(&report, now));
            }
            watcher::Event::InitDone => {
                let missing = self.living.keys().filter(|name| !self.listed.contains(*name));
                for name in missing.cloned().collect::<Vec<_>>() {
                    self.lost(&name);
                }
            }
            watcher::Event::Apply(report) => {
                self.with(&report.name_any(), |agent| agent.reads(&report, now));
            }
            watcher::Event::Delete(report) => self.lost(&report.name_any()),
        }
    }

    /// A report is not there. One that is being written will be.
    fn lost(&mut self, name: &str) {
        if self.living.get(name).is_some_and(|worker| worker.writing.is_none()) {
            self.with(name, Agent::lost);
        }
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        let due: Vec<String> =
            self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, name)| name.clone()).collect();
        for name in due {
            self.look(&name);
        }
    }

    fn written(&mut self, (name, at, write): Written) {
        let Some(worker) = self.living.get_mut(&name) else { return };
        worker.writing = None;
        worker.not_before = write.is_none().then(|| after(self.clock.now(), AGAIN));
        self.with(&name, |agent| {
            if let Some(write) = write {
                agent.wrote(write.status, at);
            }
        });
    }

    fn with(&mut self, name: &str, change: impl FnOnce(&mut Agent)) {
        if let Some(worker) = self.living.get_mut(name) {
            change(&mut worker.agent);
            self.look(name);
        }
    }

    /// Starts the write that is due, if none is under way, or waits for the next.
    fn look(&mut self, name: &str) {
        let Some(worker) = self.living.get_mut(name) else { return };
        let now = self.clock.now();
        if worker.writing.is_none() && worker.not_before.is_none_or(|at| at <= now) {
            worker.not_before = None;
            if let Some(write) = worker.agent.write(now) {
                let (registry, name) = (self.registry.clone(), name.to_owned());
                worker.writing = Some(self.writes.spawn(async move {
                    match registry.report(&name, &write.patch).await {
                        Ok(()) => (name, now, Some(write)),
                        Err(error) => {
                            warn!("hollow nodes: {error}; tried again in {AGAIN:?}");
                            (name, now, None)
                        }
                    }
                }));
            }
        }
        // While a write is under way its end is what is waited for.
        let next = worker.agent.next(now).filter(|_| worker.writing.is_none());
        let next = next.map(|next| worker.not_before.map_or(next, |at| at.max(next)));
        if next != worker.wake {
            if let Some(wake) = std::mem::replace(&mut worker.wake, next) {
                self.wakes.remove(&(wake, name.to_owned()));
            }
            self.wakes.extend(next.map(|wake| (wake, name.to_owned())));
        }
    }
}

/// The next event of a watch that may not have begun.
async fn next(reports: &mut Option<Reports>) -> Option<watcher::Result<watcher::Event<NodeReport>>> {
    match reports {
        Some(reports) => reports.next().await,
        None => std::future::pending().await,
    }
}
