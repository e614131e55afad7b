//! Which ends of programs an operator has to count, and which it may.
//!
//! A proc may be counted as done or failed only if its program ended by itself: never because it was told to. An end that was
//! reported before anybody asked the pod to go, and that the leader was told of before, must be counted; so must one that is
//! dated long before the asking. Of what is between nobody can be certain, and it may go either way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::checks::{is_recorded, proc_of};
use super::kubelets::is_ours;
use super::people;
use super::processes::{Over, Process};
use super::store::{is_deleting, meta};
use super::world::World;

/// By how many seconds the clocks of nodes and of the server may differ.
const SKEW: i64 = 60;
/// How long before it is told of an end an operator may have made up its mind to delete the pod, in milliseconds.
const MADE_UP: u64 = 10_000;

/// What is known of ends and of who asked pods to go.
#[derive(Debug, Default)]
pub struct Ends {
    /// How far the server's history was read.
    read: usize,
    /// Pods that somebody asked to go, by uid.
    asked: BTreeSet<String>,
    /// When a leader was told of the end of a pod that nobody had asked to go: by uid, the leader and the time.
    told: BTreeMap<String, (usize, u64)>,
    /// When operators set out first to ask a pod to go, by operator and uid.
    sent: BTreeMap<(usize, String), u64>,
    /// Ends that a leader was told of before anybody asked, and that it has to count as long as it leads.
    owed: BTreeMap<String, (usize, (String, u32))>,
}

/// Whether somebody asked the pod to go.
pub fn is_asked(pod: &Value) -> bool {
    is_deleting(pod) || is_disrupted(pod)
}

fn is_disrupted(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "DisruptionTarget" && one["status"] == "True")
}

/// How the main container ended, as the pod says, or the init container without which it never started.
pub fn terminated(pod: &Value) -> &Value {
    let status = &pod["status"];
    let main = &status["containerStatuses"][0]["state"]["terminated"];
    // A sidecar ends after the main container.
    if main.is_null() { &status["initContainerStatuses"][0]["state"]["terminated"] } else { main }
}

/// The kubelet reports that the main container of a pod has ended: `pod` is as it was before.
pub fn reported(world: &mut World, process: &Process, over: &Over, pod: &Value) {
    // Backfill work is no proc of anybody's.
    if process.job.is_empty() {
        return;
    }
    let key = (process.job.clone(), process.proc);
    if over.own {
        world.checks.ends.entry(key.clone()).or_default().push(over.code);
    }
    if over.own && !is_asked(pod) && !process.disowned {
        world.checks.lost.remove(&key);
    } else {
        world.checks.lost.insert(key);
    }
}

/// An operator sets out to ask a pod to go.
pub fn sets_out(world: &mut World, who: usize, uid: &str) {
    let at = world.at();
    world.checks.told.sent.entry((who, uid.to_owned())).or_insert(at);
}

/// An operator is told what a pod says.
pub fn tell(world: &mut World, who: usize, pod: &Value) {
    if !is_ours(pod) || is_asked(pod) || terminated(pod).is_null() || !world.checks.leads(who) {
        return;
    }
    // Whoever cannot decode the pod is told nothing.
    if people::is_garbled(pod) {
        return;
    }
    let at = world.at();
    world.checks.told.told.entry(meta(pod, "uid").to_owned()).or_insert((who, at));
}

/// Reads what was written since: of a pod that is asked to go after its end was reported, whether that end has to be counted.
pub fn read(world: &mut World) {
    let from = world.checks.told.read;
    world.checks.told.read = world.store.history.len();
    for n in from..world.store.history.len() {
        let change = &world.store.history[n];
        let gone = change.what == "DELETED";
        let pod = std::sync::Arc::clone(&change.object);
        if change.key.kind != "pods" || !is_ours(&pod) || !(gone || is_asked(&pod)) {
            continue;
        }
        let uid = meta(&pod, "uid").to_owned();
        if world.checks.told.asked.insert(uid.clone()) {
            asked(world, &uid, &pod);
        }
    }
}

fn asked(world: &mut World, uid: &str, pod: &Value) {
    let key = proc_of(pod);
    let ended = world.kubelets.processes.get(uid).is_some_and(|process| process.reported.is_some());
    if !ended || is_recorded(world, &key.0, key.1) || is_long_ago(pod) {
        return;
    }
    let told = world.checks.told.told.get(uid).copied().filter(|(who, _)| world.alive(*who));
    let certain = told.filter(|(who, at)| {
        let sent = world.checks.told.sent.get(&(*who, uid.to_owned()));
        sent.is_none_or(|sent| *sent > at + MADE_UP) && world.checks.leads(*who)
    });
    match certain {
        Some((who, _)) => drop(world.checks.told.owed.insert(uid.to_owned(), (who, key))),
        None => drop(world.checks.lost.insert(key)),
    }
}

/// Whether the end of a pod is dated so long before its deletion was asked for that it has nothing to do with that.
fn is_long_ago(pod: &Value) -> bool {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    // The kubelet's own deletion, with grace 0, hides when the first one was: nothing is certain then.
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().filter(|grace| *grace > 0);
    let deadline = time(&pod["metadata"]["deletionTimestamp"]);
    let asked = deadline.zip(grace).map(|(deadline, grace)| deadline.as_second() - grace);
    let ended = time(&terminated(pod)["finishedAt"]).map(Timestamp::as_second);
    // The operator's clock, by which its condition is dated, may be wrong by anything.
    !is_disrupted(pod) && asked.zip(ended).is_some_and(|(asked, ended)| asked - ended > SKEW)
}

/// What a leader knew and had not recorded is lost with it.
pub fn forget(world: &mut World) {
    let owed = std::mem::take(&mut world.checks.told.owed);
    for (uid, (who, key)) in owed {
        if world.alive(who) && world.checks.leads(who) {
            world.checks.told.owed.insert(uid, (who, key));
        } else if !is_recorded(world, &key.0, key.1) {
            world.checks.lost.insert(key);
        }
    }
}
