//! The loop: what was seen goes into the pool, what the deciders ask for goes out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Kind, Known, ObjectKey};
use super::health::Health;
use super::publisher::Publisher;
use super::render::{self, Rendered};
use super::translate::{self, PodView, SlimNode, SlimPod};
use super::watch::Change;
use super::writer::{Reply, Task, Writer};
use super::{Clock, Cycles};
use model::decide::{self, Negotiation};
use model::negotiator::Outcome as Matches;
use model::pool::{Document, Effect, Event, Pool, SlotName, Time};

/// How many changes are taken in before the deciders look again: enough to be quick, few enough to answer soon.
const AT_A_TIME: usize = 2000;

/// The loop turns at least this often, so that its heartbeat says that it lives.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Something that a watch saw.
#[derive(Debug)]
pub enum Seen {
    /// A node.
    Node(Box<Change<SlimNode>>),
    /// A pod.
    Pod(Box<Change<SlimPod>>),
    /// A node's Lease.
    Lease(Box<Change<Lease>>),
    /// A custom resource.
    Custom(Kind, Box<Change<DynamicObject>>),
}

/// How many watches must have told everything before the deciders begin: nodes, pods and the kinds. Leases are not among
/// them: a cluster may have none.
const WATCHES: usize = 2 + Kind::ALL.len();

/// The operator's loop with all it owns.
pub struct Engine {
    pool: Pool,
    cache: Cache,
    writer: Writer,
    publisher: Publisher,
    health: Arc<Health>,
    clock: Clock,
    /// Events of the start, in the order in which the pool wants them, until all watches have told everything.
    early: Option<BTreeMap<u8, Vec<Event>>>,
    synced: usize,
    /// When the deciders want to look again.
    next: Option<Time>,
    cycles: Cycles,
    /// The cycle that is under way: it ends with the engine.
    thinking: JoinSet<(Arc<Negotiation>, Matches)>,
}

impl Engine {
    /// An engine that has seen nothing yet.
    pub fn new(writer: Writer, health: Arc<Health>, clock: Clock, cycles: Cycles) -> Self {
        Self {
            pool: Pool::default(),
            cache: Cache::default(),
            writer,
            publisher: Publisher::default(),
            health,
            clock,
            early: Some(BTreeMap::new()),
            synced: 0,
            next: None,
            cycles,
            thinking: JoinSet::new(),
        }
    }

    /// Runs until `stop`, then waits for writes under way.
    pub async fn run(mut self, mut seen: mpsc::Receiver<Seen>, stop: CancellationToken) {
        loop {
            let pause = self.pause();
            tokio::select! {
                // In this order, so that what happens follows from what came: answers are few, what is seen may be much.
                biased;
                () = stop.cancelled() => break,
                Some((line, replies)) = self.writer.finished() => {
                    self.writer.advance(line);
                    self.answer(replies);
                }
                Some(Ok((negotiation, matches))) = self.thinking.join_next() => {
                    decide::conclude(&mut self.pool, &negotiation, &matches, self.clock.now());
                }
                Some(first) = seen.recv() => self.take_in(first, &mut seen),
                () = tokio::time::sleep(pause) => {}
            }
            self.decide();
            self.publish();
            self.health.beat(&self.pool, self.clock.now());
        }
        self.finish_writes().await;
    }

    /// How long nothing needs to be done, if nothing happens.
    fn pause(&self) -> Duration {
        let now = self.clock.now();
        let next = [self.next, self.publisher.next()].into_iter().flatten().min();
        let pause = next.map_or(LONGEST_PAUSE, |at| at.since(now));
        pause.clamp(Duration::from_millis(1), LONGEST_PAUSE)
    }

    fn take_in(&mut self, first: Seen, more: &mut mpsc::Receiver<Seen>) {
        let mut next = Some(first);
        for left in (0..AT_A_TIME).rev() {
            let Some(seen) = next else { return };
            match seen {
                Seen::Node(change) => self.node(*change),
                Seen::Pod(change) => self.pod(*change),
                Seen::Lease(change) => self.lease(&change),
                Seen::Custom(kind, change) => self.custom(kind, *change),
            }
            next = if left > 0 { more.try_recv().ok() } else { None };
        }
    }

