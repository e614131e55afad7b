//! Writes to the API server: bounded in number, in order for each object, and retried where that may help.
//!
//! A write is described by a [`Task`] and answered by [`Reply`]s. Tasks about one object run one after another, in the order
//! in which they were asked for; tasks about different objects run side by side, as far as their [`lanes`] have room and there are
//! [`places`].

mod backfill;
mod calls;
mod lanes;
mod leases;
mod nodes;
mod notices;
mod places;
mod pods;
mod reports;
mod run;
mod slots;
mod task;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};

use self::lanes::{Lanes, Work};
use self::notices::WrittenEvents;
use self::places::{Lane, Place, Places, TurnedAway};
use self::run::{Sighted, claim_of, created, run, told_later};
use self::task::Line;
pub use self::task::Task;
use super::cache::{Cache, CachedObject, Identity, ObjectKey};
use super::metrics::FailedCalls;
use super::{Clock, unless_cancelled};
use model::pool::{ClaimId, Document, Outcome, PodRef};

/// The outcome of a write.
#[derive(Debug)]
pub enum Reply {
    /// An outcome that the pool has to know.
    Outcome(Outcome),
    /// An object as the API server has it now.
    Seen(ObjectKey, CachedObject),
    /// An object that is gone.
    Forgotten(ObjectKey, String),
    /// A status has to be worked out again.
    Stale(Document),
    /// A status was refused, and has to be tried again later.
    Failing(Document),
}

/// How many events of an object wait to be written. A job of which 100,000 procs fail must not fill the operator's memory, nor write
/// events for half an hour.
const NOTICES: usize = 64;

/// The pause before a write that failed is asked for again: the cause of the failure may last.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

impl Reply {
    /// Whether the deciders or the publisher will ask for the same write again. Then a pause comes first: a write that is refused would
    /// otherwise be repeated without a pause.
    fn asks_again(&self) -> bool {
        matches!(self, Self::Failing(_) | Self::Outcome(Outcome::Failed(_)))
    }
}

/// The tools that the calls of all tasks share.
pub struct Tools {
    /// The client. It does not retry by itself: the writer does, with a bound and a log.
    client: Client,
    clock: Clock,
    /// The name that Kubernetes events give as their reporter's.
    identity: Arc<str>,
    written: WrittenEvents,
    /// How many names were made.
    names: AtomicU64,
    places: Arc<Places>,
    failed: FailedCalls,
}

/// The needs of every call of a task.
struct Context {
    tools: Arc<Tools>,
    /// The lane whose places the calls of the task take.
    lane: Lane,
    /// The task's object as the operator had last seen it when the turn came to the task. `None` if the operator knew of no such object,
    /// and for a task about something else than an object of the operator's own kinds.
    identity: Option<Identity>,
    /// The place with which the task began, until its first call takes the place.
    first: Mutex<Option<Place>>,
}

impl Tools {
    /// The tools of all calls: a client without retries of its own, the time, and who this operator is.
    pub fn new(client: Client, clock: Clock, identity: &str) -> Self {
        let (written, names, places) = (WrittenEvents::default(), AtomicU64::default(), Arc::default());
        Self {
            client,
            clock,
            identity: identity.into(),
            written,
            names,
            places,
            failed: FailedCalls::default(),
        }
    }

    /// These tools, with a counter of the calls that fail.
    pub fn counted(self, failed: FailedCalls) -> Self {
        Self { failed, ..self }
    }

    /// A number that no other name has: the time in nanoseconds, plus a count for names that are made at the same time.
    fn number(&self, now: Timestamp) -> i128 {
        now.as_nanosecond() + i128::from(self.names.fetch_add(1, Ordering::Relaxed) % 1000)
    }
}

impl Context {
    /// For the calls of a task of this lane, about an object that the operator last saw so.
    fn of(tools: &Arc<Tools>, lane: Lane, identity: Option<Identity>) -> Self {
        Self { tools: Arc::clone(tools), lane, identity, first: Mutex::default() }
    }

    /// Waits until there is a place for the task's first call.
    ///
    /// # Errors
    /// When the task creates a proc's pod in a namespace whose calls are slow, and has waited for too long.
    async fn begin(&self, work: &Work) -> Result<(), TurnedAway> {
        let place = match work.task.pod_plan() {
            Some(_) => self.tools.places.begin_unless_slow(&self.lane, work.since).await?,
            None => self.tools.places.begin(&self.lane).await,
        };
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        Ok(())
    }

