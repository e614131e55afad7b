//! The procs of jobs: what is known of each, and which of them are meant.

use std::collections::BTreeMap;

use api::HTCJob;
use classad::{Ad, Env, Expr};
use controller::kinds;
use controller::kinds::pod::{PodView, SlimPod};
use model::pool::{HoldReason, JobFacts, JobSpec, ProcView, Ranges, Standing, Time};

use crate::cluster::{self, Cluster};

/// When the containers of each running proc started, by the job's uid and the proc's number.
pub(super) type Pods = BTreeMap<(String, u32), Option<Time>>;

/// The state of a proc, as far as the job's object and its pods tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Running,
    HeldByUser,
    HeldBySpec,
    HeldOtherwise,
    Ended,
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
pub(super) struct Found<'a> {
    pub(super) cluster: i64,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) owner: String,
    facts: JobFacts,
    pods: &'a Pods,
    count: u32,
    now: Time,
}

/// The running procs of these jobs.
pub(super) async fn pods(cluster: &Cluster, jobs: &[HTCJob]) -> Result<Pods, cluster::Error> {
    let mut namespaces: Vec<&str> = jobs.iter().filter_map(|job| job.metadata.namespace.as_deref()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let mut running = Pods::new();
    for namespace in namespaces {
        let pods: Vec<SlimPod> = cluster.list(Some(namespace)).await?;
        running.extend(pods.iter().filter_map(kinds::pod::view).filter_map(|view| match view {
            PodView::Ours(facts) if facts.end.is_none() && !facts.deleting => {
                Some(((facts.job.to_string(), facts.proc), facts.started))
            }
            _ => None,
        }));
    }
    Ok(running)
}

impl<'a> Found<'a> {
    /// A job that has a number; none if the operator has not seen the job yet.
    pub(super) fn of(job: &HTCJob, pods: &'a Pods, now: Time) -> Option<Self> {
        let facts = kinds::job::facts(job)?;
        let owner = facts.owner.owner().map(ToString::to_string);
        Some(Self {
            cluster: facts.cluster_id?,
            namespace: job.metadata.namespace.clone()?,
            name: job.metadata.name.clone()?,
            owner: owner.unwrap_or_else(|| kinds::job::owner(job)),
            count: u32::try_from(job.spec.count).unwrap_or(0),
            facts,
            pods,
            now,
        })
    }

    /// The job's uid.
    pub(super) fn uid(&self) -> &str {
        self.facts.key.uid.as_str()
    }

    /// The proc of this number, if there is one.
    pub(super) fn proc(&self, number: u32) -> Option<Proc> {
        (number < self.count).then(|| Proc { number, state: self.state(number) })
    }

    /// Whether some proc has not ended.
    pub(super) fn is_queued(&self) -> bool {
        (0..self.count).any(|number| !matches!(self.state(number), State::Ended | State::Removed))
    }

    fn state(&self, number: u32) -> State {
        if self.facts.life.removed.contains(number) {
            return State::Removed;
        }
        if self.facts.succeeded.contains(number) || self.facts.failed.contains(number) {
            return State::Ended;
        }
        match self.facts.on_hold.get(&number) {
            Some(hold) if hold.is_by_spec() => State::HeldBySpec,
            Some(hold) if hold.is_by_user() => State::HeldByUser,
            Some(_) => State::HeldOtherwise,
            None if self.pods.contains_key(&(self.uid().to_owned(), number)) => State::Running,
            None => State::Idle,
        }
    }

    /// The ad of a proc: the job's, with what is known of the proc.
    fn ad(&self, spec: &JobSpec, proc: Proc) -> Ad {
        let hold: Option<HoldReason> = self.facts.on_hold.get(&proc.number).cloned();
        let standing = match proc.state {
            State::Running => Standing::Running,
            State::HeldByUser | State::HeldBySpec | State::HeldOtherwise => Standing::Held,
            State::Idle | State::Ended | State::Removed => Standing::Idle,
        };
        let started = self.pods.get(&(self.uid().to_owned(), proc.number)).copied().flatten();
        let kept = self.facts.life.history.get(&proc.number).copied().unwrap_or_default();
        let known = if kept.since > Time::default() { kept.since } else { self.facts.submitted };
        let since = started.filter(|_| standing == Standing::Running).unwrap_or(known);
        let history = model::pool::History { since, ..kept };
        let view = ProcView { proc: proc.number, standing, history, hold, started, usage: None };
        let mut ad = view.ad(spec, self.now);
        ad.set("ClusterId", self.cluster);
        ad.set("Owner", self.owner.as_str());
        ad
    }
}

/// The procs of a job that a selection means.
pub(super) struct Procs {
    /// Those that are to be acted on.
    pub(super) acted: Ranges,
}

impl Procs {
    /// The procs of a job for which `acts` is true, and of which a constraint is true.
    pub(super) fn of(
        found: &Found,
        constraint: Option<&Expr>,
        held: bool,
        acts: impl Fn(&Proc) -> bool,
    ) -> Self {
        let env = Env::at(found.now.secs());
        let meets = |proc: &Proc| match (constraint, &found.facts.spec) {
            (None, _) => true,
            (Some(constraint), Ok(spec)) => {
                let ad = found.ad(spec, *proc);
                constraint.eval(Some(&ad), None, &env).as_bool_equiv() == Some(true)
            }
            // Nobody knows the ad of a job whose spec is not valid.
            (Some(_), Err(_)) => false,
        };
        let mut acted = Ranges::default();
        for proc in (0..found.count).filter_map(|number| found.proc(number)) {
            if acts(&proc) && (!held || proc.is_held()) && meets(&proc) {
                acted.insert(proc.number);
            }
        }
        Self { acted }
    }
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
        let pods = Pods::from([(("u1".to_owned(), 5), Some(Time::from_secs(1_767_225_700)))]);
        let (job, now) = (job(), Time::from_secs(1_767_226_000));
        let found = Found::of(&job, &pods, now).unwrap();
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
            ("NoSuchThing", ""),
        ] {
            let constraint = Expr::parse(text).unwrap();
            let queued = |proc: &Proc| !matches!(proc.state, State::Ended | State::Removed);
            let procs = Procs::of(&found, Some(&constraint), false, queued);
            assert_eq!(procs.acted.to_string(), expected, "{text}");
        }
        assert!(found.is_queued() && found.proc(8).is_none());
    }
}
