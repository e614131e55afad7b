//! Jobs: clusters of procs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::acts::Act;
use super::agent::Usage;
use super::by_proc::ByProc;
use super::crontabs::Course;
use super::event::PodFacts;
use super::extended::ExtendedResources;
use super::history::History;
use super::idle::Idle;
use super::ids::{ClaimId, GroupName, JobKey, PodUid, SlotName, SubmitterName};
use super::job_defaults::JobDefaults;
use super::job_policy::Acting;
use super::on_evict::{OwnSpec, OwnSpecs};
use super::on_hold::OnHold;
use super::pacing::Pacing;
use super::ranges::Ranges;
use super::resting::Resting;
use super::slot::pod_name;
use super::submit_rules::Transformed;
use super::time::Time;
use super::waits::{Explaining, FailedClause, Waits};
use classad::{Ad, Env, Expr, Value};

/// The request of one proc.
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
    pub extended: ExtendedResources,
    /// Which amounts the spec does not say: they are 0 until the job is given its defaults.
    pub unsaid: Unsaid,
}

/// Which amounts, of those that have defaults, a job does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsaid {
    /// `RequestCpus`.
    pub cpus: bool,
    /// `RequestMemory`.
    pub memory: bool,
    /// `RequestDisk`.
    pub disk: bool,
}

/// Something wrong with an object, in words that help its author to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason in one word.
    pub reason: &'static str,
    /// The field, such as `spec.requirements`; empty if no field of the object is to blame.
    pub field: String,
    /// The text for people: what is wrong, where, and what to do.
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

/// A job's spec, as the operator reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// How many procs the job has.
    pub count: u32,
    /// The request of each proc.
    pub request: Request,
    /// The job's ad, which all procs of this spec share. The ad has no `ProcId`.
    pub ad: Ad,
    /// The job's [`priorities`](JobSpec::priorities).
    pub priorities: [i32; 5],
    /// The submitter to whose account the job's claims are charged.
    pub submitter: SubmitterName,
    /// The accounting group to which the job is charged.
    pub group: Option<GroupName>,
    /// Whether policy chose the group, and not the job.
    pub group_by_policy: bool,
    /// The image that policy chose for the job's container; if unset, the template's.
    pub image: Option<Arc<str>>,
    /// The clauses of `Requirements` that follow from the rest of the spec.
    pub needs: Needs,
    /// The rule for ended pods.
    pub retention: Retention,
    /// Whether all procs are held.
    pub hold: bool,
}

/// The clauses of `Requirements` that follow from what a job requests and from its node selector. They stay in force whatever
/// `Requirements` becomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs(Arc<[String]>);

impl Needs {
    /// These clauses, each an expression.
    pub fn new(clauses: Vec<String>) -> Self {
        Self(clauses.into())
    }

    /// `Requirements`: an expression, and the clauses that the expression does not have yet.
    ///
    /// # Errors
    /// When the expression nests so deeply that the whole is no expression any more.
    pub fn beside(&self, own: Option<Expr>) -> Result<Expr, Problem> {
        let text = own.as_ref().map(ToString::to_string).unwrap_or_default();
        let is_there =
            |clause: &&String| Expr::parse(clause).is_ok_and(|clause| text.contains(&clause.to_string()));
        let missing: Vec<&str> =
            self.0.iter().filter(|clause| !is_there(clause)).map(String::as_str).collect();
        match own {
            Some(own) if missing.is_empty() => Ok(own),
            None if missing.is_empty() => Ok(Expr::literal(true)),
            Some(_) => joined(&format!("({text}) && {}", missing.join(" && "))),
            None => joined(&missing.join(" && ")),
        }
    }
}

fn joined(text: &str) -> Result<Expr, Problem> {
    Expr::parse(text).map_err(|_| Problem {
        reason: "InvalidExpression",
        field: "spec.requirements".to_owned(),
        message: "nests too deeply to stand beside the clauses that the requests and the node selector add; nest it less deeply".to_owned(),
    })
}

impl JobSpec {
    /// The attributes that decide the job's place in the queue of its submitter: the highest value comes first, and
    /// each attribute decides only between jobs that agree in those before it.
    pub const PRIORITIES: [&str; 5] =
        ["PreJobPrio1", "PreJobPrio2", "JobPrio", "PostJobPrio1", "PostJobPrio2"];
    /// The [`priorities`](Self::priorities) of a job that sets none of the attributes.
    pub const PLAIN: [i32; 5] = [0; 5];

