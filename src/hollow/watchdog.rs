//! A watcher that is not the operator: sees the same pods and nodes and notes every broken promise.
//!
//! It checks, from what the API server shows and nothing else:
//! - at no time do the pods bound to a node that have not ended request more than its allocatable, in any resource;
//! - no two pods of one proc (labels [`JOB_UID`] and [`PROC`]) are alive at the same time;
//! - no proc succeeds twice; no pod comes back after its end.
//!
//! [`Watchdog::observe`] is pure; [`watch::Watch`] feeds it from a cluster. What happened while a watch was broken is
//! not seen, so counts may be too low after a relist ([`Totals::relists`]), but a violation is never made up.

pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::nodes::resources::{PODS, Resources, pod_requests};
use super::nodes::view::{Phase, key_of};

/// Label of the operator's pods: the uid of the job.
pub const JOB_UID: &str = "slotwright.dev/job-uid";
/// Label of the operator's pods: the number of the proc in its job.
pub const PROC: &str = "slotwright.dev/proc";

/// One unit of work: a proc of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId {
    /// The value of [`JOB_UID`].
    pub job_uid: String,
    /// The value of [`PROC`].
    pub proc: String,
}

impl fmt::Display for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proc {} of job {}", self.proc, self.job_uid)
    }
}

/// A pod as the watchdog sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPod {
    /// `metadata.uid`.
    pub uid: String,
    /// `namespace/name`.
    pub name: String,
    /// The node it is bound to.
    pub node: Option<String>,
    /// What it requests.
    pub requests: Resources,
    /// Its phase.
    pub phase: Phase,
    /// `status.reason`, which names why a kubelet refused it.
    pub reason: String,
    /// Which proc it runs, if it carries both labels.
    pub proc: Option<ProcId>,
}

impl SeenPod {
    /// `None` for a pod without uid or spec, or with quantities that are none; no API server sends such.
    pub fn from_pod(pod: &Pod) -> Option<Self> {
        let (key, spec) = (key_of(pod)?, pod.spec.as_ref()?);
        let label = |name: &str| pod.metadata.labels.as_ref()?.get(name).cloned();
        let proc = label(JOB_UID).zip(label(PROC)).map(|(job_uid, proc)| ProcId { job_uid, proc });
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
        Some(Self {
            name: key.to_string(),
            uid: key.uid,
            node: spec.node_name.clone().filter(|node| !node.is_empty()),
            requests: pod_requests(spec).ok()?,
            phase: Phase::parse(phase),
            reason: status.and_then(|status| status.reason.clone()).unwrap_or_default(),
            proc,
        })
    }
}

/// A node's name and allocatable; `None` without a name or with quantities that are none.
pub fn seen_node(node: &Node) -> Option<(String, Resources)> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    Some((node.metadata.name.clone()?, Resources::parse(&allocatable).ok()?))
}

/// Something the API server showed.
#[derive(Debug, Clone)]
pub enum Observation {
    /// A pod, new or changed.
    Pod(SeenPod),
    /// The pod of this uid is gone.
    PodGone(String),
    /// All pods there are.
    Pods(Vec<SeenPod>),
    /// A node's name and allocatable, new or changed.
    Node(String, Resources),
    /// The node of this name is gone.
    NodeGone(String),
    /// All nodes there are.
    Nodes(Vec<(String, Resources)>),
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// The pods on a node request more than it has.
    Overcommit {
        /// The node.
        node: String,
        /// The resource.
        resource: String,
        /// What the pods request together.
        requested: i64,
        /// What there is.
        allocatable: i64,
        /// The pods.
        pods: Vec<String>,
    },
    /// A proc has more than one pod that has not ended.
    TwoLive {
        /// The proc.
        proc: ProcId,
        /// Its live pods.
        pods: Vec<String>,
    },
    /// A proc succeeded once more.
    SucceededAgain {
        /// The proc.
        proc: ProcId,
        /// The pod that succeeded although another had.
        pod: String,
    },
    /// A pod had ended and is alive again.
    Resurrected {
        /// The pod.
        pod: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overcommit { node, resource, requested, allocatable, pods } => {
                let pods = pods.join(", ");
                write!(f, "node {node}: pods request {requested} of {allocatable} {resource}: {pods}")
            }
            Self::TwoLive { proc, pods } => write!(f, "{proc} is alive more than once: {}", pods.join(", ")),
            Self::SucceededAgain { proc, pod } => write!(f, "{proc} succeeded again with pod {pod}"),
            Self::Resurrected { pod } => write!(f, "pod {pod} had ended and is alive again"),
        }
    }
}

/// What became of the pods of one proc. Counts pods, not observations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods that reached Running.
    pub started: u64,
    /// Pods that reached Succeeded.
    pub succeeded: u64,
    /// Pods that reached Failed, refused ones included.
    pub failed: u64,
}

