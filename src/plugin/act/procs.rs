//! The procs of jobs: what is known of each, and which of them are meant.

use api::HTCJob;
use api::condition::ACCEPTED;
use classad::{Ad, Env, Expr};
use controller::kinds;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use model::pool::{JobFacts, Ranges, Time};

use crate::cluster::{self, Cluster};
use crate::condor::jobs::{self, Runs};
use crate::condor::last_runs::LastRuns;

/// The state of a proc, as far as the job's object and its pods tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Running,
    HeldByUser,
    HeldBySpec,
    HeldOtherwise,
    Ended,
    /// Ended, and left in the queue by `LeaveJobInQueue`.
    Left,
    /// Removed, or taken out of the queue after it had ended.
    Removed,
}

/// A proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proc {
    pub(super) number: u32,
    pub(super) state: State,
}

impl Proc {
    pub(super) const fn is_held(self) -> bool {
        matches!(self.state, State::HeldByUser | State::HeldBySpec | State::HeldOtherwise)
    }
}

/// A job, and what is known of its procs.
pub(super) struct JobProcs<'a> {
    pub(super) cluster: i64,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) owner: String,
    job: &'a HTCJob,
    facts: JobFacts,
    runs: &'a Runs,
    count: u32,
    /// The procs that have ended and are in the queue.
    left: Ranges,
    /// The procs that somebody took out of the queue.
    out: Ranges,
    now: Time,
}

