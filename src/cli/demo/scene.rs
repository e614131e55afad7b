//! The pool as the demo has seen it: takes in watch events, and gives numbers. Pure: every number comes from the API server.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use api::condition::{ACCEPTED, COMPLETE, MATCHABLE};
use api::{GroupQuota, HTCJob, Slot, SlotType, Submitter, SubmitterStatus, labels};

/// The least width of a column of names.
const NARROW: usize = 16;
/// The most width of a column of names; a longer name pushes the other columns aside.
const WIDE: usize = 40;

/// The object that a watch saw: new or changed, or gone.
#[derive(Clone, Debug)]
pub enum Sight {
    /// A job.
    Job(Box<HTCJob>),
    /// A job that is gone.
    JobGone(Box<HTCJob>),
    /// A slot.
    Slot(Box<Slot>),
    /// A slot that is gone.
    SlotGone(Box<Slot>),
    /// A pod.
    Pod(Box<Pod>),
    /// A pod that is gone.
    PodGone(Box<Pod>),
    /// A submitter.
    Submitter(Box<Submitter>),
    /// A submitter that is gone.
    SubmitterGone(Box<Submitter>),
    /// A group.
    Group(Box<GroupQuota>),
    /// A group that is gone.
    GroupGone(Box<GroupQuota>),
}

/// The capacity of the nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// How many nodes.
    pub nodes: usize,
    /// Whole cores.
    pub cores: i64,
    /// GPUs.
    pub gpus: i64,
}

/// Namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One job.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The object's uid.
    pub uid: String,
    /// The submitter who is charged; empty until the operator has set it.
    pub submitter: String,
    /// How many procs are asked for.
    pub procs: i64,
    /// Procs that wait.
    pub idle: i64,
    /// Procs that have a claim.
    pub running: i64,
    /// Procs that ended with exit code 0.
    pub done: i64,
    /// Procs that ended otherwise.
    pub failed: i64,
    /// The job's state in one word; empty until the operator has set it.
    pub summary: String,
    /// Whether the condition Complete is True.
    pub complete: bool,
    /// The messages of the conditions Accepted and Matchable that are False, in this order.
    pub objections: Vec<String>,
    /// Milliseconds from the first start to the last end.
    pub took_millis: Option<i64>,
}

#[derive(Clone, Debug)]
struct Claim {
    id: String,
    submitter: String,
    group: Option<String>,
    weight: f64,
}

/// One accounting group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// The quota in force, as the operator reports it.
    pub quota: f64,
    /// The slot weight of the claims on existing slots, including those of groups inside this one.
    pub used: f64,
    /// The most slot weight seen in use at a time.
    pub peak: f64,
}

/// Everything that the demo has seen.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The capacity of the nodes.
    pub capacity: Capacity,
    /// The jobs.
    pub jobs: BTreeMap<Key, Job>,
    /// The accountant's records, by submitter.
    pub submitters: BTreeMap<String, SubmitterStatus>,
    /// The groups by their names.
    pub groups: BTreeMap<String, Group>,
    /// The Slots that exist, by uid; `None` for a slot without a claim.
    slots: BTreeMap<String, Option<Claim>>,
    /// The claims of the pods that have not ended, by the pods' uids. A claim of a few seconds has no Slot.
    pods: BTreeMap<String, Claim>,
    /// All dynamic slots that have existed, by the ids of the claims for which they were carved.
    carved: BTreeSet<String>,
    /// The most slots that have existed at a time.
    peak_slots: usize,
    /// The claimed slot weight of each submitter when the most was claimed: how the pool was shared.
    fullest: BTreeMap<String, f64>,
}

