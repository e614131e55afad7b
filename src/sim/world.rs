//! The API server, the kubelets and the agents of a simulation. They carry out each effect after the scenario's
//! latencies, and tell the pool by events.

mod backfill;
mod machines;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pods::Pod;

use super::books::Books;
use super::chance::{Chance, stream};
use super::number::span;
use super::owner::Owner;
use super::queue::{Happening, Queue};
use super::scenario::{MachineGroup, Scenario};
use super::workload::{Arrival, Stream};
use model::pool::backfill::Facts;
use model::pool::{
    Benchmarks, ByProc, ClaimId, Effect, End, Event, JobFacts, JobKey, JobUid, MachineFacts, MachineName,
    Outcome, PodFacts, PodPlan, PodRef, PodUid, Pool, RecordedOwner, SlotName, Time,
};
use model::schedd::submit;

/// How long an agent needs for its benchmarks.
const BENCHMARKS_TAKE: Duration = Duration::from_secs(30);

/// Everything outside the pool.
pub struct World<'s> {
    scenario: &'s Scenario,
    pub queue: Queue,
    pub books: Books,
    streams: Vec<Stream<'s>>,
    /// The next job of each source, by the source's index.
    coming: Vec<Option<Arrival>>,
    machines: Vec<Host<'s>>,
    hosts: BTreeMap<MachineName, usize>,
    jobs: BTreeMap<JobUid, Job>,
    pods: BTreeMap<PodUid, Pod>,
    backfill: BTreeMap<PodUid, Facts>,
    /// The Slot objects in the API server, each with the claim that it carries.
    slots: BTreeMap<SlotName, ClaimId>,
    kubelets: Chance,
    submitted: u64,
    pods_made: u64,
}

/// A machine and its agent.
struct Host<'s> {
    facts: MachineFacts,
    group: &'s MachineGroup,
    owner: Option<Owner<'s>>,
    rng: Chance,
    here: bool,
    /// The pods that the machine's agent has suspended.
    suspended: BTreeSet<PodUid>,
    benchmarks: Option<Benchmarks>,
    /// When the machine left the pool, each time. A pod that was made during stay `n`, counted from 0, runs no longer
    /// than until `left[n]`.
    left: Vec<Time>,
}

/// A job as it is in the API server.
struct Job {
    facts: JobFacts,
    runtimes: Vec<Duration>,
    /// The index of the record of the job's first proc in [`Books::records`].
    record: usize,
    status_due: bool,
    status_written: Option<Time>,
    /// How many procs were removed when the status was last written.
    removed: u64,
}

impl<'s> World<'s> {
    /// The world before anything has happened.
    pub fn new(scenario: &'s Scenario) -> Self {
        let mut world = Self {
            scenario,
            queue: Queue::default(),
            books: Books::new(scenario),
            streams: scenario.sources.iter().map(|source| Stream::new(scenario, source)).collect(),
            coming: Vec::new(),
            machines: Vec::new(),
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            backfill: BTreeMap::new(),
            slots: BTreeMap::new(),
            kubelets: stream(scenario.seed, "kubelets", ""),
            submitted: 0,
            pods_made: 0,
        };
        for group in &scenario.machines {
            for number in 1..=group.count {
                world.add_machine(group, number);
            }
        }
        world.coming = world.streams.iter_mut().map(Stream::next).collect();
        world
    }

    fn add_machine(&mut self, group: &'s MachineGroup, number: u32) {
        let name: MachineName = format!("{}{number}", group.name).into();
        let (seed, start) = (self.scenario.seed, self.scenario.start);
        let owner = group.owner.as_ref().map(|activity| Owner::new(activity, &name, seed, start));
        let rng = stream(seed, "absence", name.as_str());
        let facts = MachineFacts { name: name.clone(), ..group.facts.clone() };
        self.hosts.insert(name, self.machines.len());
        self.machines.push(Host {
            facts,
            group,
            owner,
            rng,
            here: true,
            suspended: BTreeSet::new(),
            benchmarks: None,
            left: Vec::new(),
        });
    }

    /// Applies the objects and machines of the start to the pool, and schedules the first arrivals.
    pub fn begin(&mut self, pool: &mut Pool) {
        let start = self.scenario.start;
        for event in &self.scenario.objects {
            pool.apply(event.clone(), start);
        }
        for index in 0..self.machines.len() {
            self.arrives(index, pool, start);
            if self.machines.get(index).is_some_and(|host| host.owner.is_some()) {
                self.queue.schedule(start, Happening::Owner(index));
            }
        }
        pool.apply(Event::Synced, start);
        for (source, arrival) in self.coming.iter().enumerate() {
            if let Some(arrival) = arrival {
                self.queue.schedule(arrival.at, Happening::Arrival(source));
            }
        }
    }

