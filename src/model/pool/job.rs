//! Jobs: clusters of procs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::event::PodFacts;
use super::ids::{ClaimId, GroupName, JobKey, PodUid, SlotName, SubmitterName};
use super::job_defaults::JobDefaults;
use super::leaving::HoldReason;
use super::ranges::Ranges;
use super::resources::ResourceName;
use super::slot::pod_name;
use super::time::Time;
use super::waits::{Explaining, FailedClause, Waits};
use classad::{Ad, Env, Value};

/// What one proc asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `RequestCpus`.
    pub cpus: i64,
    /// `RequestMemory`, MiB.
    pub memory_mib: i64,
    /// `RequestDisk`, KiB.
    pub disk_kib: i64,
    /// `RequestGPUs`.
    pub gpus: i64,
    /// Other extended resources by their Kubernetes name.
    pub extended: BTreeMap<ResourceName, i64>,
    /// Which amounts nobody has said: they are 0 until the job is given its defaults.
    pub unsaid: Unsaid,
}

/// Which of the amounts that have defaults a job does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// `RequestCpus`.
    pub cpus: bool,
    /// `RequestMemory`.
    pub memory: bool,
    /// `RequestDisk`.
    pub disk: bool,
}

/// Something wrong with an object, said so that its author can mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason in one word.
    pub reason: &'static str,
    /// The field, such as `spec.requirements`; empty where no field of the object is to blame.
    pub field: String,
    /// What is wrong, where, and what to do.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A job's spec, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// How many procs.
    pub count: u32,
    /// What each asks for.
    pub request: Request,
    /// The job's ad, the same for each proc but for `ProcId`.
    pub ad: Ad,
    /// Its [`priorities`](JobSpec::priorities).
    pub priorities: [i32; 5],
    /// Who is charged.
    pub submitter: SubmitterName,
    /// The accounting group that is charged.
    pub group: Option<GroupName>,
    /// What becomes of ended pods.
    pub retention: Retention,
}

impl JobSpec {
    /// The attributes that decide where a job stands among its submitter's, the highest value first, each before the next.
    pub const PRIORITIES: [&str; 5] =
        ["PreJobPrio1", "PreJobPrio2", "JobPrio", "PostJobPrio1", "PostJobPrio2"];
    /// The [`priorities`](Self::priorities) of a job that says none.
    pub const PLAIN: [i32; 5] = [0; 5];

    /// Who submitted it.
    pub fn owner(&self) -> String {
        let owner = self.ad.eval_attr("Owner", None, &Env::at(0));
        owner.as_str().map(str::to_owned).unwrap_or_default()
    }

    /// Charges it to an accounting group: its submitter is `GROUP.OWNER`.
    pub fn charge_to(&mut self, group: &str) {
        let owner = self.owner();
        let submitter = format!("{group}.{owner}");
        self.ad.set("AcctGroup", group);
        self.ad.set("AcctGroupUser", owner.as_str());
        self.ad.set("AccountingGroup", submitter.as_str());
        self.ad.set("User", submitter.as_str());
        self.submitter = submitter.as_str().into();
        self.group = Some(group.into());
    }

    /// "nice_user jobs are submitted with a default retirement time of 0, so they will never wait in retirement unless the user
    /// overrides the default": those that are charged to this group.
    pub(super) fn yield_if_nice(&mut self, group: &GroupName) {
        // As the accountant knows them.
        if !group.is_charged_by(self.submitter.as_str()) {
            return;
        }
        self.ad.set("NiceUser", true);
        if !self.ad.contains("MaxJobRetirementTime") {
            self.ad.set("MaxJobRetirementTime", 0);
        }
    }

    /// What decides where a job stands among its submitter's, of what it says of each of [`JobSpec::PRIORITIES`]. What is not set
    /// counts as 0, as in the schedd.
    /// The fraction of a number does not count; true is 1.
    pub fn priorities(said: [Value; 5]) -> [i32; 5] {
        #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
        said.map(|said| said.as_number().map_or(0, |priority| priority as i32))
    }
}

/// What becomes of a pod once its end is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// It stays.
    #[default]
    Keep,
    /// It stays if it failed.
    KeepFailed,
    /// It is deleted.
    Delete,
}

/// How a pod ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The job's own process ended. The proc is done, whatever the code: it leaves the queue, as `OnExitRemove` has it.
    Exited {
        /// The main container's exit code.
        code: i32,
    },
    /// An init container failed: the job's own process never ran. The proc is done.
    InitFailed {
        /// The init container.
        container: Arc<str>,
        /// Its exit code.
        code: i32,
    },
    /// The machine, not the job, ended it, or it never started. The proc is idle again.
    Evicted {
        /// Why.
        why: Arc<str>,
    },
}

