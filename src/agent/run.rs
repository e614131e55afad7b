//! The running agent: watches, passes over the node's pods, writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Event};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::boot;
use super::cron::{self, Cron};
use super::deciding::{ProcessState, is_suspended, next_act};
use super::devices::FoundDevices;
use super::door::Door;
use super::fence::{Fence, Listed};
use super::kubelet::Kubelet;
use super::node::Node;
use super::objects::in_time;
use super::options::{Error, Options};
use super::passes::Passes;
use super::pods::{Pods, Uid, Wanted};
use super::report::{Figures, Problem, Reporter};
use super::retries::Retries;
use super::watches;
use super::{lease, objects};
use answers::{Item, Pauses};
use api::{NodeReport, NodeReportStatus};

/// The pause between two questions to the kubelet. The kubelet counts once a minute.
const ASK_EVERY: Duration = Duration::from_mins(1);

/// A renewal of the agent's Lease, and what became of it.
struct Renewal {
    /// When the renewal was sent: the time since the boot.
    sent: Duration,
    /// Whether the renewal promised to end pods if the agent is cut off.
    promised: bool,
    /// The owner of the Lease after the renewal.
    outcome: Result<lease::Owner, kube::Error>,
}

/// A list of the node's pods, and when the renewal was sent that it follows.
type List = (Duration, Result<BTreeMap<String, Listed>, kube::Error>);

/// Runs the agent until `stop`. Then lets all pods of the pool run again, and says in the report that it is gone.
///
/// # Errors
/// When no client can be made. A failed call is tried again.
pub async fn run(config: kube::Config, options: Options, stop: CancellationToken) -> Result<(), Error> {
    // If kube repeated a renewal by itself, the renewal would have a time that has passed.
    let config = answers::for_a_daemon(config);
    let kubelet = options.kubelet.as_deref().and_then(|address| {
        let wrong = |error: &kube::Error| tracing::warn!(%error, address, "the kubelet cannot be asked what pods use of the disk");
        Kubelet::at(address, options.kubelet_authorities.as_deref(), &config).inspect_err(wrong).ok()
    });
    let client = Client::try_from(config)?;
    let alone = async {
        match options.fence.clone() {
            Some(directory) => Fence::alone(directory).await,
            None => None,
        }
    };
    let lock = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        lock = alone => lock,
    };
    let mut agent = Agent::new(client, kubelet, options, lock);
    agent.live(&stop).await;
    agent.leave().await;
    Ok(())
}

struct Agent {
    client: Client,
    name: String,
    node: Node,
    pods: Pods,
    fence: Fence,
    cron: Cron,
    kubelet: Option<Kubelet>,
    ask_at: Instant,
    asking: JoinSet<Result<BTreeMap<Uid, i64>, kube::Error>>,
    /// The pods' usage of the disk, in KiB.
    disk: BTreeMap<Uid, i64>,
    devices: FoundDevices,
    suspended: BTreeSet<Uid>,
    /// Whether the agent knows the report in the API server, or knows that there is none.
    report_known: bool,
    reporter: Reporter,
    passes: Passes,
    renew_at: Instant,
    renewal: JoinSet<Renewal>,
    /// The owner of the agent's Lease.
    owner: lease::Owner,
    /// Whether a renewal has ended, well or not.
    tried_to_renew: bool,
    renew_pauses: Retries,
    door: Door,
    /// The pauses of each watch and list derive from these, so that neither agents nor watches are in step with each other.
    pauses: Pauses,
    list: JoinSet<List>,
    list_not_before: Instant,
    /// The pauses after lists that fail or come too late: an API server that cannot answer in time is not to begin the same work again
    /// and again.
    list_pauses: Pauses,
    write_not_before: Instant,
    write_pauses: Retries,
    writing: JoinSet<(Timestamp, Result<NodeReportStatus, kube::Error>)>,
    benchmark: Option<oneshot::Receiver<Figures>>,
}

