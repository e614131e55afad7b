//! Ends of procs on their way into the history, where `condor_history` finds them.
//!
//! An end is written in the history first, and in the job's status after that: while the history has not got the end of a proc, the
//! status does not record the end ([`Pool::recordable_ends`], [`Pool::recordable_removals`]). So a crash loses none. The next
//! leader books the end again, and the history, which knows the proc by its `GlobalJobId`, keeps one. The next leader may also let
//! run a proc that the crashed leader removed, if the job was edited meanwhile; then the history keeps the completion, too. A disk
//! that fails does not keep procs for ever: after [`PATIENCE`] the ends count as written, and the job's author is warned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::Pool;
use super::agent::Usage;
use super::effect::Document;
use super::event::PodFacts;
use super::history::{Exit, History};
use super::ids::{JobKey, JobUid};
use super::job::{Job, JobSpec};
use super::marks::Change;
use super::ranges::Ranges;
use super::time::Time;
use classad::Ad;

/// How long the operator waits until a batch is written.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most ends that are written at once.
const AT_A_TIME: usize = 500;

/// How a proc left the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Its program ended.
    Completed(Exit),
    /// Somebody removed the proc, or an expression did, for this reason.
    Removed(Arc<str>),
}

/// The last run of a proc.
#[derive(Clone, Debug, PartialEq)]
pub struct LastRun {
    /// The slot, or else the machine.
    pub host: Arc<str>,
    /// When the containers started, if they did.
    pub started: Option<Time>,
    /// When the run was over.
    pub ended: Time,
    /// For how long the job was suspended.
    pub suspended: Duration,
    /// The usage of the pod, as an agent last reported.
    pub usage: Usage,
}

/// The end of a proc: what its final ad tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The job.
    pub job: JobKey,
    /// `ClusterId`; 0 while the job has none.
    pub cluster_id: i64,
    /// `ProcId`.
    pub proc: u32,
    /// The spec in force; `None` if this operator has never understood the job's spec.
    pub spec: Option<Arc<JobSpec>>,
    /// The job's owner, if policy decided the owner; `None` if the owner is the namespace.
    pub owner: Option<Arc<str>>,
    /// When the proc left the queue.
    pub at: Time,
    /// How the proc left the queue.
    pub left: Left,
    /// The counts and times of the proc before it left the queue, without its last run.
    pub history: History,
    /// The last run; `None` if the proc has no slot.
    pub run: Option<LastRun>,
}

impl Ended {
    /// The final ad, without the attributes that follow from the pod template alone.
    pub fn ad(&self) -> Ad {
        let mut ad = self.spec.as_ref().map_or_else(|| self.without_spec(), |spec| spec.ad.clone());
        let id = format!("{}.{}", self.cluster_id, self.proc);
        ad.set("ClusterId", self.cluster_id);
        ad.set("ProcId", i64::from(self.proc));
        ad.set("GlobalJobId", format!("{}#{id}#{}", self.job.namespace, self.job.uid.as_str()).as_str());
        if let Some(spec) = &self.spec {
            ad.set("TotalSubmitProcs", i64::from(spec.count));
        }
        self.history.set_in(&mut ad, false);
        ad.set("EnteredCurrentStatus", self.at.secs());
        // As in the schedd's history, only a job that has completed has a date here.
        ad.set("CompletionDate", 0);
        if let Some(run) = &self.run {
            self.set_run(run, &mut ad);
        }
        match &self.left {
            Left::Completed(exit) => {
                ad.set("JobStatus", 4);
                ad.set("CompletionDate", self.at.secs());
                exit.set_in(&mut ad);
            }
            Left::Removed(why) => {
                ad.set("JobStatus", 3);
                ad.set("RemoveReason", &**why);
            }
        }
        ad
    }

    /// The ad of a job whose spec this operator has never understood: the job's owner.
    fn without_spec(&self) -> Ad {
        let mut ad = Ad::default();
        ad.set("Owner", &**self.owner.as_ref().unwrap_or(&self.job.namespace));
        ad
    }

    fn set_run(&self, run: &LastRun, ad: &mut Ad) {
        #[allow(clippy::cast_precision_loss, reason = "seconds")]
        let secs = |secs: u64| secs as f64;
        let ran = run.started.map_or(0, |started| run.ended.since(started).as_secs());
        // The proc's history counts only the runs before this one.
        let suspended = self.history.suspended.saturating_add(run.suspended.as_secs());
        ad.set("LastRemoteHost", &*run.host);
        ad.set("RemoteWallClockTime", secs(self.history.wall.saturating_add(ran)));
        ad.set("LastRemoteWallClockTime", secs(ran));
        ad.set("CumulativeSuspensionTime", i64::try_from(suspended).unwrap_or(i64::MAX));
        if let Some(started) = run.started {
            ad.set("JobCurrentStartDate", started.secs());
            if self.history.first_start.is_none() {
                ad.set("JobStartDate", started.secs());
            }
        }
        run.usage.set_in(ad);
    }
}