impl End {
    /// Whether the proc is done by it.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Exited { .. } | Self::InitFailed { .. })
    }
}

/// A proc that was sent back to idle and waits before it is tried again, so that a node that refuses it is not asked
/// without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// How often in a row it was sent back.
    pub times: u32,
    /// When it may be tried again.
    pub until: Time,
}

impl Cooling {
    /// The wait after the `times`th time in a row: 10 s doubled each time, five minutes at the most.
    pub fn wait(times: u32) -> Duration {
        Duration::from_secs(10u64.saturating_mul(1 << times.saturating_sub(1).min(5)).min(300))
    }
}

/// What is known about whether any machine could run a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Matchable {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// Some machine could.
    Yes,
    /// None could, for this reason.
    No(Problem),
}

/// The order of one submitter's jobs: by their priorities, then the older.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    priorities: Reverse<[i32; 5]>,
    submitted: Time,
    cluster: i64,
    job: JobKey,
}

impl QueueKey {
    /// The job that stands here.
    pub fn job(&self) -> &JobKey {
        &self.job
    }
}

/// How the job's finalizer stands, by which deleting the job waits until its claims are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFinalizer {
    /// It is not there.
    Free,
    /// It was asked for.
    Asked,
    /// It is in place: procs may start.
    Held,
    /// It was asked to go.
    Releasing,
}

impl JobFinalizer {
    /// What a sight of the object means: an older one than the answer to a call changes nothing.
    #[must_use]
    pub fn seen(self, there: bool) -> Self {
        match (self, there) {
            (Self::Releasing, _) => Self::Releasing,
            (_, true) => Self::Held,
            (Self::Asked, false) => Self::Asked,
            (Self::Free | Self::Held, false) => Self::Free,
        }
    }

    /// What a failed call leaves.
    #[must_use]
    pub fn failed(self) -> Self {
        match self {
            Self::Asked | Self::Free => Self::Free,
            Self::Releasing | Self::Held => Self::Held,
        }
    }
}

/// What a job's author was told, so that it is told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// That it was accepted.
    pub accepted: bool,
    /// That its accounting group is missing; told again only after it was there.
    pub group_missing: bool,
}

/// A job with its procs.
#[derive(Clone, Debug)]
pub struct Job {
    /// The HTCJob.
    pub key: JobKey,
    /// `ClusterId`.
    pub cluster: i64,
    /// `QDate`.
    pub submitted: Time,
    /// The `metadata.generation` that `spec` was read from.
    pub generation: i64,
    /// The last spec that was understood.
    pub spec: Option<Arc<JobSpec>>,
    /// What it is given of what its spec does not say: what was in force when the job was first seen.
    pub defaults: Arc<JobDefaults>,
    /// What is wrong with the present spec. While there is anything no proc is started.
    pub problems: Vec<Problem>,
    /// What the present spec says and nothing acts on.
    pub warnings: Vec<Problem>,
    /// The job is being deleted.
    pub removing: bool,
    /// Whether deleting it waits until its claims are released.
    pub finalizer: JobFinalizer,
    /// What its author was told.
    pub told: Told,
    /// Procs that wait.
    pub idle: Ranges,
    /// Procs that are held: they wait until the job is edited.
    pub on_hold: BTreeMap<u32, HoldReason>,
    /// The procs of which the API server knows that they are held.
    pub recorded_holds: BTreeSet<u32>,
    /// Procs with a claim, and the slot.
    pub active: BTreeMap<u32, SlotName>,
    /// Claims for its procs that wait, with the slots whose present claims have to go first.
    pub waits_for: BTreeMap<ClaimId, BTreeSet<SlotName>>,
    /// Procs that ended, or are held, in a slot that waits until that is recorded.
    pub unrecorded: BTreeMap<u32, SlotName>,
    /// Slots in which something may be left of the pods of procs that have ended: other containers run on. Read it by
    /// [`Pool::has_remains`](super::Pool::has_remains).
    pub(super) remains: BTreeSet<SlotName>,
    /// Procs that ended with exit code 0.
    pub succeeded: Ranges,
    /// Procs that ended with another.
    pub failed: Ranges,
    /// `succeeded` and `failed` as the API server has them.
    pub recorded: (Ranges, Ranges),
    /// Idle procs that wait before they are tried again.
    pub cooling: BTreeMap<u32, Cooling>,
    /// Procs with an earlier pod that is not gone yet. The next pod has the same name.
    pub earlier_pods: BTreeMap<u32, PodUid>,
    /// The API server refused one of its pods: nothing of it is tried before this.
    pub resting: Option<Cooling>,
    /// Why the API server refused the last of its pods that was tried; none once it takes one.
    pub refused: Option<Arc<str>>,
    /// When the first proc started.
    pub first_start: Option<Time>,
    /// When the last proc ended.
    pub completed_at: Option<Time>,
    /// Whether any machine could run it.
    pub matchable: Matchable,
    /// When that was last looked at.
    pub explained: Time,
    /// What [`Pool::offers`](super::Pool::offers) was then.
    pub explained_by: u64,
    /// The clauses that keep it from every machine, those that do so on most slots first; none while some machine could
    /// run it. Bounded.
    pub clauses: Arc<[FailedClause]>,
    /// How far the explanation has come, while it takes more than one cycle.
    pub explaining: Option<Explaining>,
    /// What its procs that wait for a slot wait for, if a cycle has said so.
    pub waits: Option<Waits>,
}

