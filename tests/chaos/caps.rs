//! The invariants about caps: quotas of groups, ceilings of submitters, and concurrency limits.

use std::collections::{BTreeMap, BTreeSet};

use api::labels;
use serde_json::{Value, json};

use super::checks::Checks;
use super::kubelets::{is_ours, is_over};
use super::marks;
use super::store::Key;
use super::verbs::{Call, Verb};
use super::world::World;

/// For how long an operator may act by an earlier cap, in milliseconds: until a broken watch works again.
const STALE: u64 = 5_000;
/// For how long an operator may act by an earlier cap in runs in which watches are late or operators are cut off, in
/// milliseconds: a little more than the longest such fault.
const VERY_STALE: u64 = 60_000;

/// The longest time from one attempt of a call to the next about the same object, in milliseconds: the limit of a call,
/// the pause, and the limit of an earlier call, which must be given up first.
const AGAIN: u64 = 25_000;
/// The longest time from an answer to the next call about the same object, in milliseconds.
const NEXT: u64 = 1000;

/// Caps as people set them, and the times at which operators decided by them.
#[derive(Debug, Default)]
pub struct Caps {
    /// The values of each quota, ceiling and limit, each with the time until which it held.
    history: BTreeMap<String, Vec<(f64, u64)>>,
    /// For each claim, when the operator decided it, at the latest: when it first sent the claim or the claim's first pod,
    /// or the first of the calls about that object for whose answers it had to wait. The operator repeats a call that
    /// nobody answers, and meanwhile the claim holds its share: a cap that is lowered then takes nothing away from the
    /// claim.
    sent: BTreeMap<String, u64>,
    /// The calls about each Slot and each pod, by kind and name. As long as nobody answers a call, the operator does not send
    /// calls about the same object that it decided later.
    lines: BTreeMap<String, Line>,
    /// For how long an operator may act by an earlier cap, in milliseconds.
    stale: u64,
}

/// An unbroken line of calls about one Slot.
#[derive(Debug)]
struct Line {
    since: u64,
    last: u64,
    done: bool,
}

impl Line {
    /// Whether a call that is sent now waited for the one before.
    fn goes_on(&self, at: u64) -> bool {
        at <= self.last + if self.done { NEXT } else { AGAIN }
    }
}

impl Caps {
    /// `behind` tells whether operators may be long behind in this run.
    pub fn new(behind: bool) -> Self {
        Self { stale: if behind { VERY_STALE } else { STALE }, ..Self::default() }
    }

    /// Notes that an operator sends a call.
    pub fn sets_out(&mut self, call: &Call, at: u64) {
        if !matches!(call.key.kind, "slots" | "pods") || !call.sub.is_empty() {
            return;
        }
        let line = line_of(&call.key);
        let before = self.lines.get(&line).filter(|line| line.goes_on(at));
        let since = before.map_or(at, |line| line.since);
        self.lines.insert(line, Line { since, last: at, done: false });
        let claim = &call.body["spec"]["claim"];
        let of_pod = &call.body["metadata"]["annotations"][labels::CLAIM];
        if claim.is_object() {
            self.sent.entry(claim.to_string()).or_insert(since);
        } else if let Some(id) = of_pod.as_str().filter(|_| call.verb == Verb::Create) {
            self.sent.entry(id.to_owned()).or_insert(since);
        }
    }

    /// Notes that a call took effect.
    pub fn done(&mut self, call: &Call, at: u64) {
        if let Some(line) = self.lines.get_mut(&line_of(&call.key)) {
            (line.last, line.done) = (at, true);
        }
    }

    fn decided(&self, claim: &Value) -> Option<u64> {
        let id = claim["id"].as_str().unwrap_or_default();
        self.sent.get(&claim.to_string()).or_else(|| self.sent.get(id)).copied()
    }

    /// The highest value that a cap had recently, seen from a time.
    fn at_most(&self, name: &str, at: u64) -> Option<f64> {
        let history = self.history.get(name)?;
        let recent = history
            .iter()
            .enumerate()
            .filter(|(n, (_, until))| *until + self.stale >= at || *n + 1 == history.len());
        recent.map(|(_, (cap, _))| *cap).reduce(f64::max)
    }

    pub fn set(&mut self, name: String, cap: f64, at: u64) {
        let history = self.history.entry(name).or_insert_with(|| vec![(f64::INFINITY, at)]);
        // Before the run begins, nobody has acted by the initial value.
        if at == 0 {
            history.clear();
        }
        if let Some(last) = history.last_mut() {
            last.1 = last.1.min(at);
        }
        history.push((cap, u64::MAX / 2));
    }
}

fn line_of(key: &Key) -> String {
    format!("{} {} {}", key.kind, key.namespace, key.name)
}