/// Ends that wait for the history, and those that are being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Archive {
    /// Whether there is a history.
    on: bool,
    /// The ends that are not written yet, by job and proc: whether each is a removal.
    known: BTreeMap<JobUid, BTreeMap<u32, bool>>,
    waiting: VecDeque<Arc<Ended>>,
    writing: Option<(Time, Batch)>,
    last: u64,
}

/// Ends to write, in the order in which they came.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The number by which the shell says that the ends are written.
    pub number: u64,
    /// The ends.
    pub ends: Arc<[Arc<Ended>]>,
}

impl Pool {
    /// From now on, ends of procs are written in a history before they are recorded: the shell writes what [`Pool::next_ends`]
    /// returns.
    pub fn keep_history(&mut self) {
        self.archive.on = true;
    }

    /// Notes that a proc leaves the queue, before the pool forgets what it knew of the proc.
    pub(super) fn leaves_queue(
        &mut self,
        uid: &JobUid,
        proc: u32,
        left: Left,
        facts: Option<&PodFacts>,
        now: Time,
    ) {
        if !self.archive.on {
            return;
        }
        let Some(job) = self.jobs.get(uid) else { return };
        let spec = job.spec_of(proc).cloned();
        let removal = matches!(left, Left::Removed(_));
        let run = self.last_run(job, proc, facts, now);
        let (history, cluster_id) = (job.history_of(proc), job.cluster_id);
        let (owner, job) = (job.owner.clone(), job.key.clone());
        let known = self.archive.known.entry(uid.clone()).or_default();
        if known.insert(proc, removal).is_none() {
            let ended = Ended { job, cluster_id, proc, spec, owner, at: now, left, history, run };
            self.archive.waiting.push_back(Arc::new(ended));
        }
    }

    /// Notes that all procs of a job that are in the queue leave it.
    pub(super) fn all_leave_queue(&mut self, uid: &JobUid, why: &str, now: Time) {
        let Some(job) = self.jobs.get(uid).filter(|_| self.archive.on) else { return };
        let count = job.spec.as_ref().map_or(0, |spec| spec.count);
        let beyond: BTreeSet<u32> = job.active.keys().chain(job.on_hold.keys()).copied().collect();
        let beyond = beyond.range(count..).copied();
        let procs: Vec<u32> = (0..count).chain(beyond).filter(|proc| !job.is_done(*proc)).collect();
        self.are_removed(uid, procs, why, now);
    }

    /// Notes that the procs which an edit added to a job that is being deleted, those from `first` on, leave the queue at once.
    pub(super) fn added_leave_queue(&mut self, uid: &JobUid, first: u32, why: &str, now: Time) {
        let Some(job) = self.jobs.get(uid).filter(|_| self.archive.on) else { return };
        let count = job.spec.as_ref().map_or(0, |spec| spec.count);
        let procs: Vec<u32> = (first..count).filter(|proc| !job.is_done(*proc)).collect();
        self.are_removed(uid, procs, why, now);
    }

    fn are_removed(&mut self, uid: &JobUid, procs: Vec<u32>, why: &str, now: Time) {
        let why: Arc<str> = why.into();
        for proc in procs {
            self.leaves_queue(uid, proc, Left::Removed(why.clone()), None, now);
        }
    }

    /// The last run of a proc, by the slot that the proc has, or had when `facts` told how its pod ended. `None` without both.
    pub(super) fn last_run(
        &self,
        job: &Job,
        proc: u32,
        facts: Option<&PodFacts>,
        now: Time,
    ) -> Option<LastRun> {
        let own = |facts: &PodFacts| self.claims.get(&facts.claim).and_then(|name| self.slots.get(name));
        let slot = facts.and_then(own).or_else(|| self.slots.get(job.active.get(&proc)?));
        let pod = slot
            .and_then(|slot| slot.running())
            .filter(|pod| facts.is_none_or(|facts| facts.pod.uid == pod.pod.uid));
        let (Some(slot), Some(pod)) = (slot, pod) else {
            let facts = facts?;
            return Some(LastRun {
                host: host(facts)?.as_str().into(),
                started: facts.started,
                ended: facts.started.map_or(now, |started| facts.over_at(started, now)),
                suspended: Duration::ZERO,
                usage: Usage::default(),
            });
        };
        let report = self.reports.get(&slot.name().machine);
        let started = facts.and_then(|facts| facts.started).or(pod.started);
        let ended = facts.zip(started).map_or(now, |(facts, started)| facts.over_at(started, now));
        Some(LastRun {
            host: slot.name().to_string().as_str().into(),
            started,
            ended,
            suspended: pod.suspend_time(now),
            usage: report.and_then(|report| report.usage.get(&pod.pod.uid)).cloned().unwrap_or_default(),
        })
    }