    /// Carries out one entry of the queue.
    pub fn happen(&mut self, what: Happening, pool: &mut Pool, now: Time) {
        match what {
            Happening::Arrival(source) => self.arrival(source, pool, now),
            Happening::Owner(host) => self.owner(host, pool, now),
            Happening::Leaves(host) => self.leaves(host, pool, now),
            Happening::Returns(host) => self.arrives(host, pool, now),
            Happening::Heard(event) => pool.apply(*event, now),
            Happening::MakePod(plan) => self.make_pod(*plan, pool, now),
            Happening::PodStarts(uid) => self.pod_starts(&uid, pool, now),
            Happening::PodEnds(uid) => {
                // A pod that was suspended after this entry was scheduled ends later, by an entry of its own.
                if self.pods.get(&uid).is_some_and(|pod| pod.ends().is_some_and(|ends| ends <= now)) {
                    self.pod_ends(&uid, End::Exited { code: 0 }, pool, now);
                }
            }
            Happening::DeletePod(pod, grace) => self.delete_pod(&pod, grace, pool, now),
            Happening::PodKilled(uid) => {
                self.pod_ends(&uid, End::Evicted { why: "it was deleted".into() }, pool, now);
            }
            Happening::MakeBackfill(plan) => self.make_backfill(&plan, pool, now),
            Happening::BackfillStarts(uid) => self.backfill_starts(&uid, pool, now),
            Happening::DeleteBackfill(uid, grace) => self.delete_backfill(&uid, grace, pool, now),
            Happening::BackfillEnds(uid) => self.backfill_ends(&uid, pool, now),
            Happening::Suspend(pod, suspended) => self.suspend(&pod.uid, suspended, pool, now),
            Happening::Benchmarked(machine) => self.benchmarked(&machine, pool, now),
            Happening::UntrackPod(pod, delete) => self.untrack_pod(&pod, delete, pool, now),
            Happening::Status(uid) => self.write_status(&uid, pool, now),
            Happening::Sample => {}
        }
    }

    /// Schedules an effect to be carried out after one API call's time.
    pub fn perform(&mut self, effect: Effect, now: Time) {
        let done = now + self.scenario.timing.call;
        let what = match effect {
            Effect::WriteSlot(plan) => {
                let (slot, claim) = (plan.slot, plan.claim);
                self.slots.insert(slot.clone(), claim.id.clone());
                let proc = claim.last.proc_id();
                heard(Event::Outcome(Outcome::SlotWritten { slot, claim: claim.id, proc }))
            }
            Effect::DeleteSlot { slot, .. } => {
                let claim = self.slots.remove(&slot);
                heard(Event::SlotGone { slot, claim })
            }
            Effect::CreatePod(plan) => Happening::MakePod(plan),
            Effect::DeletePod { pod, grace, .. } => Happening::DeletePod(pod, grace),
            Effect::Suspend { pod, suspended, .. } => Happening::Suspend(pod, suspended),
            Effect::KillByAgent { pod, .. } => Happening::PodKilled(pod.uid),
            Effect::UntrackPod { pod, delete } => Happening::UntrackPod(pod, delete),
            Effect::AddJobFinalizer(key) => {
                if let Some(job) = self.jobs.get_mut(&key.uid) {
                    job.facts.finalizer = true;
                }
                heard(Event::Outcome(Outcome::JobFinalizerSet(key.uid)))
            }
            Effect::RemoveJobFinalizer(key) => {
                self.jobs.remove(&key.uid);
                heard(Event::JobGone(key.uid))
            }
            Effect::CreateBackfill(plan) => Happening::MakeBackfill(plan),
            Effect::DeleteBackfill { pod, grace, .. } => Happening::DeleteBackfill(pod.uid, grace),
            Effect::Benchmark { machine, .. } => {
                self.queue.schedule(done + BENCHMARKS_TAKE, Happening::Benchmarked(machine));
                return;
            }
            // Every object that the simulator makes is seen, and no node ever stops reporting: there is nothing to
            // look for. Its agents run no programs.
            Effect::Cron { .. }
            | Effect::LookAtPod { .. }
            | Effect::LookForBackfill { .. }
            | Effect::ReadAgentLease { .. }
            | Effect::Tell(_) => return,
        };
        self.queue.schedule(done, what);
    }

