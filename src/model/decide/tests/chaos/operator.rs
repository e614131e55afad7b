//! The operator as its shell runs it: calls in order for each object, side by side for different ones, statuses as patches
//! over the version that was seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::checks;
use super::rng::Rng;
use super::server::{Call, Fate, Reply, Server, Status, WATCHES};
use crate::decide::{self, Negotiation};
use crate::negotiator::{self, Outcome as Matches};
use crate::pool::{Document, Effect, Event, JobUid, Pool, Time};

/// Calls about one object. The first is under way; its answer is here once it has taken effect.
#[derive(Default)]
struct Line {
    calls: VecDeque<Call>,
    answer: Option<Vec<Reply>>,
}

/// An operator process.
#[derive(Default)]
pub struct Operator {
    pub pool: Pool,
    lines: BTreeMap<String, Line>,
    cycles: VecDeque<(Box<Negotiation>, Matches)>,
    known: BTreeMap<JobUid, (u64, Status)>,
    stale: BTreeSet<JobUid>,
    /// Lines whose calls do not reach the API server.
    pub stuck: BTreeSet<String>,
    /// Lines whose answers do not come back.
    pub unheard: BTreeSet<String>,
    /// What becomes of the next calls of a line.
    pub fates: BTreeMap<String, VecDeque<Fate>>,
}

impl Operator {
    /// Starts from what the API server has.
    pub fn start(server: &mut Server, now: Time) -> Self {
        let mut operator = Self::default();
        for watch in &mut server.watches {
            watch.clear();
        }
        for event in server.list() {
            if let Event::Job(facts) = &event {
                let version = server.jobs.get(&facts.key.uid).map_or(0, |(version, _)| *version);
                operator.known.insert(facts.key.uid.clone(), (version, Status::of(facts)));
            }
            operator.pool.apply(event, now);
        }
        operator.pool.apply(Event::Synced, now);
        operator
    }

    /// Dies. Calls that were under way reached the API server or did not.
    pub fn die(self, server: &mut Server, rng: &mut Rng) {
        for line in self.lines.into_values().filter(|line| line.answer.is_none()) {
            if let Some(call) = line.calls.into_iter().next() {
                match rng.below(3) {
                    0 => {}
                    1 => drop(server.perform(call, Fate::Half)),
                    _ => drop(server.perform(call, Fate::Lost)),
                }
            }
        }
    }

    /// Goes on for a while: some of what is under way moves, then the deciders look. True while anything moved.
    pub fn beat(&mut self, server: &mut Server, now: Time, rng: &mut Rng) -> bool {
        let mut moved = false;
        for watch in 0..WATCHES {
            if rng.fault(12) {
                server.coalesce(watch);
            }
            let waiting = server.watches.get(watch).map_or(0, VecDeque::len);
            let late = !rng.calm() && rng.one_in(2);
            let count = if late { rng.below(waiting as u64 + 1) } else { waiting as u64 };
            for _ in 0..count {
                moved |= self.deliver(server, watch, now);
            }
        }
        moved |= self.move_lines(server, now, rng);
        if !rng.fault(2)
            && let Some((negotiation, matches)) = self.cycles.pop_front()
        {
            self.conclude(&negotiation, &matches, now);
            moved = true;
        }
        moved |= self.decide(now);
        if !rng.fault(3) {
            moved |= self.publish();
        }
        let held = |line: &String| self.stuck.contains(line) || self.unheard.contains(line);
        moved || !self.lines.keys().all(held) || !self.cycles.is_empty()
    }

    fn deliver(&mut self, server: &mut Server, watch: usize, now: Time) -> bool {
        let Some(change) = server.watches.get_mut(watch).and_then(VecDeque::pop_front) else { return false };
        match &change.event {
            Event::Job(facts) => {
                self.see(facts.key.uid.clone(), change.version, Status::of(facts));
            }
            Event::JobGone(uid) => {
                self.known.remove(uid);
            }
            _ => {}
        }
        self.pool.apply(change.event, now);
        true
    }

    fn see(&mut self, uid: JobUid, version: u64, status: Status) {
        if self.known.get(&uid).is_none_or(|(known, _)| *known <= version) {
            self.known.insert(uid, (version, status));
        }
    }