    /// The ends to write now, if no others are being written. The shell answers with [`Event::Archived`](super::Event::Archived).
    pub fn next_ends(&mut self, now: Time) -> Option<Batch> {
        if let Some((asked, batch)) = &self.archive.writing {
            if now < *asked + PATIENCE {
                return None;
            }
            // The ends behind this batch have waited as well: the disk must not keep very many procs for a minute each batch.
            let late = batch.ends.iter().cloned().chain(std::mem::take(&mut self.archive.waiting)).collect();
            self.give_up(late);
        }
        let ends = self.numbered_ends();
        if ends.is_empty() {
            return None;
        }
        self.archive.last += 1;
        let batch = Batch { number: self.archive.last, ends: ends.into() };
        self.archive.writing = Some((now, batch.clone()));
        self.wake_at(now + PATIENCE);
        Some(batch)
    }

    /// Takes the first ends that wait and whose jobs have a `ClusterId` for good. A job whose status does not record the number may
    /// get another number from the next leader, and the history would know the proc by both. The status of a job that is being
    /// deleted is not waited for.
    fn numbered_ends(&mut self) -> Vec<Arc<Ended>> {
        let (mut ends, mut unnumbered, mut nameless) = (Vec::new(), Vec::new(), Vec::new());
        while ends.len() < AT_A_TIME
            && let Some(mut ended) = self.archive.waiting.pop_front()
        {
            match self.jobs.get(&ended.job.uid) {
                None if ended.cluster_id > 0 => ends.push(ended),
                // The job came and went before this leader knew all numbers: the job was never in the queue.
                None => nameless.push(ended),
                Some(job) if job.cluster_id > 0 && (job.number_recorded || job.removing) => {
                    if ended.cluster_id != job.cluster_id {
                        Arc::make_mut(&mut ended).cluster_id = job.cluster_id;
                    }
                    ends.push(ended);
                }
                Some(_) => unnumbered.push(ended),
            }
        }
        for ended in unnumbered.into_iter().rev() {
            self.archive.waiting.push_front(ended);
        }
        self.forget_ends(&nameless);
        ends
    }

    /// Notes that the shell has written a batch, or has given up writing the batch.
    pub(super) fn archived(&mut self, number: u64) {
        if let Some((_, batch)) = self.archive.writing.take_if(|(_, batch)| batch.number == number) {
            self.forget_ends(&batch.ends);
        }
    }

    fn forget_ends(&mut self, ends: &[Arc<Ended>]) {
        for ended in ends {
            let uid = &ended.job.uid;
            if let Some(known) = self.archive.known.get_mut(uid) {
                known.remove(&ended.proc);
                if known.is_empty() {
                    self.archive.known.remove(uid);
                }
            }
            if self.jobs.contains_key(uid) {
                self.changed(Change::Job(uid));
                self.changed(Change::JobStatus(uid));
            }
        }
    }

    /// Goes on without these ends in the history, and tells the authors of the jobs.
    fn give_up(&mut self, late: Vec<Arc<Ended>>) {
        self.archive.writing = None;
        let mut jobs: BTreeMap<JobKey, u32> = BTreeMap::new();
        for ended in &late {
            *jobs.entry(ended.job.clone()).or_default() += 1;
        }
        for (job, count) in jobs {
            let note = format!(
                "the ends of {count} procs may be missing in condor_history: the operator could not write them within {} s",
                PATIENCE.as_secs()
            );
            self.warn(&job, "HistoryLost", "Archive", note);
        }
        self.forget_ends(&late);
    }

    /// Whether ends of a job's procs are not in the history yet.
    pub fn awaits_history(&self, uid: &JobUid) -> bool {
        self.archive.known.contains_key(uid)
    }

    /// Whether a write of a job's status can wait for the history: all procs have ended, the history has not got all ends, and it
    /// does not wait for the job's number in the status.
    pub(super) fn waits_only_for_history(&self, document: &Document) -> bool {
        let Document::Job(uid) = document else { return false };
        self.awaits_history(uid)
            && self.jobs.get(uid).is_some_and(|job| job.is_complete() && job.number_recorded)
    }

    /// Whether removals of a job's procs are not in the history yet.
    pub(super) fn removal_awaits_history(&self, uid: &JobUid) -> bool {
        self.archive.known.get(uid).is_some_and(|known| known.values().any(|removal| *removal))
    }

    /// These procs of a job, without those whose ends are not in the history yet.
    pub(super) fn archived_of(&self, job: &Job, procs: &Ranges) -> Ranges {
        let mut procs = procs.clone();
        for proc in self.archive.known.get(&job.key.uid).into_iter().flat_map(BTreeMap::keys) {
            procs.remove(*proc);
        }
        procs
    }

    /// The procs of a job that its status may record as ended: with an exit code that counts as success, and with another.
    pub fn recordable_ends(&self, job: &Job) -> [Ranges; 2] {
        [&job.succeeded, &job.failed].map(|procs| self.archived_of(job, procs))
    }
}

/// Where a run was, if nothing but its pod tells: on the slot for which the pod's claim was made, or else on the pod's node.
fn host(facts: &PodFacts) -> Option<String> {
    let machine = facts.machine.as_ref()?;
    let slot = facts.claim.made_for().map(|(slot, _)| slot).filter(|slot| slot.machine == *machine);
    Some(slot.map_or_else(|| machine.to_string(), |slot| slot.to_string()))
}