    /// Schedules a write of a job's status, if its finished procs have changed; writes are at least `timing.status`
    /// apart.
    pub fn mark_status(&mut self, uid: &JobUid, pool: &Pool, now: Time) {
        let (Some(job), Some(queued)) = (self.jobs.get_mut(uid), pool.jobs().get(uid)) else { return };
        let same = (&queued.succeeded, &queued.failed) == (&job.facts.succeeded, &job.facts.failed)
            && (queued.transformed.is_empty() || job.facts.transformed.as_ref() == Some(&queued.transformed))
            && pool.recordable_holds(queued).into_iter().collect::<ByProc<_>>() == job.facts.on_hold
            && !must_be_told(queued);
        if job.status_due || same {
            return;
        }
        job.status_due = true;
        let timing = &self.scenario.timing;
        let earliest = job.status_written.map_or(now, |written| now.max(written + timing.status));
        self.queue.schedule(earliest + timing.call, Happening::Status(uid.clone()));
    }

    fn write_status(&mut self, uid: &JobUid, pool: &mut Pool, now: Time) {
        let (Some(job), Some(queued)) = (self.jobs.get_mut(uid), pool.jobs().get(uid)) else { return };
        (job.status_due, job.status_written) = (false, Some(now));
        let removed = queued.removed.len();
        self.books.removed(job.record, removed.saturating_sub(job.removed));
        job.removed = removed;
        job.facts.succeeded.clone_from(&queued.succeeded);
        job.facts.failed.clone_from(&queued.failed);
        job.facts.cluster_id = Some(queued.cluster_id);
        job.facts.transformed = Some(Arc::clone(&queued.transformed));
        job.facts.on_hold = pool.recordable_holds(queued).into_iter().collect();
        *job.facts.life = pool.life_of(queued, (*job.facts.life).clone());
        job.facts.owner = RecordedOwner::of(queued.owner.as_ref());
        // The simulated user deletes a job that is complete, so that it leaves the queue, as it does in HTCondor.
        job.facts.removing |= queued.is_complete();
        pool.apply(Event::Job(job.facts.clone()), now);
    }

    fn arrival(&mut self, source: usize, pool: &mut Pool, now: Time) {
        let next = self.streams.get_mut(source).and_then(Stream::next);
        if let Some(next) = &next {
            self.queue.schedule(next.at, Happening::Arrival(source));
        }
        let Some(arrival) = self.coming.get_mut(source).and_then(|slot| std::mem::replace(slot, next)) else {
            return;
        };
        let submission = arrival.submission;
        let accepted = submit(&submission).and_then(|said| {
            let mut spec = said.clone();
            pool.complete(&mut spec, now)?;
            Ok((said, spec))
        });
        let (said, spec) = match accepted {
            Ok(specs) => specs,
            Err(problems) => return self.books.refused(&submission.name, &problems),
        };
        self.submitted += 1;
        let uid: JobUid = format!("job-{}", self.submitted).into();
        let key =
            JobKey { uid: uid.clone(), namespace: submission.namespace.into(), name: submission.name.into() };
        let record = self.books.submitted(&key, &spec, &arrival.runtimes, now);
        let facts = JobFacts::new(key, now, Ok(Arc::new(said)));
        pool.apply(Event::Job(facts.clone()), now);
        let runtimes = arrival.runtimes;
        let job = Job { facts, runtimes, record, status_due: false, status_written: None, removed: 0 };
        self.jobs.insert(uid, job);
    }

    fn make_pod(&mut self, plan: PodPlan, pool: &mut Pool, now: Time) {
        let (Some(job), Some(host)) =
            (self.jobs.get(&plan.claim.last.job.uid), self.hosts.get(&plan.slot.machine))
        else {
            return;
        };
        let proc = usize::try_from(plan.claim.last.proc).unwrap_or(usize::MAX);
        let stay = self.machines.get(*host).map_or(0, |host| host.left.len());
        self.pods_made += 1;
        let uid: PodUid = format!("pod-{}", self.pods_made).into();
        let pod = PodRef {
            namespace: plan.claim.last.job.namespace.clone(),
            name: plan.claim.pod_name().into(),
            uid: uid.clone(),
        };
        let facts = PodFacts {
            created: Some(now),
            lease: Some(plan.lease),
            run: Some(plan.run),
            size: plan.resources.plain(),
            tracked: true,
            ..PodFacts::of_claim(pod.clone(), &plan.claim, Some(plan.slot.machine.clone()))
        };
        let made = Pod {
            facts,
            host: *host,
            stay,
            cpus: plan.resources.cpus,
            started: None,
            runtime: job.runtimes.get(proc).copied().unwrap_or_default(),
            suspended: None,
            suspended_before: Duration::ZERO,
            record: job.record + proc,
        };
        self.pods.insert(uid.clone(), made);
        let created = Outcome::PodCreated { slot: plan.slot, claim: plan.claim.id, pod };
        pool.apply(Event::Outcome(created), now);
        let start = span(self.scenario.timing.pod_start.draw(&mut self.kubelets));
        self.queue.schedule(now + start, Happening::PodStarts(uid));
    }