    /// A place for a call, as soon as there is one. The first call takes the place with which the task began.
    async fn place(&self) -> Place {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(place) => place,
            None => self.tools.places.take(&self.lane).await,
        }
    }
}

/// The writer: owned by the engine, which hands it tasks and takes its replies.
pub struct Writer {
    tools: Arc<Tools>,
    lines: BTreeMap<Line, Queue>,
    lanes: Lanes,
    /// The calls are dropped with the writer: an operator that no longer leads makes no more calls.
    calls: JoinSet<Vec<Reply>>,
    running: HashMap<Id, Running>,
    /// How many statuses of slots are being written, or held.
    statuses_of_slots: usize,
    /// The pods that are being made: the claim of each, and the task that waits to hear that the pod was seen.
    making: BTreeMap<Line, (ClaimId, oneshot::Sender<PodRef>)>,
    /// How many events were dropped.
    dropped: u64,
}

/// The tasks about one object.
#[derive(Default)]
struct Queue {
    /// The task whose turn it is, until its lane has room.
    held: Option<Box<Work>>,
    /// The tasks behind the one whose turn it is.
    behind: VecDeque<Task>,
}

/// A task that has begun.
struct Running {
    line: Line,
    /// The lane that counts the task; `None` for a task that has made its calls, and pauses before its answers are told.
    lane: Option<Lane>,
    is_status_of_slot: bool,
}

/// A line whose task has ended, for [`Writer::advance`].
pub struct Finished(Line);

impl Finished {
    /// The object that the task was about; `None` for a pod, an event or an agent's Lease.
    pub fn object(&self) -> Option<&ObjectKey> {
        self.0.object()
    }
}

impl Writer {
    /// A writer that is idle.
    pub fn new(tools: Tools) -> Self {
        Self {
            tools: Arc::new(tools),
            lines: BTreeMap::new(),
            lanes: Lanes::default(),
            calls: JoinSet::new(),
            running: HashMap::new(),
            statuses_of_slots: 0,
            making: BTreeMap::new(),
            dropped: 0,
        }
    }

    /// Starts a task, or queues the task behind those about the same object. A notice is dropped and counted while [`NOTICES`] others about
    /// its object wait. A look at a pod is dropped while any call about the pod is under way: the deciders ask for another look if need be.
    ///
    /// The calls of a task act on the object that `cache` has when the turn comes to the task. An object that somebody has made under the
    /// same name since, and that the operator has not seen, is neither changed nor deleted.
    pub fn submit(&mut self, task: Task, cache: &Cache) {
        let line = task.line();
        if let Some(queue) = self.lines.get_mut(&line) {
            if task.is_look() {
                return;
            }
            if matches!(line, Line::Notice(_)) && queue.behind.len() >= NOTICES {
                self.dropped += 1;
                return;
            }
            queue.behind.push_back(task);
        } else {
            self.lines.insert(line.clone(), Queue::default());
            self.start(line, task, cache);
        }
    }

    /// Ends the creation of a pod that a watch has shown: the pod is made, and the answer may be lost. Without this the
    /// creation would be repeated, perhaps after the pod is gone, and its claim with it.
    pub fn pod_seen(&mut self, pod: &PodRef, claim: &ClaimId) {
        let line = Line::Pod(pod.namespace.clone(), pod.name.clone());
        if self.making.get(&line).is_some_and(|(made_for, _)| made_for == claim)
            && let Some((_, tell)) = self.making.remove(&line)
        {
            // Sending fails if the answer has just come: then nobody waits any more.
            let _ = tell.send(pod.clone());
        }
        let held = self.lines.get_mut(&line).map(|queue| &mut queue.held);
        let of_claim = |work: &Work| work.task.pod_plan().is_some_and(|plan| plan.claim.id == *claim);
        if let Some(work) = held.and_then(|held| held.take_if(|work| of_claim(work))) {
            let made = created(work.task.pod_plan().map(claim_of), pod.clone());
            let call = self.calls.spawn(ready(made));
            self.running.insert(call.id(), Running { line, lane: None, is_status_of_slot: false });
        }
    }

    /// Whether a write about this object is under way.
    pub fn is_busy(&self, object: &ObjectKey) -> bool {
        self.lines.contains_key(&Line::Object(object.clone()))
    }

