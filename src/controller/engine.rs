//! The loop: it hands what watches have seen to the pool, asks the deciders what to do, and hands their effects and the
//! stale statuses to the writer.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::archive::Archive;
use super::cache::{Cache, CachedObject, Kind};
use super::creators::Creators;
use super::health::Health;
use super::journal::{self, Journal};
use super::kinds::{self, News, Rendered, Sighting, Stage, Trace, WatchMessage};
use super::leader::HighestClusterId;
use super::publisher::Publisher;
use super::start::{PoolEvent, Start};
use super::writer::{Finished, Reply, Task, Writer};
use super::{Clock, Cycles, unless_cancelled};
use model::decide::{self, Negotiation};
use model::negotiator::Outcome as Matches;
use model::pool::{Document, Effect, Event, JobFacts, Pool, Time};

/// The most changes that the loop takes in before it asks the deciders: enough to be quick, few enough to answer soon.
const AT_A_TIME: usize = 2000;

/// The loop turns at most this often while much happens. Each turn costs something, however little has changed, and so does each time that
/// the loop's thread is woken.
const MOMENT: Duration = Duration::from_millis(10);

/// The loop turns at least this often, so that its heartbeat says that it lives.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The operator's loop with all it owns.
pub struct Engine {
    pool: Pool,
    cache: Cache,
    writer: Writer,
    publisher: Publisher,
    health: Arc<Health>,
    highest: HighestClusterId,
    journal: Journal,
    clock: Clock,
    /// The start; `None` once every awaited kind has been told. Only then do the deciders begin.
    start: Option<Start>,
    /// When the deciders want to look again.
    next: Option<Time>,
    cycles: Cycles,
    creators: Creators,
    archive: Archive,
    /// The cycle that is under way: it ends with the engine.
    thinking: JoinSet<(Arc<Negotiation>, Matches)>,
}

impl Engine {
    /// An engine that has seen nothing yet.
    pub fn new(
        writer: Writer,
        (health, highest): (Arc<Health>, HighestClusterId),
        clock: Clock,
        (cycles, creators): (Cycles, Creators),
        archive: Archive,
    ) -> Self {
        let mut pool = Pool::default();
        pool.write_claims_late();
        if archive.is_on() {
            pool.keep_history();
        }
        pool.apply(Event::ClusterIdsGiven(highest.get()), clock.now());
        if journal::tells_of_transitions() {
            // The pool keeps transitions only for the log. Without the log nobody would take them out of the pool,
            // and they would gather in memory.
            pool.begin_trace();
        }
        Self {
            pool,
            cache: Cache::default(),
            writer,
            publisher: Publisher::default(),
            health,
            highest,
            journal: Journal::default(),
            clock,
            start: Some(Start::new()),
            next: None,
            cycles,
            creators,
            archive,
            thinking: JoinSet::new(),
        }
    }

    /// This engine, which asks for at most so many pods of a namespace at a time.
    #[must_use]
    pub fn creating_at_once(mut self, pods: usize) -> Self {
        self.pool.create_at_once(pods);
        self
    }

    /// Runs until `stop`, then waits for writes under way.
    pub async fn run(mut self, mut seen: mpsc::Receiver<WatchMessage>, stop: CancellationToken) {
        let mut turned = Instant::now();
        loop {
            let pause = self.pause();
            tokio::select! {
                // The first branch that is ready is taken, so that a run depends only on what has arrived.
                biased;
                () = stop.cancelled() => break,
                Some(first) = self.writer.finished() => {
                    sleep_until(turned + MOMENT).await;
                    self.take_answers(first);
                }
                Some(thought) = self.thinking.join_next() => self.conclude(thought),
                batch = self.archive.written() => self.written(batch),
                Some(jobs) = self.creators.found() => self.take_jobs(jobs),
                Some(first) = seen.recv() => {
                    sleep_until(turned + MOMENT).await;
                    self.take_in(first, &mut seen);
                }
                () = sleep(pause) => {}
            }
            self.take_others(&mut seen);
            // An operator that is told to stop while it takes in changes decides nothing more.
            if stop.is_cancelled() {
                break;
            }
            self.decide();
            self.publish();
            self.health.beat(&self.pool, self.clock.now());
            self.health.dropped(self.writer.dropped());
            turned = Instant::now();
        }
        self.finish_writes().await;
    }