    /// The owner: who submitted the job.
    pub fn owner(&self) -> String {
        let owner = self.ad.eval_attr("Owner", None, &Env::at(0));
        owner.as_str().map(str::to_owned).unwrap_or_default()
    }

    /// Makes the job another owner's.
    pub fn owned_by(&mut self, owner: &str) {
        self.ad.set("Owner", owner);
        if let Some(group) = self.group.clone() {
            self.charge_to(group.as_str());
        } else {
            self.ad.set("User", owner);
            self.submitter = owner.into();
        }
    }

    /// Charges the job to an accounting group: its submitter becomes `GROUP.OWNER`.
    pub fn charge_to(&mut self, group: &str) {
        let owner = self.owner();
        let group = GroupName::from(group);
        let submitter = SubmitterName::within(Some(&group), &owner);
        self.ad.set("AcctGroup", group.as_str());
        self.ad.set("AcctGroupUser", owner.as_str());
        self.ad.set("AccountingGroup", submitter.as_str());
        self.ad.set("User", submitter.as_str());
        self.submitter = submitter;
        self.group = Some(group);
    }

    /// Gives a nice user's job no retirement time, unless the job sets one: "nice_user jobs are submitted with a
    /// default retirement time of 0, so they will never wait in retirement unless the user overrides the default".
    /// `group` is the accounting group of nice users.
    pub(super) fn yield_if_nice(&mut self, group: &GroupName) {
        // The accountant recognizes nice users in the same way, by the submitter's name.
        if !group.is_charged_by(self.submitter.as_str()) {
            return;
        }
        self.ad.set("NiceUser", true);
        if !self.ad.contains("MaxJobRetirementTime") {
            self.ad.set("MaxJobRetirementTime", 0);
        }
    }

    /// The job's priorities from the values of [`JobSpec::PRIORITIES`]. As in the schedd, an attribute that is not set
    /// counts as 0, the fraction of a number does not count, and true is 1.
    pub fn priorities(said: [Value; 5]) -> [i32; 5] {
        #[allow(clippy::cast_possible_truncation, reason = "the nearest there is")]
        said.map(|said| said.as_number().map_or(0, |priority| priority as i32))
    }
}

/// The operator's action on a pod once the pod's end is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Keeps the pod.
    #[default]
    Keep,
    /// Keeps the pod if it failed.
    KeepFailed,
    /// Deletes the pod.
    Delete,
}

/// How a pod ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The job's own process ended. The proc is done, whatever the exit code, unless `OnExitHold` or `OnExitRemove` of the job
    /// says otherwise.
    Exited {
        /// The main container's exit code.
        code: i32,
    },
    /// An init container failed, so that the job's own process never ran. The proc is done.
    InitFailed {
        /// The init container's name.
        container: Arc<str>,
        /// The init container's exit code.
        code: i32,
    },
    /// The machine, not the job, ended the run, or the pod never started. The proc is idle again.
    Evicted {
        /// The reason.
        why: Arc<str>,
    },
}

impl End {
    /// Whether the job's own programs ended. The proc is then done, unless an expression of the job says otherwise.
    pub fn is_final(&self) -> bool {
        self.code().is_some()
    }

    /// The exit code of the job's own program that ended; `None` if the machine ended the run.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Exited { code } | Self::InitFailed { code, .. } => Some(*code),
            Self::Evicted { .. } => None,
        }
    }
}

/// A proc that is idle again and waits before it is tried again, so that a node that refuses the proc is not asked
/// without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// How many times in a row the proc became idle again without having ended.
    pub times: u32,
    /// The time from which the proc may be tried again.
    pub until: Time,
}

impl Cooling {
    /// The wait after the `times`th failure in a row: 10 s, doubled each time, five minutes at the most.
    pub fn wait(times: u32) -> Duration {
        Duration::from_secs(10u64.saturating_mul(1 << times.saturating_sub(1).min(5)).min(300))
    }
}

/// Whether any machine could run a job, as far as is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Matchable {
    /// No cycle has looked yet.
    #[default]
    Unknown,
    /// Some machine could run the job.
    Yes,
    /// No machine could run the job, for this reason.
    No(Problem),
}

/// A job's place among the jobs of its submitter: by priorities, then older jobs first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    priorities: Reverse<[i32; 5]>,
    submitted: Time,
    cluster_id: i64,
    job: JobKey,
}