    /// Hands an event to the pool; at the start, keeps it until everything has been told. `rank` is its place among the
    /// events of the start: what others refer to comes first.
    fn event(&mut self, rank: u8, event: Event) {
        match &mut self.early {
            Some(early) => early.entry(rank).or_default().push(event),
            None => self.pool.apply(event, self.clock.now()),
        }
    }

    fn watch_synced(&mut self) {
        self.synced += 1;
        if self.synced < WATCHES {
            return;
        }
        let now = self.clock.now();
        for event in self.early.take().into_iter().flat_map(BTreeMap::into_values).flatten() {
            self.pool.apply(event, now);
        }
        self.pool.apply(Event::Synced, now);
        self.health.ready();
        tracing::info!(
            machines = self.pool.machines.len(),
            slots = self.pool.slots.len(),
            jobs = self.pool.jobs.len(),
            "everything is known, the operator begins"
        );
    }

    fn node(&mut self, change: Change<SlimNode>) {
        match change {
            Change::Apply(node) => {
                if let Some(facts) = translate::node(&node) {
                    self.event(4, Event::Machine(facts));
                }
            }
            Change::Gone(node) => self.event(4, Event::MachineGone(node.name_any().into())),
            Change::Synced => self.watch_synced(),
        }
    }

    /// A Lease says that a kubelet or an agent lives, by changing. Until one is seen nothing is concluded from its silence.
    fn lease(&mut self, change: &Change<Lease>) {
        let event = match change {
            Change::Apply(lease) => translate::heartbeat(lease),
            Change::Gone(lease) => translate::heartbeats_ended(lease),
            Change::Synced => return,
        };
        self.event(4, event);
    }

    fn pod(&mut self, change: Change<SlimPod>) {
        match change {
            Change::Apply(pod) => match translate::pod(&pod) {
                Some(PodView::Ours(facts)) => {
                    self.writer.pod_seen(&facts.pod, &facts.claim);
                    self.event(7, Event::Pod(facts));
                }
                Some(PodView::Backfill(facts)) => self.event(7, Event::Backfill(facts)),
                Some(PodView::Foreign(pod, machine, requests)) => {
                    self.event(7, Event::ForeignPod { pod, machine, requests });
                }
                Some(PodView::Neither(uid)) => self.event(7, Event::ForeignPodGone(uid)),
                None => {}
            },
            Change::Gone(pod) => match translate::pod(&pod) {
                Some(PodView::Ours(facts)) => self.event(7, Event::PodGone(facts)),
                Some(PodView::Backfill(facts)) => {
                    self.event(7, Event::BackfillGone(facts.machine, facts.pod.uid));
                }
                Some(PodView::Foreign(uid, ..) | PodView::Neither(uid)) => {
                    self.event(7, Event::ForeignPodGone(uid));
                }
                None => {}
            },
            Change::Synced => self.watch_synced(),
        }
    }

    fn custom(&mut self, kind: Kind, change: Change<DynamicObject>) {
        match change {
            Change::Synced => self.watch_synced(),
            Change::Apply(object) => {
                self.cache.see(key_of(kind, &object), Known::of(&object));
                self.custom_there(kind, object);
            }
            Change::Gone(object) => {
                let (key, uid) = (key_of(kind, &object), object.uid().unwrap_or_default());
                if self.writer.is_busy(&key) {
                    self.cache.bury(key, uid);
                } else {
                    self.cache.forget(&key, &uid);
                }
                self.custom_gone(kind, object);
            }
        }
    }

