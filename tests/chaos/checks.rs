//! The invariants. They are checked on the objects that the server has.

mod machines;
mod settled;

pub use settled::unfinished;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api::labels;
use model::pool::Ranges;
use serde_json::Value;

use super::archive::{all_archived, archived};
use super::caps::{Caps, capped, limited};
use super::ends::{Ends, terminated};
use super::kubelets::{has_ended, is_backfill, is_ours, is_over, node_key};
use super::marks;
use super::plan::Class;
use super::processes::Process;
use super::store::{Key, finalizers};
use super::verbs::{Call, Verb};
use super::world::World;
use machines::{carved, pods_fit};

/// If operators make more calls than this in ten seconds, they are in a loop.
const MOST_CALLS: usize = 3000;

/// Why a program runs once more after its end. The number tells reasons of one kind apart: a program runs once more for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// A program that failed is retried, or is held and released.
    Failed(u8),
    /// Whatever its exit code, a program runs once more, or is held and released.
    Ended(u8),
}

#[derive(Debug, Default)]
pub struct Checks {
    pub violation: Option<String>,
    pub tampered_slots: BTreeSet<String>,
    pub tampered_claims: BTreeSet<String>,
    /// Procs (job uid, proc) whose pods people took away. How they ended may be lost.
    pub lost: BTreeSet<(String, u32)>,
    /// Claims that operators wrote.
    pub claims: BTreeSet<String>,
    /// The uids of Slots that an operator asked to delete: their claims are over.
    pub let_go: BTreeSet<String>,
    /// The claims of those Slots.
    pub over: BTreeSet<String>,
    /// The most CPUs that each machine ever had.
    pub most_cpus: BTreeMap<String, i64>,
    /// The quotas, ceilings and limits.
    pub caps: Caps,
    /// The exit codes of procs whose programs ended by themselves.
    pub ends: BTreeMap<(String, u32), Vec<i64>>,
    /// The exit codes of the ends that an operator must count: nobody had asked the pods to go when their kubelets reported the ends.
    pub certain: BTreeMap<(String, u32), Vec<i64>>,
    /// Who asked pods to go, and which operators were told how pods ended.
    pub told: Ends,
    calls: VecDeque<u64>,
    /// The operators that have written, in the order of their first writes.
    writers: Vec<usize>,
    pub loops: bool,
    /// Why the programs of each job run once more, by the uid of the job.
    pub again: BTreeMap<String, BTreeSet<Again>>,
    /// The most memory, in MiB, that a job's status ever recorded for a proc (job uid, proc) that went over its memory, and the
    /// generation of the spec by which it did.
    memory: BTreeMap<(String, u32), (i64, i64)>,
}

impl Checks {
    /// `behind` tells whether operators may be long behind in this run.
    pub fn new(behind: bool) -> Self {
        Self { caps: Caps::new(behind), ..Self::default() }
    }

    /// Whether this operator is the last that began to write.
    pub fn leads(&self, who: usize) -> bool {
        self.writers.last() == Some(&who)
    }

    pub fn called(&mut self, at: u64) {
        self.calls.push_back(at);
        while self.calls.front().is_some_and(|first| first + 10_000 < at) {
            self.calls.pop_front();
        }
        self.loops |= self.calls.len() > MOST_CALLS;
    }
}

pub fn proc_of(pod: &Value) -> (String, u32) {
    let proc = marks::label(pod, labels::PROC).and_then(|text| text.parse().ok()).unwrap_or(0);
    (marks::label(pod, labels::JOB_UID).unwrap_or_default().to_owned(), proc)
}

fn job_of<'a>(world: &'a World, uid: &str) -> Option<&'a Arc<Value>> {
    world.store.of("htcjobs").map(|(_, job)| job).find(|job| job["metadata"]["uid"] == uid)
}

/// The procs that somebody removed, as a job's status records them.
pub fn removed(job: &Value) -> Ranges {
    Ranges::parse(job["status"]["removedProcs"].as_str().unwrap_or_default()).unwrap_or_default()
}