    /// Takes in what else has arrived. While the operator writes much, an answer to a write is always waiting, so that no other branch of
    /// the loop would ever be taken.
    fn take_others(&mut self, seen: &mut mpsc::Receiver<WatchMessage>) {
        while let Some(thought) = self.thinking.try_join_next() {
            self.conclude(thought);
        }
        while let Some(batch) = self.archive.written().now_or_never() {
            self.written(batch);
        }
        if let Some(Some(jobs)) = self.creators.found().now_or_never() {
            self.take_jobs(jobs);
        }
        if let Ok(first) = seen.try_recv() {
            self.take_in(first, seen);
        }
    }

    fn conclude(&mut self, thought: Result<(Arc<Negotiation>, Matches), JoinError>) {
        let Some((negotiation, matches)) = unless_cancelled(thought) else { return };
        journal::negotiated(&negotiation, &matches);
        decide::conclude(&mut self.pool, &negotiation, &matches, self.clock.now());
    }

    fn written(&mut self, batch: u64) {
        self.pool.apply(Event::Archived(batch), self.clock.now());
    }

    fn take_jobs(&mut self, jobs: Vec<(Stage, JobFacts)>) {
        for (stage, job) in jobs {
            self.event(stage, Event::Job(job).into());
        }
    }

    /// For how long the loop may sleep if no answer and no change arrives.
    fn pause(&self) -> Duration {
        let now = self.clock.now();
        // Nothing is written before the start is over.
        let write =
            if self.start.is_some() { None } else { self.publisher.next(self.writer.statuses_of_slots()) };
        let next = [self.next, write].into_iter().flatten().min();
        let pause = next.map_or(LONGEST_PAUSE, |at| at.since(now));
        pause.clamp(Duration::from_millis(1), LONGEST_PAUSE)
    }

    fn take_in(&mut self, first: WatchMessage, more: &mut mpsc::Receiver<WatchMessage>) {
        let mut next = Some(first);
        for left in (0..AT_A_TIME).rev() {
            let Some(seen) = next else { return };
            match seen {
                WatchMessage::Object(sighting) => self.object(*sighting),
                WatchMessage::All(kind) => self.all_told(kind),
                WatchMessage::Served(kind, there) => self.health.serves(kind, there),
                WatchMessage::Undecodable(object) => self.writer.submit(Task::Unread(object), &self.cache),
            }
            next = if left > 0 { more.try_recv().ok() } else { None };
        }
    }

    fn object(&mut self, sighting: Sighting) {
        match sighting.trace {
            Some(Trace::There(key, known, document)) => {
                // Somebody else may have written the status. If the watch was only faster than the answer to the operator's own write,
                // the document is found to need no write.
                if self.cache.is_surprised(&key, &known) {
                    self.publisher.mark(document, self.clock.now());
                }
                self.cache.see(key, known);
            }
            Some(Trace::Gone(key, uid)) if self.writer.is_busy(&key) => self.cache.forget_deleted(key, uid),
            Some(Trace::Gone(key, uid)) => self.cache.forget(&key, &uid),
            None => {}
        }
        for news in sighting.news {
            match news {
                News::Event(event) => {
                    if let Event::JobGone(job) = &*event {
                        self.creators.forget(job);
                    }
                    self.event(sighting.stage, PoolEvent::Event(event));
                }
                News::Job(job, annotations) => {
                    if let Some(job) = self.creators.look_at(sighting.stage, job, *annotations) {
                        self.event(sighting.stage, Event::Job(job).into());
                    }
                }
                News::Pod(facts) => {
                    self.writer.pod_seen(&facts.pod, &facts.claim);
                    self.event(sighting.stage, PoolEvent::Pod(facts));
                }
                News::Template(job, template) => self.cache.keep_template(job, template),
                News::Stale(document) => self.publisher.mark([document], self.clock.now()),
            }
        }
    }

    /// Hands an event to the pool; at the start, once the event's stage has come.
    fn event(&mut self, stage: Stage, told: PoolEvent) {
        let told = match &mut self.start {
            Some(start) => start.told(stage, told),
            None => Some(told),
        };
        if let Some(told) = told {
            self.pool.apply(told.into(), self.clock.now());
        }
    }

    /// Every object of a kind has been told; after the last of the kinds that are awaited, the deciders begin.
    fn all_told(&mut self, kind: Kind) {
        let Some(start) = &mut self.start else { return };
        let now = self.clock.now();
        for told in start.all_told(kind) {
            self.pool.apply(told.into(), now);
        }
        if start.is_over() {
            self.start = None;
            self.cache.listed();
            self.pool.apply(Event::Synced, now);
            self.health.ready();
        }
    }