    fn custom_there(&mut self, kind: Kind, object: DynamicObject) {
        match kind {
            Kind::HTCJob => {
                let Some(job) = typed::<api::HTCJob>(object) else { return };
                let Some(facts) = translate::job(&job) else { return };
                if let Ok(template) = translate::template_of(&job) {
                    self.cache.templates.insert(facts.key.uid.clone(), Arc::new(template));
                }
                self.event(5, Event::Job(facts));
            }
            Kind::Slot => {
                if let Some(facts) = typed(object).as_ref().and_then(translate::slot) {
                    self.event(6, Event::Slot(facts));
                }
            }
            Kind::PartitionableSlot => self.partitionable_slot(&object),
            Kind::Submitter => {
                if let Some(facts) = typed(object).as_ref().and_then(translate::submitter) {
                    self.event(3, Event::Submitter(facts));
                }
            }
            Kind::GroupQuota => {
                if let Some(object) = typed(object) {
                    self.event(2, Event::Group(translate::group(&object)));
                }
            }
            Kind::ConcurrencyLimit => {
                if let Some(object) = typed(object) {
                    self.event(2, Event::Limit(translate::limit(&object)));
                }
            }
            Kind::NodePolicy => {
                if let Some(object) = typed(object) {
                    self.event(1, Event::Policy(translate::node_policy(&object)));
                }
            }
            Kind::SubmitPolicy => {
                if let Some(object) = typed(object) {
                    self.event(1, Event::SubmitPolicy(translate::submit_policy(&object)));
                }
            }
            Kind::DrainRequest => {
                if let Some(object) = typed(object) {
                    self.event(2, Event::Drain(translate::drain(&object)));
                }
            }
            Kind::Negotiator => {
                if let Some(object) = typed(object) {
                    self.event(0, Event::Negotiator(translate::negotiator(&object)));
                }
            }
            Kind::NodeReport => {
                let name = object.name_any();
                let facts = typed(object).as_ref().and_then(translate::report);
                self.event(4, facts.map_or_else(|| Event::ReportGone(name.into()), Event::Report));
            }
        }
    }

    fn custom_gone(&mut self, kind: Kind, object: DynamicObject) {
        match kind {
            Kind::HTCJob => {
                let uid = object.uid().unwrap_or_default().into();
                self.cache.templates.remove(&uid);
                self.event(5, Event::JobGone(uid));
            }
            Kind::Slot => {
                if let Some(facts) = typed(object).as_ref().and_then(translate::slot) {
                    let claim = facts.claim.map(|claim| claim.id);
                    self.event(6, Event::SlotGone { slot: facts.name, claim });
                }
            }
            Kind::PartitionableSlot => self.partitionable_slot(&object),
            Kind::Submitter => {
                if let Some(facts) = typed(object).as_ref().and_then(translate::submitter) {
                    self.event(3, Event::SubmitterGone(facts.name));
                }
            }
            Kind::GroupQuota => self.event(2, Event::GroupGone(object.name_any().into())),
            Kind::ConcurrencyLimit => self.event(2, Event::LimitGone(object.name_any().into())),
            Kind::NodePolicy => self.event(1, Event::PolicyGone(object.name_any().as_str().into())),
            Kind::SubmitPolicy => self.event(1, Event::SubmitPolicyGone(object.name_any().into())),
            Kind::DrainRequest => self.event(2, Event::DrainGone(object.name_any().into())),
            Kind::Negotiator => self.event(0, Event::NegotiatorGone(object.name_any().into())),
            Kind::NodeReport => self.event(4, Event::ReportGone(object.name_any().into())),
        }
    }

    /// Partitionable slots follow from nodes and policies alone: whatever happens to their objects is mended.
    fn partitionable_slot(&mut self, object: &DynamicObject) {
        let name = object.data.get("spec").and_then(|spec| spec.get("name")).and_then(|name| name.as_str());
        if let Some(name) = name.and_then(|name| SlotName::parse(name).ok()) {
            self.publisher.mark([Document::PartitionableSlot(name)]);
        }
    }

    fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            match reply {
                Reply::Event(event) => self.pool.apply(event, self.clock.now()),
                Reply::Seen(key, known) => self.cache.see(key, known),
                Reply::Forgotten(key, uid) => self.cache.forget(&key, &uid),
                Reply::Stale(document) | Reply::Failing(document) => self.publisher.mark([document]),
            }
        }
    }

    fn decide(&mut self) {
        let decision = decide::decide(&mut self.pool, self.clock.now());
        self.next = decision.next;
        for effect in decision.effects {
            if matches!(effect, Effect::KillByAgent { .. }) {
                self.health.overdue_kill();
            }
            let template = match &effect {
                Effect::CreatePod(plan) => self.cache.templates.get(&plan.job.uid).cloned(),
                _ => None,
            };
            self.writer.submit(Task::Effect(Box::new(effect), template));
        }
        if let Some(negotiation) = decision.negotiation {
            let negotiation = Arc::new(*negotiation);
            let cycle = self.cycles.think(Arc::clone(&negotiation));
            self.thinking.spawn(async move { (negotiation, cycle.await) });
        }
    }

    fn publish(&mut self) {
        if self.early.is_some() {
            return;
        }
        self.publisher.mark(self.pool.take_stale());
        let now = self.clock.now();
        for document in self.publisher.due(now) {
            // One at a time: what is worked out while another write is under way would be over an old version.
            if self.object_of(&document).is_some_and(|object| self.writer.is_busy(&object)) {
                self.publisher.mark([document]);
            } else if let Some(task) = self.status_task(document, now) {
                self.writer.submit(task);
            }
        }
    }

    /// The write that brings an object's status up to date, if it is not.
    fn status_task(&self, document: Document, now: Time) -> Option<Task> {
        let object = self.object_of(&document)?;
        let known = self.cache.get(&object);
        let old = known.map_or(&serde_json::Value::Null, |known| &known.status);
        let (status, create) = match render::render(&self.pool, &document, old, now) {
            Rendered::Status(status) => (status, None),
            Rendered::Object { create, status } => (status, Some(create)),
            Rendered::Absent => return Some(Task::Delete { document, uid: known?.uid.clone(), object }),
            Rendered::Nothing => return None,
        };
        match (known, create) {
            (Some(known), _) => {
                let patch = render::merge_patch(&known.status, &status)?;
                let (uid, version) = (known.uid.clone(), known.version.clone());
                Some(Task::Status { document, object, uid, version, patch })
            }
            (None, Some(body)) => Some(Task::Create { document, object, body }),
            (None, None) => None,
        }
    }

    fn object_of(&self, document: &Document) -> Option<ObjectKey> {
        let cluster = |kind, name: String| Some(ObjectKey { kind, namespace: None, name });
        match document {
            Document::Job(uid) => {
                let key = &self.pool.jobs.get(uid)?.key;
                let (namespace, name) = (Some(key.namespace.clone()), key.name.to_string());
                Some(ObjectKey { kind: Kind::HTCJob, namespace, name })
            }
            Document::Slot(name) => cluster(Kind::Slot, name.object_name()),
            Document::PartitionableSlot(name) => cluster(Kind::PartitionableSlot, name.object_name()),
            Document::Submitter(name) => cluster(Kind::Submitter, translate::submitter_object_name(name)),
            Document::Group(object) => cluster(Kind::GroupQuota, object.to_string()),
            Document::Limit(object) => cluster(Kind::ConcurrencyLimit, object.to_string()),
            Document::Policy(name) => cluster(Kind::NodePolicy, name.to_string()),
            Document::SubmitPolicy(name) => cluster(Kind::SubmitPolicy, name.to_string()),
            Document::Negotiator(name) => cluster(Kind::Negotiator, name.to_string()),
            Document::Drain(name) => cluster(Kind::DrainRequest, name.to_string()),
        }
    }

    /// Waits for what is under way, so that nothing is left half done without need.
    async fn finish_writes(&mut self) {
        let limit = tokio::time::sleep(Duration::from_secs(5));
        let mut limit = std::pin::pin!(limit);
        while !self.writer.is_idle() {
            tokio::select! {
                biased;
                () = &mut limit => return,
                Some((line, _)) = self.writer.finished() => self.writer.advance(line),
            }
        }
    }
}

fn key_of(kind: Kind, object: &DynamicObject) -> ObjectKey {
    ObjectKey { kind, namespace: object.namespace().map(Into::into), name: object.name_any() }
}

/// Reads an object as its type. One that the schema let through and the type does not is left alone, and said so: it must not
/// stop the others.
fn typed<K: Resource + DeserializeOwned>(object: DynamicObject) -> Option<K> {
    let name = object.name_any();
    let parsed = object.try_parse();
    parsed.inspect_err(|error| tracing::warn!(object = name, error = %error, "an object cannot be read")).ok()
}