impl QueueKey {
    /// The job at this place.
    pub fn job(&self) -> &JobKey {
        &self.job
    }
}

/// Whether the operator's finalizer is on the job. With the finalizer, a deletion of the job waits until its claims are
/// over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFinalizer {
    /// The finalizer is not on the job.
    Free,
    /// The operator has asked for the finalizer.
    Asked,
    /// The finalizer is on the job: procs may start.
    Held,
    /// The operator has asked to take the finalizer off.
    Releasing,
}

impl JobFinalizer {
    /// The state after the object was seen, with or without the finalizer. While a call is under way, the object may be
    /// older than the call's effect, and changes nothing.
    #[must_use]
    pub fn seen(self, there: bool) -> Self {
        match (self, there) {
            (Self::Releasing, _) => Self::Releasing,
            (_, true) => Self::Held,
            (Self::Asked, false) => Self::Asked,
            (Self::Free | Self::Held, false) => Self::Free,
        }
    }

    /// The state after the call failed.
    #[must_use]
    pub fn failed(self) -> Self {
        match self {
            Self::Asked | Self::Free => Self::Free,
            Self::Releasing | Self::Held => Self::Held,
        }
    }
}

/// The messages that the job's author has got, so that each message comes only once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentMessages {
    /// Whether the author was told that the job was accepted.
    pub accepted: bool,
    /// Whether the author was told, at the last look at the job, that the job may not charge its accounting group. The author is
    /// told again only if the job could charge the group in between.
    pub group_missing: bool,
    /// The warnings of the policy when the present spec was submitted.
    pub policy: Vec<Problem>,
    /// The problem with the acts on the object.
    pub bad_acts: Option<Problem>,
}