/// Whether a job's status records that the run of a pod is over, after which the proc runs again.
fn is_counted(world: &World, pod: &Value) -> bool {
    let (uid, proc) = proc_of(pod);
    let run = marks::annotation(pod, labels::RUN).and_then(|run| run.parse::<u64>().ok());
    let entry = |job: &Value| {
        let runs = job["status"]["runs"].as_array().into_iter().flatten();
        let of_proc = |runs: &&Value| {
            Ranges::parse(runs["procs"].as_str().unwrap_or_default()).is_ok_and(|procs| procs.contains(proc))
        };
        runs.into_iter().find(of_proc).and_then(|runs| runs["starts"].as_u64())
    };
    job_of(world, &uid).and_then(|job| entry(job)) > run
}

/// The procs that ended well, and those that ended otherwise, as a job's status records them.
pub fn recorded(job: &Value) -> (Ranges, Ranges) {
    let read =
        |field: &str| Ranges::parse(job["status"][field].as_str().unwrap_or_default()).unwrap_or_default();
    (read("completedProcs"), read("failedProcs"))
}

pub fn is_recorded(world: &World, uid: &str, proc: u32) -> bool {
    job_of(world, uid).is_none_or(|job| {
        let (well, ill) = recorded(job);
        well.contains(proc) || ill.contains(proc) || removed(job).contains(proc)
    })
}

/// Excuses a call that takes effect long after its caller hung up. No operator can have known of it, so that the
/// invariants do not count what it does to a proc or a claim. Everything must settle all the same.
pub fn excuse(world: &mut World, call: &Call) {
    world.coverage.fault("ghost of a call");
    world.note(|| format!("the ghost of a call: {:?} {}", call.verb, call.key.name));
    match call.key.kind {
        "pods" if call.verb == Verb::Create => {
            if is_ours(&call.body) {
                world.checks.lost.insert(proc_of(&call.body));
            }
            let claim = call.body["metadata"]["annotations"][labels::CLAIM].as_str().unwrap_or_default();
            world.checks.tampered_claims.insert(claim.to_owned());
            let node = call.body["spec"]["nodeName"].as_str().unwrap_or_default();
            if let Some(machine) = world.kubelets.machines.get_mut(node) {
                machine.crowded = true;
            }
        }
        "slots" if call.sub.is_empty() => {
            world.checks.tampered_slots.insert(call.key.name.clone());
            if let Some(claim) = call.body["spec"]["claim"]["id"].as_str() {
                world.checks.tampered_claims.insert(claim.to_owned());
            }
            world.tamper(&call.key);
        }
        _ => {}
    }
}