impl Scene {
    /// A scene in which nothing but the nodes has been seen.
    pub fn new(capacity: Capacity) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Takes in what a watch saw.
    pub fn see(&mut self, sight: Sight) {
        match sight {
            Sight::Job(job) => {
                self.jobs.insert(key_of(&job.metadata), read_job(&job));
            }
            Sight::JobGone(job) => {
                self.jobs.remove(&key_of(&job.metadata));
            }
            Sight::Pod(pod) => self.pod(&pod),
            Sight::PodGone(pod) => {
                self.pods.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                self.count_groups();
            }
            Sight::Slot(slot) => self.slot(&slot),
            Sight::SlotGone(slot) => {
                self.slots.remove(slot.metadata.uid.as_deref().unwrap_or_default());
                self.count_groups();
            }
            Sight::Submitter(submitter) => {
                if let Some(status) = submitter.status {
                    self.submitters.insert(status.name.clone(), status);
                }
            }
            Sight::SubmitterGone(submitter) => {
                let name = submitter.status.map(|status| status.name).unwrap_or_default();
                self.submitters.remove(&name);
            }
            Sight::Group(group) => {
                let quota = group.status.as_ref().map_or(0.0, |status| status.subtree_quota);
                self.groups.entry(group_name(&group)).or_default().quota = quota;
                self.count_groups();
            }
            Sight::GroupGone(group) => {
                self.groups.remove(&group_name(&group));
            }
        }
    }

    /// How many dynamic slots have existed.
    pub fn carved(&self) -> usize {
        self.carved.len()
    }

    /// How many slots exist: Slots, and slots whose claims have only their pods.
    pub fn slots(&self) -> usize {
        self.slots.len() + self.unwritten().count()
    }

    /// The claims that have a pod and no Slot.
    fn unwritten(&self) -> impl Iterator<Item = &Claim> {
        let mut known: BTreeSet<&str> =
            self.slots.values().flatten().map(|claim| claim.id.as_str()).collect();
        self.pods.values().filter(move |claim| known.insert(&claim.id))
    }

    /// All claims.
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.slots.values().flatten().chain(self.unwritten())
    }

    /// The most slots that have existed at a time.
    pub fn peak_slots(&self) -> usize {
        self.peak_slots
    }

    /// The claimed slot weight of a submitter, or of all.
    pub fn weight_in_use(&self, submitter: Option<&str>) -> f64 {
        let its = self.claims().filter(|claim| submitter.is_none_or(|name| claim.submitter == name));
        sum(its)
    }

    /// The claimed slot weight of a submitter when the most was claimed in the whole pool.
    pub fn weight_at_peak(&self, submitter: &str) -> f64 {
        self.fullest.get(submitter).copied().unwrap_or(0.0)
    }

    /// The jobs of `expected` that are not complete, including missing ones.
    pub fn unfinished<'a>(&self, expected: &'a BTreeSet<Key>) -> Vec<&'a Key> {
        expected.iter().filter(|key| !self.jobs.get(*key).is_some_and(|job| job.complete)).collect()
    }

    /// How wide a column of names must be.
    pub fn name_width(&self) -> usize {
        let jobs = self.jobs.keys().map(|key| key.to_string().chars().count());
        let others = self.submitters.keys().chain(self.groups.keys()).map(|name| name.chars().count());
        jobs.chain(others).max().unwrap_or(0).clamp(NARROW, WIDE)
    }

    /// Whether no slot exists and the accountant, too, says that nothing is in use. The accountant's figures are then
    /// final until somebody submits again.
    pub fn is_settled(&self) -> bool {
        let rests =
            |s: &SubmitterStatus| s.weighted_resources_used == 0.0 && s.resources_used == 0 && s.running == 0;
        self.slots() == 0 && self.submitters.values().all(rests)
    }

    fn slot(&mut self, slot: &Slot) {
        let uid = slot.metadata.uid.clone().unwrap_or_default();
        if let (SlotType::Dynamic, Some(claim)) = (slot.spec.slot_type, &slot.spec.claim) {
            self.carved.insert(claim.id.clone());
        }
        let claim = slot.spec.claim.as_ref().map(|claim| Claim {
            id: claim.id.clone(),
            submitter: claim.submitter.clone(),
            group: claim.accounting_group.clone(),
            weight: claim.weight,
        });
        self.slots.insert(uid, claim);
        self.count();
    }

    fn pod(&mut self, pod: &Pod) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        match claim_of(pod).filter(|_| !matches!(phase, Some("Succeeded" | "Failed"))) {
            Some((claim, dynamic)) => {
                if dynamic {
                    self.carved.insert(claim.id.clone());
                }
                self.pods.insert(uid, claim);
            }
            None => {
                self.pods.remove(&uid);
            }
        }
        self.count();
    }

    fn count(&mut self) {
        self.peak_slots = self.peak_slots.max(self.slots());
        self.count_groups();
        self.count_shares();
    }

    fn count_shares(&mut self) {
        if self.weight_in_use(None) <= self.fullest.values().sum() {
            return;
        }
        let mut fullest: BTreeMap<String, f64> = BTreeMap::new();
        for claim in self.claims() {
            *fullest.entry(claim.submitter.clone()).or_default() += claim.weight;
        }
        self.fullest = fullest;
    }

    fn count_groups(&mut self) {
        let mut groups = std::mem::take(&mut self.groups);
        for (name, group) in &mut groups {
            let inside = |claim: &&Claim| claim.group.as_deref().is_some_and(|own| lies_in(own, name));
            group.used = sum(self.claims().filter(inside));
            group.peak = group.peak.max(group.used);
        }
        self.groups = groups;
    }
}