impl Agent {
    fn new(client: Client, kubelet: Option<Kubelet>, options: Options, lock: Option<File>) -> Self {
        let now = Instant::now();
        let pauses = Pauses::new(RandomState::new().hash_one(&options.node));
        Self {
            client,
            name: options.node,
            fence: Fence::new(options.fence, options.roots.proc.clone(), lock),
            node: Node::new(options.roots),
            cron: Cron::new(options.cron),
            kubelet,
            ask_at: now,
            asking: JoinSet::new(),
            disk: BTreeMap::new(),
            devices: FoundDevices::new(options.pod_resources),
            pods: Pods::default(),
            suspended: BTreeSet::new(),
            report_known: false,
            reporter: Reporter::new(Timestamp::now()),
            passes: Passes::new(now),
            renew_at: now,
            renewal: JoinSet::new(),
            owner: lease::Owner::default(),
            tried_to_renew: false,
            renew_pauses: Retries::new(pauses.of("lease")),
            door: Door::new(options.ready),
            list: JoinSet::new(),
            list_not_before: now,
            list_pauses: pauses.of("list"),
            write_not_before: now,
            write_pauses: Retries::new(pauses.of("write")),
            pauses,
            writing: JoinSet::new(),
            benchmark: None,
        }
    }

    /// Works until `stop`. The Lease is renewed by the same loop that freezes and thaws, so that an agent whose loop hangs
    /// falls silent.
    async fn live(&mut self, stop: &CancellationToken) {
        let (mut pods, mut reports) = (
            watches::pods(&self.client, &self.name, &self.pauses),
            watches::report(&self.client, &self.name, &self.pauses),
        );
        loop {
            let programs_due = self.cron.wake_at();
            tokio::select! {
                () = stop.cancelled() => return,
                Some(event) = pods.next() => self.pod_event(event),
                Some(event) = reports.next() => self.report_event(event),
                () = sleep_until(self.passes.next()) => self.pass(),
                () = sleep_until(self.renew_at), if self.renewal.is_empty() => self.renew(),
                Some(renewed) = self.renewal.join_next() => self.renewed(renewed.ok()),
                Some(Ok(list)) = self.list.join_next() => self.listed(list),
                Some(Ok((at, written))) = self.writing.join_next() => self.written(at, written),
                figures = finished(&mut self.benchmark) => self.benchmarked(figures),
                Some(Ok(disk)) = self.asking.join_next() => self.told_of_disk(disk),
                answer = self.devices.answer() => self.devices.heard(answer, &self.pods),
                event = self.cron.event() => self.cron_event(event),
                () = self.door.serve() => continue,
                () = sleep_until(programs_due) => self.cron.act(),
            }
            self.write_if_due();
        }
    }

    fn pod_event(&mut self, event: watcher::Result<Event<watches::Pod>>) {
        // Without a status that can be read, no container is known to run.
        let read = |pod: watches::Pod| {
            let (meta, containers) = pod.into_parts();
            (meta, containers.unwrap_or_default())
        };
        match event {
            Ok(Event::Init) => return self.pods.list_begins(),
            Ok(Event::InitApply(pod)) => {
                let (meta, containers) = read(pod);
                return self.pods.listed(&meta, containers);
            }
            Ok(Event::InitDone) => self.pods.list_ends(),
            Ok(Event::Apply(pod)) => {
                let (meta, containers) = read(pod);
                if !self.pods.there(&meta, containers) {
                    return;
                }
            }
            Ok(Event::Delete(pod)) if !self.pods.gone(pod.metadata()) => return,
            Ok(Event::Delete(_)) => {}
            Err(error) => {
                return tracing::warn!(error = %answers::chain(&error), "the watch on the node's pods failed and begins anew");
            }
        }
        self.passes.hasten(Instant::now());
    }

    fn report_event(&mut self, event: watcher::Result<Event<Item<NodeReport>>>) {
        match event {
            Ok(Event::Init) => self.report_known = false,
            Ok(Event::InitApply(report) | Event::Apply(report)) => {
                self.report_known = true;
                let report = match report.object() {
                    Ok(report) => report,
                    Err(error) => return tracing::warn!(%error, "the node's report cannot be decoded"),
                };
                let suspended = report.status.iter().flat_map(|status| &status.suspended_pods);
                self.pods.were_suspended(suspended.map(|uid| uid.as_str().into()));
                self.reporter.observe_report(&report);
                self.cron.ask(report.spec.cron.as_ref());
            }
            Ok(Event::InitDone) if !self.report_known => {
                self.report_known = true;
                self.report_deleted();
            }
            Ok(Event::InitDone) => {}
            Ok(Event::Delete(_)) => self.report_deleted(),
            Err(error) => {
                tracing::warn!(error = %answers::chain(&error), "the watch on the node's report failed and begins anew");
            }
        }
        if self.reporter.wants_benchmark() && self.benchmark.is_none() {
            tracing::info!("the benchmarks run");
            self.benchmark = Some(in_a_thread(super::node::benchmark));
        }
    }

    fn report_deleted(&mut self) {
        self.reporter.report_deleted();
        self.cron.ask(None);
    }