/// Checks a call before it takes effect.
pub fn before(world: &mut World, class: Class, call: &Call) {
    match class {
        Class::CreatePod => claim_first(world, call),
        Class::DeleteSlot => {
            claim_outlives(world, &call.key, None);
            if let Some(slot) = world.store.get(&call.key) {
                world.checks.let_go.insert(slot["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
                let claim = slot["spec"]["claim"]["id"].as_str().map(str::to_owned);
                world.checks.over.extend(claim);
            }
        }
        Class::PatchSlot if call.verb == Verb::Patch && !is_stale(world, call) => {
            let next = call.body["spec"]["claim"].clone();
            claim_outlives(world, &call.key, Some(&next));
        }
        Class::UntrackPod => end_first(world, call),
        Class::DeletePod => {
            certain_first(world, call);
            give_up(world, call);
        }
        Class::AddJobFinalizer => {
            pods_first(world, call);
            all_archived(world, call);
        }
        Class::Tell if call.body["reason"] == "MatchRefused" => {
            world.violated(format!("a match is refused twice in a row: {}", call.body["note"]));
        }
        _ => {}
    }
}

/// Whether the call names a version of the object that is not the present one, so that the server refuses it.
fn is_stale(world: &World, call: &Call) -> bool {
    let version = call.body["metadata"]["resourceVersion"].as_str();
    let found = world.store.get(&call.key);
    let now = found.as_ref().and_then(|object| object["metadata"]["resourceVersion"].as_str());
    version.is_some() && version != now
}

/// Checks what a call did, after it has taken effect.
pub fn after(world: &mut World, class: Class, call: &Call, before: Option<Arc<Value>>) {
    let old = before.clone();
    let at = world.at();
    world.checks.caps.done(call, at);
    match class {
        Class::CreateSlot | Class::PatchSlot => {
            let slot = world.store.get(&call.key);
            let id = slot.and_then(|slot| slot["spec"]["claim"]["id"].as_str().map(str::to_owned));
            let new = id.is_some_and(|id| world.checks.claims.insert(id));
            carved(world, &call.key);
            // The caps count for a new claim. If somebody deleted the Slot of a claim, the operator makes the Slot
            // again, whatever the caps are by then.
            if new {
                capped(world, &call.key);
            }
            if new || before.is_some() {
                limited(world, &call.key, before.as_deref());
            }
        }
        Class::CreatePod => {
            pods_fit(world, &call.key);
            let pod = world.store.get(&call.key).filter(|pod| is_ours(pod));
            let id = pod.and_then(|pod| marks::annotation(&pod, labels::CLAIM).map(str::to_owned));
            if id.is_some_and(|id| world.checks.claims.insert(id)) {
                capped(world, &call.key);
            }
        }
        Class::JobStatus => {
            only_more(world, &call.key, before);
            archived(world, &call.key);
            remember_memory(world, &call.key);
        }
        Class::SlotStatus => pledged(world, &call.key, before),
        _ => {}
    }
    let object = world.store.get(&call.key);
    world.coverage.saw(call, old.as_deref(), object.as_deref());
}

/// Checks that the claim of a new pod is written before, unless a new leader can learn all about the claim from the pod. That
/// is so for a dynamic slot without devices.
fn claim_first(world: &mut World, call: &Call) {
    if world.store.get(&call.key).is_some() || is_backfill(&call.body) {
        return;
    }
    let id = call.body["metadata"]["annotations"][labels::CLAIM].as_str().unwrap_or_default().to_owned();
    if world.checks.tampered_claims.contains(&id) {
        return;
    }
    let (job, proc) = proc_of(&call.body);
    // Somebody may have made up another Slot with a copy of the claim, which does not count.
    let claims = world.store.of("slots").map(|(_, slot)| &slot["spec"]["claim"]);
    let of_job = claims.filter(|claim| claim["id"] == id.as_str() && claim["job"]["uid"] == job.as_str());
    // A claim that takes concurrency limits is written for each proc, and another claim for each job.
    let limited =
        |claim: &Value| claim["matchedConcurrencyLimits"].as_array().is_some_and(|limits| !limits.is_empty());
    let written: Vec<bool> = of_job
        .filter(|claim| claim["proc"] == proc || !limited(claim))
        .map(|claim| claim["proc"] == proc)
        .collect();
    let said = marks::annotation(&call.body, labels::SLOT).unwrap_or_default();
    let dynamic = said.split('@').next().is_some_and(|slot| slot.contains('_'));
    let requests = &call.body["spec"]["containers"][0]["resources"]["requests"];
    let devices = requests.as_object().is_some_and(|requests| requests.keys().any(|name| name.contains('/')));
    let plain = dynamic && !devices && !takes_limits(world, &job);
    if written.is_empty() && !plain {
        world.violated(format!("the pod {} is made before its claim {id} is written for it", call.key.name));
    }
    if written == [false] {
        world.coverage.used_again();
        nothing_left(world, &id, &job, &format!("the claim {id} passes to {}", call.key.name));
    }
    if is_recorded(world, &job, proc) && job_of(world, &job).is_some() {
        world.violated(format!("the pod {} is made, though its proc is recorded as done", call.key.name));
    }
}

/// Whether a job's procs take concurrency limits.
fn takes_limits(world: &World, job: &str) -> bool {
    let limits = job_of(world, job).and_then(|job| job["spec"]["concurrencyLimits"].as_array());
    limits.is_some_and(|limits| !limits.is_empty())
}

/// Checks that a claim does not end before the end of its pod is recorded. `next` is the claim that follows on the
/// slot, if there is one.
fn claim_outlives(world: &mut World, slot: &Key, next: Option<&Value>) {
    let Some(found) = world.store.get(slot) else { return };
    let claim = &found["spec"]["claim"];
    let Some(id) = claim["id"].as_str().map(str::to_owned) else { return };
    let ours = world.checks.claims.contains(&id);
    if !ours || world.checks.tampered_claims.contains(&id) || world.checks.tampered_slots.contains(&slot.name)
    {
        return;
    }
    let stays =
        next.is_some_and(|next| next["id"] == claim["id"] && next["job"]["uid"] == claim["job"]["uid"]);
    if stays {
        return;
    }
    let job = claim["job"]["uid"].as_str().unwrap_or_default().to_owned();
    nothing_left(world, &id, &job, &format!("the claim {id} on {} ends", slot.name));
}

/// Checks that no pod of a job lives under a claim, and that the ends of its pods are recorded. `what` says what may then
/// happen to the claim.
fn nothing_left(world: &mut World, claim: &str, job: &str, what: &str) {
    let of_claim =
        |pod: &Value| marks::annotation(pod, labels::CLAIM) == Some(claim) && proc_of(pod).0 == job;
    let pods: Vec<(String, Value)> = world
        .store
        .of("pods")
        .filter(|(_, pod)| of_claim(pod))
        .map(|(key, pod)| (key.name.clone(), (**pod).clone()))
        .collect();
    super::ends::forget(world);
    for (name, pod) in pods {
        if lives(world, &pod) {
            world.violated(format!("{what}, and its pod {name} lives"));
        } else if ended_by_itself(world, &pod) && !unrecorded_is_fine(world, &pod) {
            world.violated(format!("{what} before the end of {name} is recorded"));
        }
    }
}

/// Whether a pod's program runs, or its object allows that it may still begin. A grace period of 0 does not prove that
/// a program has ended: only the kubelet says so. A program whose end is shown does not begin again, once nothing runs beside it any more.
fn lives(world: &World, pod: &Value) -> bool {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let process = world.kubelets.processes.get(uid);
    let runs = process.is_some_and(|process| process.alive && !process.disowned);
    let over = !terminated(pod).is_null() && process.is_some_and(|process| !process.may_run());
    runs || (!has_ended(pod) && !over && pod["metadata"]["deletionGracePeriodSeconds"] != 0)
}

/// Whether the pod's program ended by itself while nothing but the tracking finalizer keeps the pod.
fn ended_by_itself(world: &World, pod: &Value) -> bool {
    let tracked = finalizers(pod).iter().any(|name| name == labels::TRACKING_FINALIZER);
    // The proc's entry in `ends` may be about an earlier program. So this pod's own program must have ended by
    // itself.
    let process = world.kubelets.processes.get(pod["metadata"]["uid"].as_str().unwrap_or_default());
    tracked
        && process.and_then(|process| process.over.as_ref()).is_some_and(|over| over.own)
        && world.checks.ends.contains_key(&proc_of(pod))
        && pod["status"]["reason"].is_null()
        && !terminated(pod).is_null()
}

fn unrecorded_is_fine(world: &World, pod: &Value) -> bool {
    let (job, proc) = proc_of(pod);
    is_recorded(world, &job, proc)
        || (world.checks.again.contains_key(&job) && is_counted(world, pod))
        || world.checks.lost.contains(&(job, proc))
}

/// Checks that the tracking finalizer is taken off a pod only after the pod's end is recorded.
fn end_first(world: &mut World, call: &Call) {
    let key = &call.key;
    let Some(pod) = world.store.get(key) else { return };
    // A call that was sent long ago may mean an earlier pod of this name. The server refuses it.
    let meant = call.body["metadata"]["uid"] == pod["metadata"]["uid"];
    if !meant || !is_ours(&pod) || finalizers(&pod).is_empty() {
        return;
    }
    super::ends::forget(world);
    if lives(world, &pod) {
        world.violated(format!("the pod {} is let go while it lives", key.name));
    } else if ended_by_itself(world, &pod) && !unrecorded_is_fine(world, &pod) {
        world.violated(format!("the pod {} is let go before its end is recorded", key.name));
    }
}

/// Checks that a pod is deleted by force only if it is certain that its program does not run.
fn certain_first(world: &mut World, call: &Call) {
    let Some(pod) = world.store.get(&call.key) else { return };
    let uid = call.body["preconditions"]["uid"].as_str();
    if call.body["gracePeriodSeconds"] != 0 || uid != pod["metadata"]["uid"].as_str() {
        return;
    }
    let process = uid.and_then(|uid| world.kubelets.processes.get(uid));
    // If the Node was deleted, nobody else deletes its pods. Other checks find a program that still runs then.
    let runs = |process: &Process| process.alive && world.store.get(&node_key(&process.node)).is_some();
    if process.is_some_and(|process| runs(process) && !process.disowned) {
        world.violated(format!("the pod {} is deleted by force while it runs", call.key.name));
    }
}

/// Checks that a job's finalizer is taken off only after its pods have ended.
fn pods_first(world: &mut World, call: &Call) {
    let Some(job) = world.store.get(&call.key) else { return };
    let version = call.body["metadata"]["resourceVersion"].as_str();
    let stale = version != job["metadata"]["resourceVersion"].as_str();
    let holds = |object: &Value| finalizers(object).iter().any(|name| name == labels::JOB_FINALIZER);
    if stale || !holds(&job) || holds(&call.body) {
        return;
    }
    let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
    let alive = world.store.of("pods").find(|(_, pod)| proc_of(pod).0 == uid && lives(world, pod));
    if let Some((pod, _)) = alive {
        let text = format!("the job {} is let go while its pod {} lives", call.key.name, pod.name);
        world.violated(text);
    }
}

/// Checks that operators lead one after another: once another operator has written, the earlier one never writes again.
pub fn writes(world: &mut World, who: usize) {
    match world.checks.writers.iter().position(|writer| *writer == who) {
        Some(n) if n + 1 == world.checks.writers.len() => {}
        Some(_) => world.violated(format!("operator {who} writes though another leads")),
        None => world.checks.writers.push(who),
    }
}

/// Checks that an end that is recorded stays recorded.
fn only_more(world: &mut World, key: &Key, before: Option<Arc<Value>>) {
    let (Some(before), Some(now)) = (before, world.store.get(key)) else { return };
    let (old_well, old_ill) = recorded(&before);
    let (well, ill) = recorded(&now);
    let kept =
        old_well.iter().all(|proc| well.contains(proc)) && old_ill.iter().all(|proc| ill.contains(proc));
    let gone = removed(&now);
    let kept = kept && removed(&before).iter().all(|proc| gone.contains(proc));
    let both = well.iter().find(|proc| ill.contains(*proc) || gone.contains(*proc));
    let both = both.or_else(|| ill.iter().find(|proc| gone.contains(*proc)));
    if !kept {
        world.violated(format!("the job {} forgets ends: {} {}", key.name, before["status"], now["status"]));
    }
    if let Some(proc) = both {
        world.violated(format!("the job {} counts proc {proc} twice", key.name));
    }
    let uid = now["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    for (proc, good) in well.iter().map(|proc| (proc, true)).chain(ill.iter().map(|proc| (proc, false))) {
        let happened = world.checks.ends.get(&(uid.clone(), proc)).cloned().unwrap_or_default();
        if !happened.iter().any(|code| (*code == 0) == good) {
            world.violated(format!(
                "the job {} records an end of proc {proc} that never was: {happened:?}",
                key.name
            ));
        }
    }
}

/// Checks that a running job keeps its longest vacating time, and that its suspended time only grows, whoever leads.
fn pledged(world: &mut World, key: &Key, before: Option<Arc<Value>>) {
    let (Some(before), Some(now)) = (before, world.store.get(key)) else { return };
    let (old, new) = (&before["status"]["running"], &now["status"]["running"]);
    if !old.is_object() || old["podUid"] != new["podUid"] || world.checks.tampered_slots.contains(&key.name) {
        return;
    }
    let still = |running: &Value| running["suspendedSeconds"].as_i64().unwrap_or(0);
    if old["maxVacateSeconds"] != new["maxVacateSeconds"] || still(new) < still(old) {
        world.violated(format!("{} forgets of the job in it: {old} {new}", key.name));
    }
}

/// Notes that the operator deletes a pod by force before its kubelet has written a final phase. If only that phase was
/// missing, nobody knows whether the end was an eviction, and so the proc may run again.
fn give_up(world: &mut World, call: &Call) {
    let Some(pod) = world.store.get(&call.key).filter(|pod| is_ours(pod) && !is_over(pod)) else { return };
    let (job, proc) = proc_of(&pod);
    if call.body["gracePeriodSeconds"] == 0 && !is_recorded(world, &job, proc) {
        world.checks.lost.insert((job, proc));
    }
}

/// Checks a process that a kubelet starts.
pub fn started(world: &mut World, process: &Process) {
    let (job, proc) = (&process.job, process.proc);
    let name = &process.pod;
    if job.is_empty() {
        let same = |other: &Process| other.alive && !other.disowned && other.pod == *name;
        if world.kubelets.processes.values().any(same) {
            world.violated(format!("{name} does backfill work twice at a time"));
        }
        return;
    }
    let twin = world
        .kubelets
        .processes
        .values()
        .any(|other| other.alive && !other.disowned && other.job == *job && other.proc == proc);
    if twin {
        world.violated(format!("{name} runs twice at a time"));
    }
    let lost = world.checks.lost.contains(&(job.clone(), proc));
    let ends = world.checks.certain.get(&(job.clone(), proc));
    // A program runs once more for each reason that its job gives.
    let reasons = world.checks.again.get(job).cloned().unwrap_or_default();
    let may_again = |ends: &[i64]| {
        ends.len() <= reasons.len()
            && (reasons.iter().any(|reason| matches!(reason, Again::Ended(_))) || !ends.contains(&0))
    };
    let again = ends.is_some_and(|ends| !may_again(ends));
    if !lost && again {
        world.violated(format!("{name} ended by itself and is run again"));
    }
    if !lost && job_of(world, job).is_some() && is_recorded(world, job, proc) {
        world.violated(format!("{name} is recorded as done and is run again"));
    }
    if !world.ghosts && job_of(world, job).is_some_and(|job| is_held(job, proc)) {
        world.violated(format!("{name} is recorded as held and is run"));
    }
    let generation = job_of(world, job).and_then(|job| job["metadata"]["generation"].as_i64());
    let recorded = world.checks.memory.get(&(job.clone(), proc));
    let recorded = recorded.filter(|(of, _)| generation == Some(*of)).map_or(0, |(_, memory)| *memory);
    if !world.ghosts && recorded > process.memory {
        world.violated(format!("{name} has less memory than its job's status recorded"));
    }
}

/// Remembers the memory that a job's status records for procs that went over their memory. A status that forgets them is no excuse
/// for a pod with less memory, unless somebody edited the spec.
fn remember_memory(world: &mut World, key: &Key) {
    let Some(job) = world.store.get(key) else { return };
    let Some(generation) = job["metadata"]["generation"].as_i64() else { return };
    if job["status"]["observedGeneration"].as_i64() != Some(generation) {
        return;
    }
    let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
    for changed in job["status"]["transformedProcs"].as_array().into_iter().flatten() {
        let procs = changed["procs"].as_str().and_then(|procs| Ranges::parse(procs).ok()).unwrap_or_default();
        let memory =
            changed["attributes"]["RequestMemory"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        for proc in procs.iter() {
            let known = world.checks.memory.entry((uid.to_owned(), proc)).or_default();
            *known = (*known).max((generation, memory));
        }
    }
}

/// Whether the job's status says that a proc is held, and the spec, if it may release the proc, has not changed since.
fn is_held(job: &Value, proc: u32) -> bool {
    let same = job["status"]["observedGeneration"] == job["metadata"]["generation"];
    let held = job["status"]["heldProcs"].as_array().into_iter().flatten();
    // PeriodicRelease may have released the proc since, of which the status tells later. It releases no proc that a person holds.
    let releases = !job["spec"]["attributes"]["PeriodicRelease"].is_null();
    let counts = |held: &&Value| match held["code"].as_i64() {
        Some(1) => same || held["reason"] == "chaos",
        Some(3) => false,
        _ => same && !releases,
    };
    let procs = held.filter(counts).filter_map(|held| Ranges::parse(held["procs"].as_str()?).ok());
    procs.into_iter().any(|procs| procs.contains(proc))
}