/// The running procs of these jobs, by their pods.
pub(super) async fn runs(cluster: &Cluster, jobs: &[HTCJob]) -> Result<Runs, cluster::Error> {
    let mut namespaces: Vec<&str> = jobs.iter().filter_map(|job| job.metadata.namespace.as_deref()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let mut pods = Vec::new();
    for namespace in namespaces {
        pods.extend(jobs::pods(cluster, Some(namespace)).await?);
    }
    Ok(Runs::of(&[], &pods))
}

/// The owner of a job.
pub(super) fn owner(job: &HTCJob) -> String {
    kinds::job::facts(job).map_or_else(|| kinds::job::owner(job), |facts| owner_by(&facts, job))
}

fn owner_by(facts: &JobFacts, job: &HTCJob) -> String {
    facts.owner.owner().map_or_else(|| kinds::job::owner(job), ToString::to_string)
}

impl<'a> JobProcs<'a> {
    /// The job's namespace and name.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// A job that has a number; none if the operator has not seen the job yet.
    pub(super) fn of(job: &'a HTCJob, runs: &'a Runs, now: Time) -> Option<Self> {
        let facts = kinds::job::facts(job)?;
        let left = if jobs::may_leave_in_queue(job) { left(job, now) } else { Ranges::default() };
        Some(Self {
            left,
            out: jobs::out_of_queue(job),
            cluster: facts.cluster_id?,
            namespace: job.metadata.namespace.clone()?,
            name: job.metadata.name.clone()?,
            owner: owner_by(&facts, job),
            count: u32::try_from(job.spec.count).unwrap_or(0),
            job,
            facts,
            runs,
            now,
        })
    }

    /// Why the operator has never accepted the job's spec; `None` if the operator has. Without an accepted spec the operator knows
    /// no procs of the job, and acts wait.
    pub(super) fn refusal(&self) -> Option<&str> {
        let status = self.job.status.as_ref().filter(|status| status.submitter.is_none())?;
        let refused = |condition: &&Condition| condition.type_ == ACCEPTED && condition.status == "False";
        status.conditions.iter().find(refused).map(|condition| condition.message.as_str())
    }

    /// Whether no proc of the job has ended, was removed or is held.
    pub(super) fn is_untouched(&self) -> bool {
        let ended = [&self.facts.succeeded, &self.facts.failed, &self.facts.life.removed];
        ended.into_iter().all(Ranges::is_empty) && self.facts.on_hold.is_empty()
    }

    /// The job's uid.
    pub(super) fn uid(&self) -> &str {
        self.facts.key.uid.as_str()
    }

    /// The proc of this number, if there is one.
    pub(super) fn proc(&self, number: u32) -> Option<Proc> {
        (number < self.count).then(|| Proc { number, state: self.state(number) })
    }

    /// Whether a proc has ended and is in the queue.
    pub(super) fn is_left(&self, number: u32) -> bool {
        self.left.contains(number)
    }

    /// The procs that have ended and are in the queue.
    pub(super) const fn left(&self) -> &Ranges {
        &self.left
    }

    /// Whether every proc has ended or was removed.
    pub(super) fn is_over(&self) -> bool {
        let ended = |state| matches!(state, State::Ended | State::Left | State::Removed);
        (0..self.count).all(|number| ended(self.state(number)))
    }

    /// Whether some proc is in the queue.
    pub(super) fn is_queued(&self) -> bool {
        (0..self.count).any(|number| !matches!(self.state(number), State::Ended | State::Removed))
    }

    fn state(&self, number: u32) -> State {
        if self.facts.life.removed.contains(number) || self.out.contains(number) {
            return State::Removed;
        }
        if self.left.contains(number) {
            return State::Left;
        }
        if self.facts.succeeded.contains(number) || self.facts.failed.contains(number) {
            return State::Ended;
        }
        match self.facts.on_hold.of(number) {
            Some(hold) if hold.is_by_spec() => State::HeldBySpec,
            Some(hold) if hold.is_by_user() => State::HeldByUser,
            Some(_) => State::HeldOtherwise,
            None if self.runs.has(self.uid(), number) => State::Running,
            None => State::Idle,
        }
    }

    /// The procs in the queue for which an expression is true, evaluated in the ads that condor_q shows.
    fn meeting(&self, constraint: &Expr) -> Ranges {
        let env = Env::at(self.now.secs());
        let mut meeting = Ranges::default();
        for ad in
            jobs::ads(std::slice::from_ref(self.job), Some(self.runs), Some(&LastRuns::default()), self.now)
        {
            let proc = ad.eval_attr("ProcId", None, &env).as_int().and_then(|proc| u32::try_from(proc).ok());
            let meets = constraint.eval(Some(&ad), None, &env).as_bool_equiv() == Some(true);
            if let Some(proc) = proc.filter(|_| meets) {
                meeting.insert(proc);
            }
        }
        meeting
    }
}

/// The procs of a job that have ended and are in the queue.
fn left(job: &HTCJob, now: Time) -> Ranges {
    let (env, none) = (Env::at(now.secs()), Runs::default());
    let ads = jobs::ads(std::slice::from_ref(job), Some(&none), Some(&LastRuns::default()), now);
    let number = |name: &str, ad: &Ad| ad.eval_attr(name, None, &env).as_int();
    let ended = ads.iter().filter(|ad| number("JobStatus", ad) == Some(COMPLETED));
    let mut left = Ranges::default();
    for proc in ended.filter_map(|ad| u32::try_from(number("ProcId", ad)?).ok()) {
        left.insert(proc);
    }
    left
}

/// The `JobStatus` of a proc that has ended.
const COMPLETED: i64 = 4;

/// The procs of a job for which `acts` is true, and which a selection means: those for which a constraint is true, and with `held`
/// only held ones.
pub(super) fn meant(
    found: &JobProcs,
    constraint: Option<&Expr>,
    held: bool,
    acts: impl Fn(Proc) -> bool,
) -> Ranges {
    let meeting = constraint.map(|constraint| found.meeting(constraint));
    let meets = |number: u32| meeting.as_ref().is_none_or(|meeting| meeting.contains(number));
    let mut meant = Ranges::default();
    for proc in (0..found.count).filter_map(|number| found.proc(number)) {
        if acts(proc) && (!held || proc.is_held()) && meets(proc.number) {
            meant.insert(proc.number);
        }
    }
    meant
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job() -> HTCJob {
        let object = json!({
            "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
            "metadata": {"name": "pi", "namespace": "alice", "uid": "u1", "generation": 1,
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"count": 8, "priority": 3, "requests": {"cpus": 1, "memory": "1Gi", "disk": "1Gi"},
                     "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}},
            "status": {"observedGeneration": 1, "clusterId": 5, "completedProcs": "0", "failedProcs": "1", "removedProcs": "2",
                       "heldProcs": [{"procs": "3", "code": 1, "reason": "mine"}, {"procs": "4", "code": 34, "reason": "memory"}],
                       "runs": [{"procs": "4", "starts": 3, "holds": 1}]},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_constraint_is_asked_of_each_proc() {
        let pod = json!({"name": "pi-5", "namespace": "alice", "creationTimestamp": "2026-01-01T00:01:40Z",
            "labels": {"slotwright.dev/job-uid": "u1", "slotwright.dev/proc": "5"}});
        let runs = Runs::of(&[], &[serde_json::from_value(pod).unwrap()]);
        let (job, now) = (job(), Time::from_secs(1_767_226_000));
        let found = JobProcs::of(&job, &runs, now).unwrap();
        let states: Vec<State> = (0..8).map(|number| found.proc(number).unwrap().state).collect();
        let (held, other) = (State::HeldByUser, State::HeldOtherwise);
        let done = [State::Ended, State::Ended, State::Removed];
        assert_eq!(states[..3], done);
        assert_eq!(states[3..], [held, other, State::Running, State::Idle, State::Idle]);
        for (text, expected) in [
            ("JobStatus == 5", "3-4"),
            ("JobStatus == 2", "5"),
            ("HoldReasonCode == 34 && NumJobStarts > 2", "4"),
            ("ProcId % 2 == 0", "4,6"),
            ("ClusterId == 5 && Owner == \"alice\" && JobPrio == 3", "3-7"),
            ("JobStatus == 2 && time() - EnteredCurrentStatus > 299", "5"),
            ("ContainerImage == \"busybox\" && TotalSubmitProcs == 8", "3-7"),
            ("NoSuchThing", ""),
        ] {
            let constraint = Expr::parse(text).unwrap();
            let queued = |proc: Proc| !matches!(proc.state, State::Ended | State::Removed);
            assert_eq!(meant(&found, Some(&constraint), false, queued).to_string(), expected, "{text}");
        }
        assert!(found.is_queued() && found.proc(8).is_none());
    }

    /// The submitter follows from the spec: the operator has never understood the spec of a job without one.
    #[test]
    fn a_job_whose_spec_was_never_accepted_says_why() {
        let (mut job, runs) = (job(), Runs::default());
        let mut refusal = |submitter: Option<&str>, accepted: &str| {
            let status = job.status.as_mut().unwrap();
            status.submitter = submitter.map(str::to_owned);
            let condition = json!({"type": "Accepted", "status": accepted, "message": "spec.rank: what?", "reason": "r",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"});
            status.conditions = vec![serde_json::from_value(condition).unwrap()];
            JobProcs::of(&job, &runs, Time::from_secs(0)).unwrap().refusal().map(str::to_owned)
        };
        assert_eq!(refusal(None, "False").as_deref(), Some("spec.rank: what?"));
        assert_eq!(refusal(Some("alice"), "False"), None, "an earlier spec is in force");
        assert_eq!(refusal(None, "True"), None, "the operator has not looked at the job yet");
        assert!(!JobProcs::of(&job, &runs, Time::from_secs(0)).unwrap().is_untouched());
    }
}