/// A job with its procs.
#[derive(Clone, Debug)]
pub struct Job {
    /// The HTCJob object.
    pub key: JobKey,
    /// `ClusterId`; 0 while the operator has not seen all jobs.
    pub cluster_id: i64,
    /// Whether the status records `cluster_id`, so that the next leader gives the job the same number.
    pub number_recorded: bool,
    /// `QDate`.
    pub submitted: Time,
    /// The `metadata.generation` that `spec` was read from.
    pub generation: i64,
    /// The last valid spec.
    pub spec: Option<Arc<JobSpec>>,
    /// The submitter of the last valid spec, which may be a spec that only an earlier operator knew.
    pub submitter: Option<SubmitterName>,
    /// The accounting group that the object names, although the present spec may not be valid.
    pub(super) group: Option<GroupName>,
    /// The procs that have other specs than that.
    pub(super) own_specs: OwnSpecs,
    /// The defaults for what the spec does not say: those that were in force when the job was first seen.
    pub defaults: Arc<JobDefaults>,
    /// The present spec as its author wrote it, while policy refuses the spec: the spec is judged again when the policy changes.
    pub refused_spec: Option<Arc<JobSpec>>,
    /// The owner of the job, decided when an operator first saw the job. `None` if the owner is the job's namespace, as
    /// the spec says.
    pub owner: Option<Arc<str>>,
    /// Whether the job's status records `owner` and `transformed`.
    pub policy_recorded: bool,
    /// The changes by the transforms of the policy that was in force when the spec was accepted.
    pub transformed: Arc<Transformed>,
    /// The problems with the present spec. While there are any, no proc is started.
    pub problems: Vec<Problem>,
    /// Parts of the present spec that have no effect.
    pub warnings: Vec<Problem>,
    /// Whether the job is being deleted.
    pub removing: bool,
    /// Whether a deletion of the job waits until its claims are over.
    pub finalizer: JobFinalizer,
    /// The messages that the job's author has got.
    pub told: SentMessages,
    /// Procs that are idle, and which of them wait before they are tried again.
    pub idle: Idle,
    /// Procs that are held. A proc that was told to leave its slot is also in `active` until it has left.
    pub on_hold: OnHold,
    /// The procs that the job's status in the API server lists as held.
    pub recorded_holds: Ranges,
    /// Procs that have a claim, each with the slot.
    pub active: BTreeMap<u32, SlotName>,
    /// Claims for procs of the job that wait, each with the slots whose present claims must end first.
    pub waits_for: BTreeMap<ClaimId, BTreeSet<SlotName>>,
    /// Procs that ended or are held, but whose end or hold is not recorded yet; each with its slot, which waits for the
    /// record.
    pub unrecorded: BTreeMap<u32, SlotName>,
    /// Slots in which containers may still run of pods whose proc has ended. Read them with
    /// [`Pool::has_remains`](super::Pool::has_remains).
    pub(super) remains: BTreeSet<SlotName>,
    /// Procs that ended with exit code 0.
    pub succeeded: Ranges,
    /// Procs that ended with another exit code.
    pub failed: Ranges,
    /// Procs that somebody removed. A proc that was told to leave its slot is also in `active` until it has left.
    pub removed: Ranges,
    /// `succeeded`, `failed` and `removed` as the job's status in the API server has them.
    pub recorded: [Ranges; 3],
    /// The history of procs that are not done and have run or were held.
    pub history: BTreeMap<u32, History>,
    /// How often the program of each proc ended by itself, as the job's status in the API server has it.
    pub recorded_completions: ByProc<u32>,
    /// The number of the last act that was carried out.
    pub last_act: u64,
    /// The number of the last act that the job's status in the API server has.
    pub recorded_act: u64,
    /// The acts on the job's object, until the start is complete.
    pub found_acts: Vec<Act>,
    /// The expressions of the job that act.
    pub acting: Arc<Acting>,
    /// How many procs are in the queue at a time, and when they start.
    pub pacing: Pacing,
    /// When the next proc may get a slot, since `NextJobStartDelay` asks for a pause after the last. Another leader does not know
    /// this time.
    pub(super) next_start: Option<Time>,
    /// Where the job is in the times of its crontab.
    pub(super) course: Course,
    /// The times of the crontab for which procs got their slots. Another leader does not know them.
    pub(super) times: BTreeMap<u32, Time>,
    /// Where the evaluation of periodic expressions goes on, if it was interrupted.
    pub evaluated_to: u32,
    /// Procs with an earlier pod that still exists. The next pod has the same name.
    pub earlier_pods: BTreeMap<u32, PodUid>,
    /// Set after the API server refused a pod of the job, or a slot refused the job's match, until enough pods are accepted.
    pub resting: Option<Resting>,
    /// Why the API server refused the last pod of the job; `None` once it accepts a pod.
    pub refused: Option<Arc<str>>,
    /// When the first proc started.
    pub first_start: Option<Time>,
    /// When the last proc ended.
    pub completed_at: Option<Time>,
    /// The most that one proc was seen to use, of each amount. The job's status has it, and is not written for it alone.
    pub used: Usage,
    /// Whether any machine could run the job.
    pub matchable: Matchable,
    /// When `matchable` was last computed.
    pub explained: Time,
    /// The value of [`Pool::offers`](super::Pool::offers) at that time.
    pub explained_by: u64,
    /// The spec that the explanation, finished or not, is about; `None` if that is the job's.
    pub explained_own: Option<Arc<OwnSpec>>,
    /// The clauses that keep the job from every machine, those that fail on most slots first; empty while some machine
    /// could run the job. The number is bounded.
    pub clauses: Arc<[FailedClause]>,
    /// The progress of the explanation, while the explanation takes more than one cycle.
    pub explaining: Option<Explaining>,
    /// The reason for which the job's procs wait for a slot, if a cycle has found one.
    pub waits: Option<Waits>,
}

impl Job {
    /// The job's place among the jobs of its submitter.
    pub fn queue_key(&self) -> QueueKey {
        QueueKey {
            priorities: Reverse(self.spec.as_ref().map_or(JobSpec::PLAIN, |spec| spec.priorities)),
            submitted: self.submitted,
            cluster_id: self.cluster_id,
            job: self.key.clone(),
        }
    }

    /// Whether a pod with this job's labels is indeed the job's: its namespace and name must fit. Anybody who may create
    /// pods in the namespace can make such a pod; nobody else can.
    pub fn owns(&self, facts: &PodFacts) -> bool {
        self.key.namespace == facts.pod.namespace && *pod_name(&self.key.name, facts.proc) == *facts.pod.name
    }

    /// Whether a proc has ended for good, or was removed.
    pub fn is_done(&self, proc: u32) -> bool {
        self.succeeded.contains(proc) || self.failed.contains(proc) || self.removed.contains(proc)
    }

    /// Whether a proc must not start: it is done or held.
    pub fn is_out(&self, proc: u32) -> bool {
        self.is_done(proc) || self.on_hold.contains_key(&proc)
    }