/// Sums over everything seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Pods seen, with or without labels of a proc.
    pub pods: u64,
    /// Pods that reached Running.
    pub started: u64,
    /// Pods that reached Succeeded.
    pub succeeded: u64,
    /// Pods that reached Failed.
    pub failed: u64,
    /// Those of them that a kubelet refused for want of resources (`OutOf...`).
    pub out_of_resources: u64,
    /// The most pods seen Running at a time.
    pub peak_running: u64,
    /// Complete lists of pods after the first: times when events may have been missed.
    pub relists: u64,
}

#[derive(Debug, Clone)]
struct Tracked {
    pod: SeenPod,
    started: bool,
}

#[derive(Debug, Clone, Default)]
struct Proc {
    counts: Counts,
    live: BTreeSet<String>,
}

/// All that was seen and found.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {
    pods: BTreeMap<String, Tracked>,
    nodes: BTreeMap<String, Resources>,
    /// Uids of the pods that take resources, by node.
    load: BTreeMap<String, BTreeSet<String>>,
    procs: BTreeMap<ProcId, Proc>,
    /// Shortages that were noted and last on.
    over: BTreeSet<(String, String)>,
    violations: Vec<(Timestamp, Violation)>,
    totals: Totals,
    running: u64,
    lists: u64,
}

impl Watchdog {
    /// Takes in what was seen at `now`.
    pub fn observe(&mut self, seen: Observation, now: Timestamp) {
        match seen {
            Observation::Pod(pod) => self.pod(pod, now),
            Observation::PodGone(uid) => self.pod_gone(&uid, now),
            Observation::Pods(pods) => self.all_pods(pods, now),
            Observation::Node(name, allocatable) => {
                self.nodes.insert(name.clone(), allocatable);
                self.check_node(&name, now);
            }
            Observation::NodeGone(name) => self.node_gone(&name),
            Observation::Nodes(nodes) => {
                let listed: BTreeMap<_, _> = nodes.into_iter().collect();
                let gone: Vec<_> =
                    self.nodes.keys().filter(|name| !listed.contains_key(*name)).cloned().collect();
                for name in gone {
                    self.node_gone(&name);
                }
                for (name, has) in listed {
                    self.observe(Observation::Node(name, has), now);
                }
            }
        }
    }

    /// Every broken promise and when it was seen, in order.
    pub fn violations(&self) -> &[(Timestamp, Violation)] {
        &self.violations
    }

    /// Sums over everything seen.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What became of each proc.
    pub fn procs(&self) -> impl Iterator<Item = (&ProcId, Counts)> {
        self.procs.iter().map(|(id, proc)| (id, proc.counts))
    }

    /// How many pods there are that have not ended.
    pub fn live(&self) -> usize {
        self.pods.values().filter(|tracked| !tracked.pod.phase.is_terminal()).count()
    }

    /// How many pods there are, ended ones included.
    pub fn present(&self) -> usize {
        self.pods.len()
    }

    /// What the pods on a node that have not ended request together.
    pub fn requested_on(&self, node: &str) -> Resources {
        let mut sum = Resources::default();
        for tracked in self.load.get(node).into_iter().flatten().filter_map(|uid| self.pods.get(uid)) {
            sum.add(&tracked.pod.requests);
        }
        sum
    }