/// The weight of claims. Without a claim it is 0; the standard library's sum would be -0.
fn sum<'a>(claims: impl Iterator<Item = &'a Claim>) -> f64 {
    claims.fold(0.0, |sum, claim| sum + claim.weight)
}

/// Whether a group is `other` or lies in it. The case of names does not matter.
fn lies_in(group: &str, other: &str) -> bool {
    let (mut own, mut outer) = (group.split('.'), other.split('.'));
    outer.all(|part| own.next().is_some_and(|own| own.eq_ignore_ascii_case(part)))
}

/// The claim that a pod names, and whether its slot is dynamic; `None` if the pod is not the operator's. The claim weighs as much
/// as its slot has CPUs, as all slots of the demo do.
fn claim_of(pod: &Pod) -> Option<(Claim, bool)> {
    let said = pod.metadata.annotations.as_ref()?;
    let (id, submitter) = (said.get(labels::CLAIM)?.clone(), said.get(labels::SUBMITTER)?.clone());
    let group = submitter.rsplit_once('.').map(|(group, _)| group.to_owned());
    let dynamic =
        said.get(labels::SLOT).and_then(|name| name.split('@').next()).is_some_and(|slot| slot.contains('_'));
    let requests = pod.spec.as_ref()?.containers.first()?.resources.as_ref()?.requests.as_ref()?;
    let weight = requests.get("cpu").and_then(|cpus| cpus.0.parse().ok()).unwrap_or(0.0);
    Some((Claim { id, submitter, group, weight }, dynamic))
}

fn key_of(meta: &ObjectMeta) -> Key {
    Key { namespace: meta.namespace.clone().unwrap_or_default(), name: meta.name.clone().unwrap_or_default() }
}

fn group_name(group: &GroupQuota) -> String {
    group.spec.group.clone().or_else(|| group.metadata.name.clone()).unwrap_or_default()
}

fn read_job(job: &HTCJob) -> Job {
    let status = job.status.clone().unwrap_or_default();
    let says = |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_);
    let objections =
        [ACCEPTED, MATCHABLE].into_iter().filter_map(says).filter(|condition| condition.status == "False");
    let millis = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.as_millisecond();
    Job {
        uid: job.metadata.uid.clone().unwrap_or_default(),
        procs: job.spec.count,
        idle: status.idle,
        running: status.running,
        done: status.completed,
        failed: status.failed,
        complete: says(COMPLETE).is_some_and(|condition| condition.status == "True"),
        objections: objections.map(|c| format!("{} ({}): {}", c.type_, c.reason, c.message)).collect(),
        took_millis: status
            .start_time
            .as_ref()
            .zip(status.completion_time.as_ref())
            .map(|(a, b)| millis(b) - millis(a)),
        submitter: status.submitter.unwrap_or_default(),
        summary: status.summary.unwrap_or_default(),
    }
}