/// Checks that no group holds more than its quota, and no submitter more than its ceiling, now that the object of a claim is
/// written: its Slot, or its first pod.
pub fn capped(world: &mut World, key: &Key) {
    let Some(object) = world.store.get(key) else { return };
    let claim = if key.kind == "pods" { of_pod(&object) } else { object["spec"]["claim"].clone() };
    let claim = &claim;
    let at = world.checks.caps.decided(claim).unwrap_or_else(|| world.at());
    let unwritten = unwritten_claims(world);
    let held = |counts: &dyn Fn(&Value) -> bool| -> f64 {
        let claims = held_claims(world).chain(&unwritten).filter(|claim| counts(claim));
        claims.filter_map(|claim| claim["weight"].as_f64()).sum()
    };
    let mut over = Vec::new();
    let submitter = claim["submitter"].as_str().unwrap_or_default().to_owned();
    if let Some(cap) = world.checks.caps.at_most(&format!("submitter {submitter}"), at) {
        let sum = held(&|claim| claim["submitter"] == submitter.as_str());
        if sum > cap + 1e-6 {
            over.push(format!("{submitter} holds {sum} of {cap}"));
        }
    }
    let owner = |claim: &Value| {
        model::pool::SubmitterName::from(claim["submitter"].as_str().unwrap_or_default()).owner()
    };
    let own = owner(claim);
    if let Some(cap) = world.checks.caps.at_most(&format!("submitter {own}"), at) {
        let sum = held(&|claim| owner(claim) == own);
        if sum > cap + 1e-6 {
            over.push(format!("the submitters of {own} hold {sum} of {cap}"));
        }
    }
    let group = claim["accountingGroup"].as_str().map(str::to_ascii_lowercase);
    let group = group.map(model::pool::GroupName::from);
    for outer in group.iter().flat_map(model::pool::GroupName::ancestry) {
        let outer = outer.as_str();
        let Some(cap) = world.checks.caps.at_most(&format!("group {outer}"), at) else { continue };
        let inside = |claim: &Value| {
            let name = claim["accountingGroup"].as_str().map(str::to_ascii_lowercase);
            name.is_some_and(|name| name == outer || name.starts_with(&format!("{outer}.")))
        };
        let sum = held(&inside);
        if sum > cap + 1e-6 {
            over.push(format!("the group {outer} holds {sum} of {cap}"));
        }
    }
    for text in over {
        world.violated(format!("{text}, now that {} is written", key.name));
    }
}

/// The claims that operators wrote and that are not over.
fn held_claims(world: &World) -> impl Iterator<Item = &Value> {
    let slots = world.store.of("slots").filter(|(key, slot)| {
        let id = slot["spec"]["claim"]["id"].as_str().unwrap_or_default();
        let uid = slot["metadata"]["uid"].as_str().unwrap_or_default();
        // A made-up Slot with a copy of a claim holds nothing more.
        world.checks.claims.contains(id)
            && !world.checks.tampered_slots.contains(&key.name)
            && !world.checks.let_go.contains(uid)
    });
    slots.map(|(_, slot)| &slot["spec"]["claim"])
}

/// The claims that have a live pod, and never had a Slot that an operator deleted. No kubelet starts a pod that is being deleted: the claim of such a pod is over, if the
/// program has not started.
fn unwritten_claims(world: &World) -> Vec<Value> {
    let mut written: BTreeSet<&str> =
        world.store.of("slots").filter_map(|(_, slot)| slot["spec"]["claim"]["id"].as_str()).collect();
    let mut claims = Vec::new();
    for (_, pod) in world.store.of("pods").filter(|(_, pod)| is_ours(pod) && !is_over(pod)) {
        let id = marks::annotation(pod, labels::CLAIM).unwrap_or_default();
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let may_run =
            pod["metadata"]["deletionTimestamp"].is_null() || world.kubelets.processes.contains_key(uid);
        let Checks { claims: known, over, tampered_claims, .. } = &world.checks;
        let counts = known.contains(id) && !over.contains(id) && !tampered_claims.contains(id);
        if may_run && counts && written.insert(id) {
            claims.push(of_pod(pod));
        }
    }
    claims
}

/// The claim that a pod names, in the form of a Slot's claim. Each slot weighs as much as it has CPUs.
fn of_pod(pod: &Value) -> Value {
    let said = |name| marks::annotation(pod, name).unwrap_or_default();
    let submitter = said(labels::SUBMITTER);
    let group = submitter.rsplit_once('.').map(|(group, _)| group);
    let cpus = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str();
    let weight: f64 = cpus.and_then(|cpus| cpus.parse().ok()).unwrap_or(0.0);
    json!({"id": said(labels::CLAIM), "submitter": submitter, "accountingGroup": group, "weight": weight})
}

/// How much these claims hold of each concurrency limit.
fn shares<'a>(claims: impl Iterator<Item = &'a Value>) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for text in claims.filter_map(|claim| claim["matchedConcurrencyLimits"].as_array()).flatten() {
        let text = text.as_str().unwrap_or_default();
        let (name, amount) = text.split_once(':').unwrap_or((text, "1"));
        *sums.entry(name.to_owned()).or_insert(0.0) += amount.parse().unwrap_or(1.0);
    }
    sums
}

/// Checks that claims hold no more of a concurrency limit than there is. Only a claim that takes more than before can
/// violate that.
pub fn limited(world: &mut World, key: &Key, before: Option<&Value>) {
    let Some(slot) = world.store.get(key) else { return };
    // If the operator mends an edited Slot, the claim took its limits before the edit.
    if world.checks.tampered_slots.contains(&key.name) {
        return;
    }
    let had = shares(before.map(|slot| &slot["spec"]["claim"]).into_iter());
    let sums = shares(held_claims(world));
    let claim = &slot["spec"]["claim"];
    let at = world.checks.caps.decided(claim).unwrap_or_else(|| world.at());
    for (name, takes) in shares(std::iter::once(claim)) {
        let (sum, more) =
            (sums.get(&name).copied().unwrap_or(0.0), takes > had.get(&name).copied().unwrap_or(0.0));
        let cap = world.checks.caps.at_most(&format!("limit {name}"), at);
        if let Some(cap) = cap.filter(|cap| more && sum > cap + 1e-6) {
            world.violated(format!("claims hold {sum} of {cap} of {name}, now that {} is written", key.name));
        }
    }
}