    /// The pod, if it has not ended and its machine has not left since the pod was made.
    fn living(&mut self, uid: &PodUid) -> Option<&mut Pod> {
        let machines = &self.machines;
        self.pods.get_mut(uid).filter(|pod| {
            let host = machines.get(pod.host);
            pod.facts.end.is_none() && host.is_some_and(|host| host.here && host.left.len() == pod.stay)
        })
    }

    fn pod_starts(&mut self, uid: &PodUid, pool: &mut Pool, now: Time) {
        let Some(pod) = self.living(uid).filter(|pod| !pod.facts.deleting) else { return };
        pod.facts.running = true;
        pod.started = Some(now);
        // A pod that the agent suspended before it ran counts as suspended from its start.
        pod.suspended = pod.suspended.map(|_| now);
        let (facts, ends, record) = (pod.facts.clone(), pod.ends(), pod.record);
        self.books.started(record, facts.machine.as_ref(), now);
        pool.apply(Event::Pod(facts), now);
        if let Some(ends) = ends {
            self.queue.schedule(ends, Happening::PodEnds(uid.clone()));
        }
    }

    fn pod_ends(&mut self, uid: &PodUid, end: End, pool: &mut Pool, now: Time) {
        let Some(pod) = self.living(uid) else { return };
        pod.facts.end = Some(end);
        self.ended(uid, pool, now);
    }

    /// Records a pod's end in the books, and tells the pool.
    fn ended(&mut self, uid: &PodUid, pool: &mut Pool, now: Time) {
        let Some(pod) = self.pods.get(uid) else { return };
        let host = pod.host;
        let left = self.machines.get(host).and_then(|machine| machine.left.get(pod.stay));
        let ran = pod.ran(left.map_or(now, |left| now.min(*left)));
        pool.apply(Event::Pod(pod.facts.clone()), now);
        let (job, proc) = (pool.jobs().get(&pod.facts.job), pod.facts.proc);
        let is_done = job.is_none_or(|job| job.is_done(proc));
        let is_given_up =
            job.is_some_and(|job| job.on_hold.contains_key(&proc) || job.removed.contains(proc));
        match pod.facts.end {
            Some(End::Exited { .. }) if is_done => {
                self.books.done(pod.record, pod.cpus, ran.unwrap_or_default(), now);
            }
            Some(End::Exited { .. }) => self.books.runs_again(pod.record, pod.cpus, ran.unwrap_or_default()),
            _ if is_given_up => self.books.given_up(pod.record, pod.cpus, ran),
            _ => self.books.evicted(pod.record, pod.cpus, ran),
        }
        if self.machines.get_mut(host).is_some_and(|host| host.suspended.remove(uid)) {
            self.report(host, pool, now);
        }
    }

    fn delete_pod(&mut self, pod: &PodRef, grace: Option<u32>, pool: &mut Pool, now: Time) {
        let uid = &pod.uid;
        let Some(found) = self.pods.get_mut(uid).filter(|found| found.facts.end.is_none()) else { return };
        let again = std::mem::replace(&mut found.facts.deleting, true);
        if grace == Some(0) {
            found.facts.end = Some(End::Evicted { why: "its node is gone".into() });
            self.ended(uid, pool, now);
            return;
        }
        let facts = found.facts.clone();
        pool.apply(Event::Pod(facts), now);
        // A kubelet that has begun to end a pod does not look at a shorter grace period (kubernetes#83916).
        if again {
            return;
        }
        // The kubelet kills a container that has not ended after its grace.
        let takes = span(self.scenario.timing.pod_end.draw(&mut self.kubelets));
        let most = grace.map_or(takes, |grace| Duration::from_secs(u64::from(grace)));
        self.queue.schedule(now + takes.min(most), Happening::PodKilled(uid.clone()));
    }

    /// Takes the finalizer off a pod, whose end the operator has recorded. The pod may stay in the API server; nobody
    /// looks at it again.
    fn untrack_pod(&mut self, pod: &PodRef, delete: bool, pool: &mut Pool, now: Time) {
        let Some(mut found) = self.pods.remove(&pod.uid) else { return };
        found.facts.tracked = false;
        let gone = delete || found.facts.deleting;
        pool.apply(if gone { Event::PodGone(found.facts) } else { Event::Pod(found.facts) }, now);
    }
}

fn heard(event: Event) -> Happening {
    Happening::Heard(Box::new(event))
}

/// Whether the pool waits until the job's status is written: a proc was removed, or a proc's program ended and is to
/// run again.
fn must_be_told(job: &model::pool::Job) -> bool {
    let removed = job.removed.iter().any(|proc| !job.is_recorded(proc));
    removed || job.unrecorded.keys().any(|proc| !job.is_settled(*proc))
}