    /// The report tells of what a cron job has written after the next pass.
    fn cron_event(&mut self, event: cron::Event) {
        if self.cron.heard(event, Timestamp::now()) {
            self.reporter.hurry();
        }
    }

    fn benchmarked(&mut self, figures: Option<Figures>) {
        if let Some(figures) = figures {
            tracing::info!(mips = figures.mips, kflops = figures.kflops, "the benchmarks have run");
            self.reporter.benchmarked(figures, Timestamp::now());
        }
    }

    /// Looks at each pod of the pool, does to its processes what is to be done, and senses the rest of the node.
    fn pass(&mut self) {
        let mut settled = true;
        let (mut suspended, mut running) = (BTreeSet::new(), BTreeSet::new());
        self.node.find(self.pods.iter().map(|pod| &*pod.uid).chain(self.fence.uids()));
        for pod in self.pods.iter() {
            let mut seen = self.node.look(pod);
            if let Some(act) = next_act(pod.wanted(), seen) {
                seen = self.node.act(pod, act);
                settled &= next_act(pod.wanted(), seen).is_none();
            }
            if is_suspended(seen) {
                suspended.insert(Arc::clone(&pod.uid));
            }
            if seen != ProcessState::Nothing {
                running.insert(Arc::clone(&pod.uid));
            }
        }
        self.suspended = suspended;
        self.fence.pass(&self.pods, |uid| self.node.remains(uid));
        self.list_if_wanted();
        self.ask_kubelet_if_due();
        self.devices.ask_about(&running);
        self.observe(None);
        self.passes.passed(settled, Instant::now());
    }

    fn observe(&mut self, problem: Option<Problem>) {
        let now = Timestamp::now();
        let mut senses = self.node.sense(&self.pods, now);
        senses.suspended.clone_from(&self.suspended);
        // Pods that may not be named yet are named in a later pass.
        senses.usage.retain(|usage| self.pods.get(&usage.uid).is_some_and(|pod| self.fence.may_name(pod)));
        senses.pod_devices = self.devices.of_pods();
        let running = senses.usage.iter().filter_map(|usage| self.pods.get(&usage.uid));
        self.cron.follow(running, &senses.pod_devices);
        for usage in &mut senses.usage {
            usage.disk_kib = self.disk.get(usage.uid.as_str()).copied();
            usage.metrics = self.cron.metrics_of(&usage.uid);
        }
        senses.problem = problem.or(senses.problem);
        senses.cron = self.cron.senses();
        self.reporter.observe(senses, now);
    }

    fn renew(&mut self) {
        let sent = boot::now();
        let promised = self.fence.promise(&self.pods, sent);
        let (client, name, owner) = (self.client.clone(), self.name.clone(), self.owner.clone());
        let renewal = lease::renew(client, name, promised, Timestamp::now(), owner);
        self.renewal.spawn(async move { Renewal { sent, promised, outcome: in_time(renewal).await } });
    }

    fn renewed(&mut self, renewed: Option<Renewal>) {
        self.tried_to_renew = true;
        let pause = match renewed {
            Some(Renewal { sent, promised, outcome: Ok(owner) }) => {
                self.owner = owner;
                self.fence.renewed(sent, promised);
                self.list_if_wanted();
                self.renew_pauses.succeeded();
                self.door.open_until(Instant::now() + lease::LASTS);
                self.renew_pauses.about(lease::RENEW_EVERY)
            }
            Some(Renewal { outcome: Err(error), .. }) => {
                tracing::warn!(error = %answers::chain(&error), "the agent's Lease cannot be renewed");
                self.renew_pauses.after(Some(&error))
            }
            None => self.renew_pauses.after(None),
        };
        self.renew_at = Instant::now() + pause;
    }

    /// Lists the node's pods, if some of them may not run before that because their leases had passed. The list begins after the
    /// renewal has succeeded: whatever was deleted before is missing from the list, or being deleted.
    fn list_if_wanted(&mut self) {
        let may_list = self.list.is_empty() && self.list_not_before <= Instant::now();
        let Some(sent) = self.fence.wants_list().filter(|_| may_list) else { return };
        let list = objects::list_pods(self.client.clone(), self.name.clone());
        self.list.spawn(async move { (sent, list.await) });
    }

    fn listed(&mut self, (sent, list): List) {
        match list {
            Ok(list) => {
                self.fence.listed(sent, &list);
                self.passes.hasten(Instant::now());
                if self.fence.has_decided() {
                    return self.list_pauses.reset();
                }
                tracing::warn!(
                    "the list of the node's pods took longer than some of their leases: these pods stay ended until the next list"
                );
            }
            Err(error) => tracing::warn!(error = %answers::chain(&error), "the node's pods cannot be listed"),
        }
        self.list_not_before = Instant::now() + self.list_pauses.next().unwrap_or_default();
    }