    fn all_pods(&mut self, pods: Vec<SeenPod>, now: Timestamp) {
        self.totals.relists += u64::from(self.lists > 0);
        self.lists += 1;
        let listed: BTreeSet<String> = pods.iter().map(|pod| pod.uid.clone()).collect();
        let gone: Vec<String> = self.pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
        for uid in gone {
            self.pod_gone(&uid, now);
        }
        // Those that ended first: a list has no order in time, and they may have made room for others.
        let (ended, live): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.phase.is_terminal());
        for pod in ended.into_iter().chain(live) {
            self.pod(pod, now);
        }
    }

    fn pod(&mut self, pod: SeenPod, now: Timestamp) {
        let before = self.pods.get(&pod.uid).cloned();
        let had_ended = before.as_ref().is_some_and(|tracked| tracked.pod.phase.is_terminal());
        if had_ended && !pod.phase.is_terminal() {
            self.violations.push((now, Violation::Resurrected { pod: pod.name.clone() }));
        }
        let started_before = before.as_ref().is_some_and(|tracked| tracked.started);
        let started = started_before || matches!(pod.phase, Phase::Running | Phase::Succeeded);
        let was_running = before.as_ref().is_some_and(|tracked| tracked.pod.phase == Phase::Running);
        self.totals.pods += u64::from(before.is_none());
        self.count_running(was_running, pod.phase == Phase::Running);
        self.count(&pod, started && !started_before, !had_ended, now);
        let (uid, node) = (pod.uid.clone(), pod.node.clone());
        self.track(Tracked { pod, started });
        self.check_proc(&uid, before.is_none() || had_ended, now);
        if let Some(node) = node {
            self.check_node(&node, now);
        }
    }

    fn count_running(&mut self, before: bool, after: bool) {
        self.running = (self.running + u64::from(after)).saturating_sub(u64::from(before));
        self.totals.peak_running = self.totals.peak_running.max(self.running);
    }

    fn count(&mut self, pod: &SeenPod, starts: bool, may_end: bool, now: Timestamp) {
        let succeeds = may_end && pod.phase == Phase::Succeeded;
        let fails = may_end && pod.phase == Phase::Failed;
        let totals = &mut self.totals;
        totals.started += u64::from(starts);
        totals.succeeded += u64::from(succeeds);
        totals.failed += u64::from(fails);
        totals.out_of_resources += u64::from(fails && pod.reason.starts_with("OutOf"));
        let Some(id) = &pod.proc else { return };
        let counts = &mut self.procs.entry(id.clone()).or_default().counts;
        counts.started += u64::from(starts);
        counts.succeeded += u64::from(succeeds);
        counts.failed += u64::from(fails);
        if succeeds && counts.succeeded > 1 {
            let again = Violation::SucceededAgain { proc: id.clone(), pod: pod.name.clone() };
            self.violations.push((now, again));
        }
    }

    /// Remembers a pod in all indexes.
    fn track(&mut self, tracked: Tracked) {
        let (pod, uid) = (&tracked.pod, tracked.pod.uid.clone());
        let live = !pod.phase.is_terminal();
        if let Some(proc) = pod.proc.as_ref().and_then(|id| self.procs.get_mut(id)) {
            if live {
                proc.live.insert(uid.clone())
            } else {
                proc.live.remove(&uid)
            };
        }
        if let Some(node) = &pod.node {
            let load = self.load.entry(node.clone()).or_default();
            if live {
                load.insert(uid.clone())
            } else {
                load.remove(&uid)
            };
        }
        self.pods.insert(uid, tracked);
    }

    fn pod_gone(&mut self, uid: &str, now: Timestamp) {
        let Some(Tracked { pod, .. }) = self.pods.remove(uid) else { return };
        self.count_running(pod.phase == Phase::Running, false);
        if let Some(proc) = pod.proc.as_ref().and_then(|id| self.procs.get_mut(id)) {
            proc.live.remove(uid);
        }
        if let Some(node) = pod.node {
            self.load.entry(node.clone()).or_default().remove(uid);
            self.check_node(&node, now);
        }
    }

    fn node_gone(&mut self, name: &str) {
        self.nodes.remove(name);
        self.over.retain(|(node, _)| node != name);
    }

    /// Notes a second live pod of a proc, once, when it comes.
    fn check_proc(&mut self, uid: &str, comes: bool, now: Timestamp) {
        let id = self.pods.get(uid).and_then(|tracked| tracked.pod.proc.clone());
        let Some((id, proc)) = id.and_then(|id| self.procs.get(&id).map(|proc| (id, proc))) else { return };
        if comes && proc.live.len() > 1 && proc.live.contains(uid) {
            let pods = self.names(&proc.live);
            self.violations.push((now, Violation::TwoLive { proc: id, pods }));
        }
    }

    /// Notes each resource of which a node has too little, once until it has enough again.
    fn check_node(&mut self, node: &str, now: Timestamp) {
        // A pod may be seen before its node: the check comes with the node.
        let Some(allocatable) = self.nodes.get(node) else { return };
        let pods = self.load.get(node).cloned().unwrap_or_default();
        let mut requested = self.requested_on(node);
        requested.set(PODS, i64::try_from(pods.len()).unwrap_or(i64::MAX));
        let over = |(resource, amount): (&str, i64)| {
            let most = allocatable.get(resource);
            (amount > most).then(|| (resource.to_owned(), amount, most))
        };
        let shortages: Vec<_> = requested.iter().filter_map(over).collect();
        self.over
            .retain(|(name, resource)| name != node || shortages.iter().any(|(short, ..)| short == resource));
        for (resource, requested, allocatable) in shortages {
            if self.over.insert((node.to_owned(), resource.clone())) {
                let (node, pods) = (node.to_owned(), self.names(&pods));
                self.violations
                    .push((now, Violation::Overcommit { node, resource, requested, allocatable, pods }));
            }
        }
    }

    fn names(&self, uids: &BTreeSet<String>) -> Vec<String> {
        uids.iter().filter_map(|uid| self.pods.get(uid)).map(|tracked| tracked.pod.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