    /// Takes in the write that has ended first, and others that have ended by now.
    fn take_answers(&mut self, first: (Finished, Vec<Reply>)) {
        let mut next = Some(first);
        for left in (0..AT_A_TIME).rev() {
            let Some((ended, replies)) = next else { return };
            self.take_answer(ended, replies);
            next = if left > 0 { self.writer.already_finished() } else { None };
        }
    }

    /// Takes in a write that has ended, and starts the write that waited behind it. The cache sees the replies first: the next write acts
    /// on the object as it is now.
    fn take_answer(&mut self, ended: Finished, replies: Vec<Reply>) {
        let object = ended.object().cloned();
        self.answer(replies);
        self.writer.advance(ended, &self.cache);
        if let Some(object) = object.filter(|object| !self.writer.is_busy(object)) {
            self.cache.nobody_writes(&object);
        }
    }

    fn answer(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            match reply {
                Reply::Outcome(outcome) => self.pool.apply(Event::Outcome(outcome), self.clock.now()),
                Reply::Seen(key, known) => self.cache.see(key, known),
                Reply::Forgotten(key, uid) => self.cache.forget(&key, &uid.as_str().into()),
                Reply::Stale(document) | Reply::Failing(document) => {
                    self.publisher.mark([document], self.clock.now());
                }
            }
        }
    }

    fn decide(&mut self) {
        let decision = decide::decide(&mut self.pool, self.clock.now());
        self.next = decision.next;
        self.highest.raise(self.pool.highest_cluster());
        journal::moved(&self.pool.take_trace());
        for effect in decision.effects {
            journal::asked(&self.pool, &effect);
            if matches!(effect, Effect::KillByAgent { .. }) {
                self.health.overdue_kill();
            }
            let template = match &effect {
                Effect::CreatePod(plan) => self.cache.template(&plan.claim.last.job.uid).cloned(),
                _ => None,
            };
            self.writer.submit(Task::Effect(effect, template), &self.cache);
        }
        if let Some(batch) = decision.ends {
            self.archive.write(&batch, |ended| {
                let kept = self.cache.template(&ended.job.uid)?;
                kept.of_proc(ended.cluster_id, ended.proc).map(Arc::new)
            });
        }
        if let Some(negotiation) = decision.negotiation {
            let negotiation = Arc::new(*negotiation);
            let cycle = self.cycles.think(Arc::clone(&negotiation));
            self.thinking.spawn(async move { (negotiation, cycle.await) });
        }
    }

    fn publish(&mut self) {
        if self.start.is_some() {
            return;
        }
        let stale = self.pool.take_statuses();
        self.journal.changed(&self.pool, &stale);
        let now = self.clock.now();
        self.publisher.mark(stale, now);
        while let Some(document) = self.publisher.due(now, self.writer.statuses_of_slots()) {
            // An object has one write at a time: a patch that is made while another is under way would be over an old
            // version.
            if kinds::object_of(&self.pool, &document).is_some_and(|object| self.writer.is_busy(&object)) {
                self.publisher.mark([document], now);
            } else if let Some(task) = self.status_task(document, now) {
                self.writer.submit(task, &self.cache);
            }
        }
    }

    /// Returns the write that brings the object of `document` into line with the pool; `None` if no write is needed.
    fn status_task(&self, document: Document, now: Time) -> Option<Task> {
        let object = kinds::object_of(&self.pool, &document)?;
        let known = self.cache.get(&object);
        let old = known.map(CachedObject::status).unwrap_or_default();
        let (status, create) = match kinds::render(&self.pool, &document, &old, now) {
            Rendered::Status(status) => (status, None),
            Rendered::Object { create, status } => (status, Some(create)),
            Rendered::Absent => {
                let (uid, version) = known.map(|known| (known.uid.to_string(), known.version.to_string()))?;
                return Some(Task::Delete { document, object, uid, version });
            }
            Rendered::Nothing => return None,
        };
        match (known, create) {
            (Some(known), _) => {
                let patch = answers::merge_patch(&old, &status)?;
                let (uid, version) = (known.uid.to_string(), known.version.to_string());
                Some(Task::Status { document, object, uid, version, patch })
            }
            (None, Some(body)) => Some(Task::Create { document, object, body }),
            (None, None) => None,
        }
    }

    /// Waits up to five seconds for all writes, those under way and those queued behind them. Nothing more is decided on their answers.
    async fn finish_writes(&mut self) {
        let limit = sleep(Duration::from_secs(5));
        let mut limit = std::pin::pin!(limit);
        while !self.writer.is_idle() {
            tokio::select! {
                biased;
                () = &mut limit => return,
                Some((ended, replies)) = self.writer.finished() => self.take_answer(ended, replies),
            }
        }
    }
}

#[cfg(test)]
mod tests;