    /// Asks the kubelet what the pool's pods use of the disk, if there are any.
    fn ask_kubelet_if_due(&mut self) {
        let now = Instant::now();
        let due = self.asking.is_empty() && self.ask_at <= now && self.pods.iter().next().is_some();
        if let Some(kubelet) = self.kubelet.clone().filter(|_| due) {
            self.ask_at = now + ASK_EVERY;
            self.asking.spawn(async move { in_time(kubelet.disk()).await });
        }
    }

    /// After a failure, the amounts that the kubelet told last count no longer: a policy must not act on an old amount.
    fn told_of_disk(&mut self, disk: Result<BTreeMap<Uid, i64>, kube::Error>) {
        match disk {
            Ok(disk) => self.disk = disk.into_iter().filter(|(uid, _)| self.pods.knows(uid)).collect(),
            Err(error) => {
                let error = answers::chain(&error);
                tracing::warn!(error, "the kubelet does not tell what pods use of the disk");
                self.disk = BTreeMap::new();
            }
        }
    }

    /// Writes the report if a write is due and none is under way. The loop comes here after each event, and after each pass.
    fn write_if_due(&mut self) {
        let (now, clock) = (Timestamp::now(), Instant::now());
        if !self.may_write() || !self.writing.is_empty() || self.write_not_before > clock {
            return;
        }
        if let Some(write) = self.reporter.due_write(now) {
            let call = objects::write_status(self.client.clone(), self.name.clone(), write);
            self.writing.spawn(async move { (now, in_time(call).await) });
        }
    }

    /// Whether the agent knows enough for a write: the API server's report, from which the write may have to take something away;
    /// the pods that an earlier agent has suspended; and whether an earlier agent's promise is over, so that all pods may be
    /// named.
    fn may_write(&self) -> bool {
        self.report_known && self.pods.are_known() && self.tried_to_renew
    }

    fn written(&mut self, at: Timestamp, written: Result<NodeReportStatus, kube::Error>) {
        match written {
            Ok(status) => {
                self.write_pauses.succeeded();
                self.reporter.record_write(status, at);
            }
            Err(error) => {
                tracing::warn!(error = %answers::chain(&error), "the node's report cannot be written");
                self.write_not_before = Instant::now() + self.write_pauses.after(Some(&error));
            }
        }
    }

    /// Lets all pods run again that stand still, and says so: nobody is there any more who could let them run later.
    async fn leave(&mut self) {
        let pods = self.pods.to_release();
        self.node.find(pods.iter().map(|pod| &*pod.uid));
        for pod in &pods {
            if let Some(act) = next_act(Wanted::Run, self.node.look(pod)) {
                self.node.act(pod, act);
            }
        }
        self.cron.stop();
        self.suspended = BTreeSet::new();
        let message = "the agent was stopped: pods that it had suspended run again".to_owned();
        self.observe(Some(Problem { reason: "Stopped", message }));
        // The last write is made of what the API server has, which a write under way still changes.
        while let Some(Ok((at, written))) = self.writing.join_next().await {
            self.written(at, written);
        }
        let Some(write) = self.reporter.last_write().filter(|_| self.may_write()) else {
            return;
        };
        let call = objects::write_status(self.client.clone(), self.name.clone(), write);
        if in_time(call).await.is_err() {
            tracing::warn!(
                "the report could not be written once more: its reader learns from the Lease that the agent is gone"
            );
        }
    }
}

/// The figures of the run under way, once it has ended; waits for ever if there is none.
async fn finished(run: &mut Option<oneshot::Receiver<Figures>>) -> Option<Figures> {
    let Some(running) = run else { return pending().await };
    let figures = running.await.ok();
    *run = None;
    figures
}

/// Runs the benchmarks in a thread of their own, for which an agent that stops does not wait. The runtime would wait for a
/// blocking task of its own, and on a busy node the benchmarks take as long as the pod's whole grace period.
fn in_a_thread(benchmarks: impl FnOnce() -> Figures + Send + 'static) -> oneshot::Receiver<Figures> {
    let (done, figures) = oneshot::channel();
    // If no thread can be made, or the run panics, the receiver hears that the sender is gone.
    let _ = std::thread::Builder::new().name("benchmarks".to_owned()).spawn(move || done.send(benchmarks()));
    figures
}