    /// Whether a proc is done, or is held and its hold is recorded, so that an earlier leader has dealt with its pod. A proc that was
    /// released since is not out: its pod may still end in the slot of its claim.
    pub(super) fn was_out(&self, proc: u32) -> bool {
        self.is_done(proc) || (self.recorded_holds.contains(proc) && self.on_hold.contains_key(&proc))
    }

    /// Whether a proc waits, is held, or has a claim, and was not removed.
    pub fn is_queued(&self, proc: u32) -> bool {
        let there = self.active.contains_key(&proc) || self.on_hold.contains_key(&proc);
        (there || self.idle.contains(proc)) && !self.is_done(proc)
    }

    /// Whether the job's spec counts a proc of this number.
    pub fn has_counted(&self, proc: u32) -> bool {
        self.spec.as_ref().is_some_and(|spec| proc < spec.count)
    }

    /// Whether the API server has everything about a proc that it must have before the proc's pod may go: the proc's
    /// end, that the proc is held, or that its program ended and is to run again.
    pub fn is_settled(&self, proc: u32) -> bool {
        let ended = self.is_done(proc) && !self.is_recorded(proc);
        let held = self.on_hold.contains_key(&proc) && !self.recorded_holds.contains(proc);
        let again = self.history.get(&proc).map_or(0, |history| history.completions);
        !ended && !held && again <= self.recorded_completions.of(proc).copied().unwrap_or(0)
    }

    /// Whether the API server has the number of the last act that was carried out. Until then no pod of the job is created.
    pub fn acts_are_recorded(&self) -> bool {
        self.last_act <= self.recorded_act
    }

    /// How many procs have a claim, without those that were held or removed and have not left their slots yet.
    pub fn running(&self) -> usize {
        self.active.keys().filter(|proc| !self.is_out(**proc)).count()
    }

    /// Whether a proc of the job is held with this `HoldReasonCode`.
    pub fn is_held_for(&self, code: i64) -> bool {
        self.on_hold.has_code(code)
    }

    /// Whether the API server has the proc's end, or that the proc was removed.
    pub fn is_recorded(&self, proc: u32) -> bool {
        self.recorded.iter().any(|procs| procs.contains(proc))
    }

    /// Whether every proc has ended.
    pub fn is_complete(&self) -> bool {
        self.spec.is_some() && self.idle.is_empty() && self.active.is_empty() && self.on_hold.is_empty()
    }

    /// Whether the job may start a proc now, as far as no single proc is the reason.
    pub(super) fn starts_any(&self, now: Time) -> bool {
        let may_start = || !self.awaits_time() && self.idle.first_outside(&[], now).is_some();
        self.rested_from().is_some_and(|from| from <= now)
            && (!self.is_paced() || (self.paced(1, now) > 0 && may_start()))
    }

    /// Whether a proc that is idle may start now, as far as the proc alone goes.
    pub(super) fn is_rested(&self, proc: u32, now: Time) -> bool {
        !self.idle.pauses(proc, now) && self.is_due(proc)
    }

    /// Whether a proc is idle and may start now, as far as the proc alone goes.
    pub fn may_try(&self, proc: u32, now: Time) -> bool {
        self.idle.contains(proc) && self.is_rested(proc, now)
    }

    /// How many idle procs may start now.
    pub fn startable(&self, now: Time) -> u64 {
        let triable = self.triable(now);
        if triable == 0 {
            return 0;
        }
        self.paced(self.idle.len().saturating_sub(self.waiting(now)), now).min(triable)
    }

    /// The slots for which claims for procs of the job wait.
    pub fn awaited(&self) -> impl Iterator<Item = &SlotName> {
        self.waits_for.values().flatten()
    }

    /// How many idle procs may start now, less those for which a claim already waits.
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

    /// Expressions nest to 500 levels. An expression that is near that bound alone must not become another expression.
    #[test]
    fn requirements_that_cannot_stand_beside_the_clauses_are_refused() {
        let nested = |levels: usize| Expr::parse(&format!("{}true", "!".repeat(levels))).unwrap();
        let needs = Needs::new(vec!["TARGET.GPUs >= 1".to_owned()]);
        let beside =
            |levels| needs.beside(Some(nested(levels))).map(|expr| expr.to_string().contains("GPUs"));
        assert_eq!(beside(300), Ok(true));
        let problem = beside(498).unwrap_err();
        assert_eq!((problem.reason, problem.field.as_str()), ("InvalidExpression", "spec.requirements"));
        assert!(Needs::default().beside(Some(nested(498))).is_ok());
    }
}
