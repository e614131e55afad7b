//! What the demo has seen of the pool: takes in watch events, and gives numbers. Pure: every number comes from the
//! API server.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use api::condition::{ACCEPTED, COMPLETE, MATCHABLE};
use api::{GroupQuota, HTCJob, Slot, SlotType, Submitter, SubmitterStatus};

/// The least width of a column of names.
const NARROW: usize = 16;
/// The most width of a column of names; a longer name pushes the other columns aside.
const WIDE: usize = 40;

/// What a watch saw: an object that is new or changed, or an object that is gone.
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
    /// A submitter.
    Submitter(Box<Submitter>),
    /// A submitter that is gone.
    SubmitterGone(Box<Submitter>),
    /// A group.
    Group(Box<GroupQuota>),
    /// A group that is gone.
    GroupGone(Box<GroupQuota>),
}

/// What the nodes have together.
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
    /// What the nodes have.
    pub capacity: Capacity,
    /// The jobs.
    pub jobs: BTreeMap<Key, Job>,
    /// The accountant's records, by submitter.
    pub submitters: BTreeMap<String, SubmitterStatus>,
    /// The groups by their names.
    pub groups: BTreeMap<String, Group>,
    /// The slots that exist, by uid; `None` for a slot without a claim.
    slots: BTreeMap<String, Option<Claim>>,
    /// The uids of all dynamic slots that have existed.
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

    /// How many slots exist.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The most slots that have existed at a time.
    pub fn peak_slots(&self) -> usize {
        self.peak_slots
    }

    /// The claimed slot weight of a submitter, or of all.
    pub fn weight_in_use(&self, submitter: Option<&str>) -> f64 {
        let claims = self.slots.values().flatten();
        let its = claims.filter(|claim| submitter.is_none_or(|name| claim.submitter == name));
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
        self.slots.is_empty() && self.submitters.values().all(rests)
    }

    fn slot(&mut self, slot: &Slot) {
        let uid = slot.metadata.uid.clone().unwrap_or_default();
        if slot.spec.slot_type == SlotType::Dynamic {
            self.carved.insert(uid.clone());
        }
        let claim = slot.spec.claim.as_ref().map(|claim| Claim {
            submitter: claim.submitter.clone(),
            group: claim.accounting_group.clone(),
            weight: claim.weight,
        });
        self.slots.insert(uid, claim);
        self.peak_slots = self.peak_slots.max(self.slots.len());
        self.count_groups();
        self.count_shares();
    }

    fn count_shares(&mut self) {
        if self.weight_in_use(None) <= self.fullest.values().sum() {
            return;
        }
        self.fullest.clear();
        for claim in self.slots.values().flatten() {
            *self.fullest.entry(claim.submitter.clone()).or_default() += claim.weight;
        }
    }

    fn count_groups(&mut self) {
        for (name, group) in &mut self.groups {
            let inside = |claim: &&Claim| claim.group.as_deref().is_some_and(|own| lies_in(own, name));
            group.used = sum(self.slots.values().flatten().filter(inside));
            group.peak = group.peak.max(group.used);
        }
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