    /// How many events were dropped so far.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many statuses of slots are being written, or wait for that.
    pub const fn statuses_of_slots(&self) -> usize {
        self.statuses_of_slots
    }

    /// Whether anything is under way.
    pub fn is_idle(&self) -> bool {
        self.lines.is_empty()
    }

    /// Waits for a task to end, and returns its line with the answers; `None` while no task is under way.
    ///
    /// # Panics
    /// With the panic of the task.
    pub async fn finished(&mut self) -> Option<(Finished, Vec<Reply>)> {
        loop {
            let ended = self.calls.join_next_with_id().await?;
            if let Some(result) = self.result(ended) {
                return Some(result);
            }
        }
    }

    /// The line and the answers of a task that has ended by now, if one has.
    ///
    /// # Panics
    /// With the panic of the task.
    pub fn already_finished(&mut self) -> Option<(Finished, Vec<Reply>)> {
        loop {
            let ended = self.calls.try_join_next_with_id()?;
            if let Some(result) = self.result(ended) {
                return Some(result);
            }
        }
    }

    /// Returns the line and the answers of a task that has ended; `None` if the answers are told after a pause. Lets
    /// another task of the lane begin.
    ///
    /// # Panics
    /// With the panic of the task.
    fn result(&mut self, ended: Result<(Id, Vec<Reply>), JoinError>) -> Option<(Finished, Vec<Reply>)> {
        // Tasks are cancelled only when the writer is dropped.
        let (id, replies) = unless_cancelled(ended)?;
        let Running { line, lane, is_status_of_slot } = self.running.remove(&id)?;
        self.making.remove(&line);
        if let Some(lane) = lane {
            self.lanes.ended(&lane);
            self.fill(&lane);
            if replies.iter().any(Reply::asks_again) {
                let call = self.calls.spawn(told_later(replies));
                self.running.insert(call.id(), Running { line, lane: None, is_status_of_slot });
                return None;
            }
        }
        self.statuses_of_slots -= usize::from(is_status_of_slot);
        Some((Finished(line), replies))
    }

    /// Lets tasks of a lane begin, as far as the lane has room.
    fn fill(&mut self, lane: &Lane) {
        while let Some(line) = self.lanes.next(lane) {
            let held = self.lines.get_mut(&line).map(|queue| &mut queue.held);
            // Meanwhile the turn of the line may have come to a task of another lane.
            if let Some(work) = held.and_then(|held| held.take_if(|work| work.lane == *lane)) {
                self.begin(line, work);
            }
        }
    }

    /// Starts what waited behind the task that ended. `cache` has seen the replies of that task.
    pub fn advance(&mut self, Finished(line): Finished, cache: &Cache) {
        match self.lines.get_mut(&line).and_then(|queue| queue.behind.pop_front()) {
            Some(task) => self.start(line, task, cache),
            None => {
                self.lines.remove(&line);
            }
        }
    }

    /// Prepares for the pod that the task is to make, which a watch may show before the call is answered.
    fn expect_pod(&mut self, line: &Line, task: &Task) -> Sighted {
        Sighted(task.pod_plan().map(|plan| {
            let (tell, pod) = oneshot::channel();
            self.making.insert(line.clone(), (plan.claim.id.clone(), tell));
            pod
        }))
    }

    /// Lets a task begin whose turn it is, or holds the task until its lane has room.
    fn start(&mut self, line: Line, task: Task, cache: &Cache) {
        let identity = line.object().and_then(|object| cache.get(object)).map(CachedObject::identity);
        let work = Work::new(task, identity);
        self.statuses_of_slots += usize::from(work.task.is_status_of_slot());
        if self.lanes.has_room(&work.lane) {
            self.begin(line, work);
        } else {
            self.lanes.hold(&work.lane, line.clone());
            self.lines.entry(line).or_default().held = Some(work);
        }
    }

    fn begin(&mut self, line: Line, work: Box<Work>) {
        self.lanes.begins(&work.lane);
        let sighted = self.expect_pod(&line, &work.task);
        let context = Context::of(&self.tools, work.lane.clone(), work.identity.clone());
        let is_status_of_slot = work.task.is_status_of_slot();
        let running = Running { line, lane: Some(work.lane.clone()), is_status_of_slot };
        let call = self.calls.spawn(run(context, work, sighted));
        self.running.insert(call.id(), running);
    }
}

#[cfg(test)]
mod tests;