    fn move_lines(&mut self, server: &mut Server, now: Time, rng: &mut Rng) -> bool {
        let mut moved = false;
        let keys: Vec<String> = self.lines.keys().cloned().collect();
        for key in keys {
            if rng.fault(3) || self.stuck.contains(&key) {
                continue;
            }
            let told = self.fates.get_mut(&key);
            let Some(line) = self.lines.get_mut(&key) else { continue };
            if line.answer.is_none()
                && let Some(call) = line.calls.front().cloned()
            {
                let fate = match rng.below(8) {
                    _ if rng.calm() => told.and_then(VecDeque::pop_front).unwrap_or(Fate::Done),
                    0 => Fate::Failed,
                    1 if rng.one_in(2) => Fate::Lost,
                    2 if rng.one_in(2) => Fate::Half,
                    _ => Fate::Done,
                };
                if fate == Fate::Stuck {
                    self.stuck.insert(key);
                    continue;
                }
                line.answer = Some(server.perform(call, fate));
                moved = true;
            }
            if rng.fault(3) || self.unheard.contains(&key) {
                continue;
            }
            moved |= self.answer(&key, now);
        }
        moved
    }

    fn answer(&mut self, key: &str, now: Time) -> bool {
        let Some(line) = self.lines.get_mut(key) else { return false };
        let Some(replies) = line.answer.take() else { return false };
        line.calls.pop_front();
        if line.calls.is_empty() {
            self.lines.remove(key);
        }
        for reply in replies {
            match reply {
                Reply::Event(event) => self.pool.apply(event, now),
                Reply::Seen(uid, version, status) => self.see(uid, version, status),
                Reply::Stale(uid) => {
                    self.stale.insert(uid);
                }
            }
        }
        true
    }

    fn submit(&mut self, key: String, call: Call) {
        self.lines.entry(key).or_default().calls.push_back(call);
    }

    fn decide(&mut self, now: Time) -> bool {
        let twin = decide::decide(&mut self.pool.clone(), now);
        let before: BTreeSet<_> = self.pool.slots().keys().cloned().collect();
        let decision = decide::decide(&mut self.pool, now);
        assert_eq!(
            (twin.effects, twin.next),
            (decision.effects.clone(), decision.next),
            "deciding twice is the same"
        );
        checks::always(&self.pool);
        checks::claims_made(&self.pool, &before);
        let moved = !decision.effects.is_empty() || decision.negotiation.is_some();
        for effect in decision.effects {
            if let Some(line) = line_of(&effect) {
                self.submit(line, Call::Effect(effect));
            }
        }
        if let Some(negotiation) = decision.negotiation {
            let matches = negotiator::negotiate(&negotiation.cycle);
            self.cycles.push_back((negotiation, matches));
        }
        moved
    }

    fn conclude(&mut self, negotiation: &Negotiation, matches: &Matches, now: Time) {
        let before: BTreeSet<_> = self.pool.slots().keys().cloned().collect();
        decide::conclude(&mut self.pool, negotiation, matches, now);
        checks::claims_made(&self.pool, &before);
    }

    fn publish(&mut self) -> bool {
        let mut moved = false;
        for document in self.pool.take_statuses() {
            match document {
                Document::Job(uid) => {
                    self.stale.insert(uid);
                }
                Document::Submitter(name) => {
                    if let Some(submitter) = self.pool.submitters().get(&name) {
                        let call = Call::Account(name.clone(), submitter.accounts.clone());
                        self.submit(format!("submitter {name}"), call);
                        moved = true;
                    }
                }
                _ => {}
            }
        }
        for uid in std::mem::take(&mut self.stale) {
            let Some(cluster) = self.pool.jobs().get(&uid) else { continue };
            let Some((version, known)) = self.known.get(&uid) else { continue };
            let complete = cluster.is_complete() && cluster.problems.is_empty() && !cluster.removing;
            let status = Status {
                succeeded: cluster.succeeded.clone(),
                failed: cluster.failed.clone(),
                cluster: Some(cluster.cluster),
                first_start: cluster.first_start,
                completed_at: cluster.completed_at.filter(|_| complete),
            };
            if status != *known {
                let call = Call::Status { job: uid.clone(), version: *version, status };
                self.submit(format!("job {uid}"), call);
                moved = true;
            }
        }
        moved
    }
}

/// What a call is about: calls about the same are made one after another.
fn line_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::WriteSlot { slot, .. } | Effect::DeleteSlot { slot, .. } => Some(format!("slot {slot}")),
        Effect::CreatePod(plan) => Some(format!("pod {}", plan.claim.pod_name())),
        Effect::DeletePod { pod, .. }
        | Effect::Suspend { pod, .. }
        | Effect::KillByAgent { pod, .. }
        | Effect::LookAtPod { pod, .. }
        | Effect::ReleasePod { pod, .. } => Some(format!("pod {}", pod.name)),
        Effect::HoldJob(job) | Effect::ReleaseJob(job) => Some(format!("job {}", job.uid)),
        Effect::CreateBackfill(_)
        | Effect::LookForBackfill { .. }
        | Effect::DeleteBackfill { .. }
        | Effect::Benchmark { .. }
        | Effect::ReadAgentLease { .. }
        | Effect::Tell(_) => None,
    }
}
