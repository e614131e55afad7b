//! Driving a slot from step to step, and doing what the steps ask for.

use std::collections::BTreeMap;

use crate::pool::{
    Activation, Cluster, Document, Effect, Offer, PodPlan, PodRef, Pool, Record, Release, Retention, Slot,
    SlotName, State, Time, Vacate, VacateReason,
};
use crate::schedd;
use crate::startd::{self, Chore, Step, View};

/// More steps than any slot takes at one time: a loop in the table would end here instead of never.
const MOST_STEPS: usize = 32;

/// Takes a slot as far as it goes now.
pub(super) fn drive(pool: &mut Pool, name: &SlotName, now: Time, effects: &mut Vec<Effect>) {
    let mut changed = false;
    for _ in 0..MOST_STEPS {
        let Some(slot) = pool.slots.get(name) else { return };
        match startd::next(slot, view(pool, slot, now)) {
            Step::Rest => break,
            Step::Take(transition, why) => {
                if let Some(slot) = pool.slots.get_mut(name) {
                    changed |= startd::take(slot, transition, why, now);
                }
            }
            Step::Do(chore) => perform(pool, name, &chore, now, effects),
        }
    }
    // A slot whose pod is about to be made is Busy in a moment: telling that it is Idle would cost a write for each proc.
    let passing = pool.slots.get(name).is_some_and(|slot| {
        matches!(slot.state, State::Matched | State::Owner)
            || matches!(slot.activation, Activation::Assigned | Activation::Requested)
    });
    if changed && !passing {
        pool.stale.insert(Document::Slot(name.clone()));
    }
}

fn view(pool: &Pool, slot: &Slot, now: Time) -> View {
    let cluster = pool.jobs.get(&slot.claim.job.uid);
    let proc = slot.claim.proc;
    View {
        offered: pool.machines.get(&slot.name.machine).is_some_and(|machine| machine.offer == Offer::Offered),
        wanted: cluster.is_some_and(|cluster| {
            cluster.active.get(&proc) == Some(&slot.name)
                && schedd::may_start(pool, cluster)
                && still_counted(cluster, proc)
        }),
        settled: cluster.is_none_or(|cluster| !cluster.is_done(proc) || cluster.is_recorded(proc)),
        now,
    }
}

fn still_counted(cluster: &Cluster, proc: u32) -> bool {
    cluster.spec.as_ref().is_some_and(|spec| proc < spec.count)
}

fn perform(pool: &mut Pool, name: &SlotName, chore: &Chore, now: Time, effects: &mut Vec<Effect>) {
    match chore {
        Chore::WriteClaim => write_claim(pool, name, effects),
        Chore::CreatePod => create_pod(pool, name, effects),
        Chore::Withdraw => schedd::withdraw(pool, name),
        Chore::DeletePod { force } => delete_pod(pool, name, *force, effects),
        Chore::ReleasePod => release_pod(pool, name, effects),
        Chore::FindWork => find_work(pool, name, now),
        Chore::DeleteClaim => delete_claim(pool, name, effects),
        Chore::GiveBack => {
            schedd::withdraw(pool, name);
            pool.give_back(name, now);
        }
    }
}

fn write_claim(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let Some(slot) = pool.slots.get_mut(name) else { return };
    slot.record = Record::Writing;
    let (resources, claim) = (slot.resources.clone(), slot.claim.clone());
    let again = slot.state != State::Matched;
    effects.push(Effect::WriteSlot { slot: name.clone(), resources, claim, again });
}

fn create_pod(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let tolerations = pool
        .machines
        .get(&name.machine)
        .map(|machine| pool.startd(machine).tolerations.clone())
        .unwrap_or_default();
    let Some(slot) = pool.slots.get_mut(name) else { return };
    slot.activation = Activation::Requested;
    let claim = slot.claim.clone();
    let environment = BTreeMap::from([
        ("_CONDOR_SLOT".into(), name.to_string()),
        ("_CONDOR_JOB_ID".into(), claim.job_id()),
        ("_CONDOR_PROC".into(), claim.proc.to_string()),
    ]);
    effects.push(Effect::CreatePod(PodPlan {
        job: claim.job.clone(),
        proc: claim.proc_id(),
        slot: name.clone(),
        resources: slot.resources.clone(),
        claim,
        tolerations,
        environment,
    }));
}

fn delete_pod(pool: &mut Pool, name: &SlotName, force: bool, effects: &mut Vec<Effect>) {
    let Some(slot) = pool.slots.get_mut(name) else { return };
    // Of one that goes because its job was removed there is nothing to say: that is what its user asked for.
    let why = force.then(|| Vacate {
        reason: VacateReason::StartdShutdown,
        message: format!("the node {} is gone", name.machine).into(),
    });
    if let Activation::Active { pod, deleting, .. } = &mut slot.activation {
        *deleting = true;
        effects.push(Effect::DeletePod {
            pod: pod.clone(),
            slot: Some(name.clone()),
            grace: force.then_some(0),
            why,
        });
    }
}

fn release_pod(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    let Some(slot) = pool.slots.get_mut(name) else { return };
    let Activation::Ended { pod, deleting } = slot.activation.clone() else { return };
    slot.activation = Activation::Vacant;
    let cluster = pool.jobs.get(&slot.claim.job.uid);
    let delete = !deleting && cluster.is_none_or(|cluster| goes(cluster, slot.claim.proc));
    // What is gone already needs no letting go.
    if !pool.vanished.remove(&pod.uid) {
        let_go(pool, pod, delete, effects);
    }
}

/// Lets a pod go, and keeps that in mind until it is seen.
pub(super) fn let_go(pool: &mut Pool, pod: PodRef, delete: bool, effects: &mut Vec<Effect>) {
    let release = Release { pod: pod.clone(), delete, again: false };
    pool.released.insert(pod.uid.clone(), release);
    effects.push(Effect::ReleasePod { pod, delete });
}

/// Whether a proc's pod goes once it is let go. One that was evicted must: the proc's next pod has the same name.
pub(super) fn goes(cluster: &Cluster, proc: u32) -> bool {
    if cluster.removing || !cluster.is_done(proc) {
        return true;
    }
    match cluster.spec.as_ref().map(|spec| spec.retention).unwrap_or_default() {
        Retention::Keep => false,
        Retention::KeepFailed => cluster.succeeded.contains(proc),
        Retention::Delete => true,
    }
}

fn find_work(pool: &mut Pool, name: &SlotName, now: Time) {
    if let Some((job, proc)) = schedd::find_work(pool, name, now) {
        if let Some(slot) = pool.slots.get_mut(name) {
            slot.removal = None;
        }
        schedd::assign(pool, name, &job, proc);
    } else if let Some(slot) = pool.slots.get_mut(name) {
        startd::take(
            slot,
            &startd::CLAIMED_IDLE_TO_PREEMPTING,
            "the schedd has nothing more for the claim",
            now,
        );
    }
}

/// The claim is over; what it holds returns once its object is gone.
fn delete_claim(pool: &mut Pool, name: &SlotName, effects: &mut Vec<Effect>) {
    schedd::withdraw(pool, name);
    let Some(slot) = pool.slots.get_mut(name) else { return };
    slot.record = Record::Deleting;
    let claim = slot.claim.id.clone();
    pool.expect_gone(name, &claim);
    pool.stale.remove(&Document::Slot(name.clone()));
    effects.push(Effect::DeleteSlot { slot: name.clone(), claim: Some(claim) });
}
