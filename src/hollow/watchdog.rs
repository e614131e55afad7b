//! An observer that is independent of the operator: it watches pods and nodes through the API, and records violations.
//!
//! The watchdog checks that:
//! - at no time do the pods of a node that have not ended request more than the node's allocatable, of any resource;
//! - no two pods of one proc (labels [`JOB_UID`] and [`PROC`]) are live at the same time;
//! - no proc succeeds twice, and no pod is live again after its end.
//!
//! [`Watchdog::observe`] is pure; [`watch::Watch`] feeds it from a cluster. The watchdog does not see what happens
//! while a watch is broken, so after a relist ([`Totals::relists`]) its counts may be too low. It never reports a
//! violation that did not happen.

pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::nodes::resources::{PODS, Resources, pod_requests};
use super::nodes::view::{Phase, key_of};

pub use api::labels::{JOB_UID, PROC};

/// The identity of a proc.
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
    /// The node that the pod is bound to.
    pub node: Option<String>,
    /// The requests of the pod.
    pub requests: Resources,
    /// `status.phase`.
    pub phase: Phase,
    /// `status.reason`: why a kubelet rejected the pod, if one did.
    pub reason: String,
    /// The proc that the pod runs, if it has both labels.
    pub proc: Option<ProcId>,
}

impl SeenPod {
    /// Reads a pod. Returns `None` for a pod without a uid or spec, or with a malformed quantity; no API server sends
    /// such a pod.
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

/// A node's name and allocatable; `None` for a node without a name or with a malformed quantity.
pub fn seen_node(node: &Node) -> Option<(String, Resources)> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    Some((node.metadata.name.clone()?, Resources::parse(&allocatable).ok()?))
}

/// Something that the API server shows.
#[derive(Debug, Clone)]
pub enum Observation {
    /// A new or changed pod.
    Pod(SeenPod),
    /// The pod with this uid no longer exists.
    PodGone(String),
    /// The complete list of pods.
    Pods(Vec<SeenPod>),
    /// The name and allocatable of a new or changed node.
    Node(String, Resources),
    /// The node of this name no longer exists.
    NodeGone(String),
    /// The complete list of nodes, with name and allocatable.
    Nodes(Vec<(String, Resources)>),
}

/// A violation of one of the rules that the module docs list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// The pods of a node request more than the node's allocatable.
    Overcommit {
        /// The node.
        node: String,
        /// The resource.
        resource: String,
        /// The amount that the pods request together.
        requested: i64,
        /// The node's allocatable amount.
        allocatable: i64,
        /// The names of the pods.
        pods: Vec<String>,
    },
    /// A proc has more than one pod that has not ended.
    TwoLive {
        /// The proc.
        proc: ProcId,
        /// The names of its live pods.
        pods: Vec<String>,
    },
    /// A proc succeeded a second time.
    SucceededAgain {
        /// The proc.
        proc: ProcId,
        /// The name of the pod that succeeded later.
        pod: String,
    },
    /// A pod had ended and is live again.
    Resurrected {
        /// The name of the pod.
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

/// How many pods of one proc have started and ended. Each pod counts once, however often it is observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods that reached Running.
    pub started: u64,
    /// Pods that reached Succeeded.
    pub succeeded: u64,
    /// Pods that reached Failed, including those that a kubelet rejected.
    pub failed: u64,
}

/// Sums over everything observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// All pods, with and without the labels of a proc.
    pub pods: u64,
    /// Pods that reached Running.
    pub started: u64,
    /// Pods that reached Succeeded.
    pub succeeded: u64,
    /// Pods that reached Failed.
    pub failed: u64,
    /// Pods that a kubelet rejected because its node had too few resources (`OutOf...`). `failed` counts them too.
    pub out_of_resources: u64,
    /// The most pods that were Running at the same time.
    pub peak_running: u64,
    /// Complete lists of pods after the first. Before each of them the watchdog may have missed events.
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

/// The state of the pods and nodes that were observed, and the violations that were found.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {
    pods: BTreeMap<String, Tracked>,
    nodes: BTreeMap<String, Resources>,
    /// Uids of the live pods, by node.
    live_on: BTreeMap<String, BTreeSet<String>>,
    procs: BTreeMap<ProcId, Proc>,
    /// Node and resource of each overcommitment that has been recorded and has not ended.
    overcommitted: BTreeSet<(String, String)>,
    violations: Vec<(Timestamp, Violation)>,
    totals: Totals,
    running: u64,
    lists: u64,
}

impl Watchdog {
    /// Records what the API server showed at `now`, and checks the rules that it touches.
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

    /// Every violation with the time at which it was observed, in order.
    pub fn violations(&self) -> &[(Timestamp, Violation)] {
        &self.violations
    }

    /// Sums over everything observed.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The counts of each proc.
    pub fn procs(&self) -> impl Iterator<Item = (&ProcId, Counts)> {
        self.procs.iter().map(|(id, proc)| (id, proc.counts))
    }

    /// How many pods are live: they exist and have not ended.
    pub fn live(&self) -> usize {
        self.pods.values().filter(|tracked| !tracked.pod.phase.is_terminal()).count()
    }

    /// The requests of the live pods of a node together.
    fn requested_on(&self, node: &str) -> Resources {
        let mut sum = Resources::default();
        for tracked in self.live_on.get(node).into_iter().flatten().filter_map(|uid| self.pods.get(uid)) {
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
        // Ended pods come first. A list has no order in time, and the end of a pod may have made room for another.
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

    /// Stores a pod and updates the indexes.
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
            let of_node = self.live_on.entry(node.clone()).or_default();
            if live {
                of_node.insert(uid.clone())
            } else {
                of_node.remove(&uid)
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
            self.live_on.entry(node.clone()).or_default().remove(uid);
            self.check_node(&node, now);
        }
    }

    fn node_gone(&mut self, name: &str) {
        self.nodes.remove(name);
        self.overcommitted.retain(|(node, _)| node != name);
    }

    /// Records a violation if the pod `uid` has become live (`appeared`) while another pod of its proc is live.
    fn check_proc(&mut self, uid: &str, appeared: bool, now: Timestamp) {
        let id = self.pods.get(uid).and_then(|tracked| tracked.pod.proc.clone());
        let Some((id, proc)) = id.and_then(|id| self.procs.get(&id).map(|proc| (id, proc))) else { return };
        if appeared && proc.live.len() > 1 && proc.live.contains(uid) {
            let pods = self.names(&proc.live);
            self.violations.push((now, Violation::TwoLive { proc: id, pods }));
        }
    }

    /// Records each resource of which the live pods of a node request too much: once, until they request less again.
    fn check_node(&mut self, node: &str, now: Timestamp) {
        // A pod may be observed before its node. The check is then made when the node is observed.
        let Some(allocatable) = self.nodes.get(node) else { return };
        let pods = self.live_on.get(node).cloned().unwrap_or_default();
        let mut requested = self.requested_on(node);
        requested.set(PODS, i64::try_from(pods.len()).unwrap_or(i64::MAX));
        let over = |(resource, amount): (&str, i64)| {
            let most = allocatable.get(resource);
            (amount > most).then(|| (resource.to_owned(), amount, most))
        };
        let shortages: Vec<_> = requested.iter().filter_map(over).collect();
        self.overcommitted
            .retain(|(name, resource)| name != node || shortages.iter().any(|(short, ..)| short == resource));
        for (resource, requested, allocatable) in shortages {
            if self.overcommitted.insert((node.to_owned(), resource.clone())) {
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
