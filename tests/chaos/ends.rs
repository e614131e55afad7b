//! The rules about the ends of programs: which ends an operator must count, and which ends an operator may count.
//!
//! An operator may count a proc as done or failed only if its program ended by itself: never if the program was told to
//! end. An operator must count an end that was reported before anybody asked the pod to go, if the leader was told of
//! it before. It must also count an end that is dated long before anybody asked. In all cases between these, nobody can
//! be certain, and the operator may count the end or not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::checks::{is_recorded, proc_of};
use super::kubelets::{is_ours, is_over};
use super::people;
use super::processes::{Over, Process};
use super::store::{is_deleting, meta};
use super::world::World;

/// By how many seconds the clocks of nodes may differ from the server's.
const SKEW: i64 = 60;
/// How long before an operator is told of an end it may have decided to delete the pod, in milliseconds.
const MADE_UP: u64 = 10_000;

/// Which pods ended, who was told of the ends, and which pods somebody asked to go.
#[derive(Debug, Default)]
pub struct Ends {
    /// How much of the server's history has been read.
    read: usize,
    /// The uids of pods that somebody asked to go.
    asked: BTreeSet<String>,
    /// For each pod that ended before anybody asked it to go, by uid: the leader that was told of the end, and when.
    told: BTreeMap<String, (usize, u64)>,
    /// When each operator first sent a call that asks a pod to go, by operator and the pod's uid.
    sent: BTreeMap<(usize, String), u64>,
    /// The ends that a leader was told of before anybody asked the pod to go, by the pod's uid. The leader must count
    /// each of them as long as it leads.
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

/// How the pod's main container ended, by its status; or its init container, if the main container never started.
pub fn terminated(pod: &Value) -> &Value {
    let status = &pod["status"];
    let main = &status["containerStatuses"][0]["state"]["terminated"];
    // A sidecar ends after the main container.
    if main.is_null() { &status["initContainerStatuses"][0]["state"]["terminated"] } else { main }
}

/// Notes that the kubelet reports the end of a pod's main container. `pod` is the pod before the report.
pub fn reported(world: &mut World, process: &Process, over: &Over, pod: &Value) {
    // Backfill work belongs to no proc.
    if process.job.is_empty() {
        return;
    }
    let key = (process.job.clone(), process.proc);
    if over.own {
        world.checks.ends.entry(key.clone()).or_default().push(over.code);
    }
    if over.own && !is_asked(pod) && !process.disowned {
        world.checks.certain.entry(key.clone()).or_default().push(over.code);
        world.checks.lost.remove(&key);
    } else {
        world.checks.lost.insert(key);
    }
}

/// Notes that an operator sends a call that asks a pod to go.
pub fn sets_out(world: &mut World, who: usize, uid: &str) {
    let at = world.at();
    world.checks.told.sent.entry((who, uid.to_owned())).or_insert(at);
}

/// Notes that an operator is told what a pod's status says.
pub fn tell(world: &mut World, who: usize, pod: &Value) {
    if !is_ours(pod) || is_asked(pod) || terminated(pod).is_null() || !world.checks.leads(who) {
        return;
    }
    // An operator that cannot decode the pod learns nothing from it.
    if people::is_garbled(pod) {
        return;
    }
    let at = world.at();
    world.checks.told.told.entry(meta(pod, "uid").to_owned()).or_insert((who, at));
}

/// Reads the server's new history. If a pod was asked to go after its end was reported, decides whether an operator
/// must count that end.
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
        if pod["metadata"]["deletionGracePeriodSeconds"] == 0 && !is_over(&pod) {
            forced(world, &uid, &pod);
        }
    }
}

/// Notes that a pod was deleted by force before its final phase was reported. The phase may never come, and only the phase
/// tells an eviction by the kubelet from an end by itself. So an operator need not count the pod's end.
fn forced(world: &mut World, uid: &str, pod: &Value) {
    let key = proc_of(pod);
    if !is_recorded(world, &key.0, key.1) {
        world.checks.told.owed.remove(uid);
        unsure(world, uid, key);
    }
}

/// Notes that an operator may count the end of this pod, and need not. If the kubelet has reported the end, and nothing had made it
/// uncertain before, the end is the last of the proc's certain ones.
fn unsure(world: &mut World, uid: &str, key: (String, u32)) {
    let reported = world.kubelets.processes.get(uid).is_some_and(|process| process.reported.is_some());
    let was_certain = world.checks.lost.insert(key.clone());
    if reported && was_certain {
        world.checks.certain.entry(key).or_default().pop();
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
        None => unsure(world, uid, key),
    }
}

/// Whether a pod's end is dated so long before its deletion was asked for that the two have nothing to do with each
/// other.
fn is_long_ago(pod: &Value) -> bool {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    // The kubelet's own deletion, with a grace period of 0, hides when the first deletion was. Then nothing is certain.
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().filter(|grace| *grace > 0);
    let deadline = time(&pod["metadata"]["deletionTimestamp"]);
    let asked = deadline.zip(grace).map(|(deadline, grace)| deadline.as_second() - grace);
    let ended = time(&terminated(pod)["finishedAt"]).map(Timestamp::as_second);
    // The operator's condition is dated by the operator's clock, which may be wrong by any amount.
    !is_disrupted(pod) && asked.zip(ended).is_some_and(|(asked, ended)| asked - ended > SKEW)
}

/// Forgets the ends that former leaders knew and had not recorded: their knowledge is lost.
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