impl Job {
    /// Where the job stands among its submitter's.
    pub fn queue_key(&self) -> QueueKey {
        QueueKey {
            priorities: Reverse(self.spec.as_ref().map_or(JobSpec::PLAIN, |spec| spec.priorities)),
            submitted: self.submitted,
            cluster: self.cluster,
            job: self.key.clone(),
        }
    }

    /// Whether a pod that says so is the job's indeed. Anybody who may make pods in the namespace can write our labels; nobody
    /// else can.
    pub fn owns(&self, facts: &PodFacts) -> bool {
        self.key.namespace == facts.pod.namespace && *pod_name(&self.key.name, facts.proc) == *facts.pod.name
    }

    /// Whether a proc has ended for good.
    pub fn is_done(&self, proc: u32) -> bool {
        self.succeeded.contains(proc) || self.failed.contains(proc)
    }

    /// Whether there is nothing of a proc that the API server has to know before its pod may go: its end, or that it is held.
    pub fn is_settled(&self, proc: u32) -> bool {
        let ended = self.is_done(proc) && !self.is_recorded(proc);
        let held = self.on_hold.contains_key(&proc) && !self.recorded_holds.contains(&proc);
        !ended && !held
    }

    /// Whether procs are held with this `HoldReasonCode`.
    pub fn is_held_for(&self, code: i64) -> bool {
        self.on_hold.values().any(|hold| hold.code == code)
    }

    /// Whether the API server has the proc's end.
    pub fn is_recorded(&self, proc: u32) -> bool {
        self.recorded.0.contains(proc) || self.recorded.1.contains(proc)
    }

    /// Whether every proc has ended.
    pub fn is_complete(&self) -> bool {
        self.spec.is_some() && self.idle.is_empty() && self.active.is_empty() && self.on_hold.is_empty()
    }

    fn is_resting(&self, now: Time) -> bool {
        self.resting.is_some_and(|resting| resting.until > now)
    }

    /// One of its pods was refused: what is wrong with one is wrong with all. Gives the time of the next try; those that were
    /// asked for together count once.
    pub fn rest(&mut self, now: Time) -> Time {
        if let Some(resting) = self.resting.filter(|resting| resting.until > now) {
            return resting.until;
        }
        let times = self.resting.map_or(1, |resting| resting.times.saturating_add(1));
        let until = now + Cooling::wait(times);
        self.resting = Some(Cooling { times, until });
        until
    }

    /// The lowest idle proc that may start now.
    pub fn next_idle(&self, now: Time) -> Option<u32> {
        if self.is_resting(now) {
            return None;
        }
        self.idle.iter().find(|proc| self.cooling.get(proc).is_none_or(|cooling| cooling.until <= now))
    }

    /// How many idle procs may start now.
    pub fn startable(&self, now: Time) -> u64 {
        if self.is_resting(now) {
            return 0;
        }
        let waiting =
            self.cooling.iter().filter(|(proc, c)| c.until > now && self.idle.contains(**proc)).count();
        self.idle.len().saturating_sub(waiting as u64)
    }

    /// The slots for which claims for its procs wait.
    pub fn awaited(&self) -> impl Iterator<Item = &SlotName> {
        self.waits_for.values().flatten()
    }

    /// How many of them no claim waits for: a proc takes one slot, however long the job there takes to leave it.
    pub fn unmatched(&self, now: Time) -> u64 {
        self.startable(now).saturating_sub(self.waits_for.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let waits: Vec<u64> = (1..=8).map(|times| Cooling::wait(times).as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
    }
}
