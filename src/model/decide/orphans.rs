//! Pods of the pool that run under no live claim: left behind by a crash between two writes, or by a leader that lost its
//! lease with a call under way.

use super::slots::{goes, untrack};
use crate::pool::{Effect, Forced, Granted, PodFacts, Pool, Remains, Time, Vacate, VacateReason};
use crate::startd::{self, Off};

/// Books the ends of orphans that have ended, lets them go once that is recorded, and ends those that live: without a
/// claim nothing of the pool may run. Pods whose letting go failed are let go again.
pub(super) fn settle(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    let again = pool.untrack_again().into_iter();
    effects.extend(again.map(|(pod, delete)| Effect::UntrackPod { pod, delete }));
    let uids: Vec<_> = pool.orphans().keys().cloned().collect();
    for uid in uids {
        let Some(facts) = pool.orphans().get(&uid).cloned() else { continue };
        let recorded = book(pool, &facts, now);
        if facts.is_over() || is_lost(pool, &facts, now) {
            if recorded {
                let_go(pool, &facts, effects);
            }
        } else if recorded && facts.tracked && !facts.deleting && facts.remains != Remains::Ending {
            pool.orphan_deleted(&uid);
            let (pod, why) = (facts.pod.clone(), vacated(pool, &facts));
            effects.push(Effect::DeletePod { pod, slot: None, grace: None, granted: None, off: None, why });
        }
    }
}

/// Whether an orphan is over though no kubelet confirms its end: it was taken off its kubelet, and either that is at work and
/// no container was seen to run, or the machine is off and what the pod was granted is over.
fn is_lost(pool: &mut Pool, facts: &PodFacts, now: Time) -> bool {
    if facts.forced == Forced::No {
        return false;
    }
    let machine = facts.machine.as_ref().and_then(|name| pool.machines().get(name));
    match machine.map_or(Off::NodeGone, |machine| startd::off(pool, machine, now)) {
        Off::OutOfService => true,
        Off::NodeGone => {
            // An orphan is granted what its pod shows, and nothing before the pod is seen to be deleted.
            let gone_by =
                pool.orphan_granted(&facts.pod.uid).and_then(Granted::gone_by).filter(|at| *at > now);
            if let Some(gone_by) = gone_by {
                pool.wake_at(gone_by);
            }
            gone_by.is_none()
        }
        Off::No => {
            let silent = facts.machine.as_ref().is_some_and(|name| pool.heartbeats().is_silent(name, now));
            facts.forced == Forced::Idle && !silent
        }
    }
}

/// What is said of an orphan that is ended; nothing where its job's user removed the job, where the proc has ended, or where
/// the pod says already why it is disrupted.
fn vacated(pool: &Pool, facts: &PodFacts) -> Option<Vacate> {
    if facts.end.is_some() || facts.disrupted {
        return None;
    }
    pool.jobs().get(&facts.job).filter(|cluster| !cluster.removing)?;
    let message = format!("its claim {} is not known any more: nothing runs without one", facts.claim);
    Some(Vacate { reason: VacateReason::ReconnectFailed, message: message.into() })
}

/// Books how the proc of an orphan ended, if nobody did. Whether that is recorded, so that the pod may go.
///
/// An orphan without our finalizer was let go by whoever booked its end: since then anybody may have deleted it, and how the
/// pod looks now proves nothing.
fn book(pool: &mut Pool, facts: &PodFacts, now: Time) -> bool {
    let cluster = pool.jobs().get(&facts.job);
    let counts =
        facts.tracked && cluster.is_some_and(|cluster| cluster.owns(facts) && !cluster.is_done(facts.proc));
    let counts = counts && facts.remains != Remains::Ending;
    if let Some(end) = facts.end.as_ref().filter(|end| counts && end.is_final())
        && has_no_other_pod(pool, facts)
    {
        pool.proc_ended(facts, end.clone(), now);
    }
    let cluster = pool.jobs().get(&facts.job).filter(|cluster| cluster.is_done(facts.proc));
    cluster.is_none_or(|cluster| cluster.is_recorded(facts.proc))
}

/// Lets a pod go that is over.
fn let_go(pool: &mut Pool, facts: &PodFacts, effects: &mut Vec<Effect>) {
    let cluster = pool.jobs().get(&facts.job);
    let genuine = cluster.is_some_and(|cluster| cluster.owns(facts));
    let done = cluster.is_some_and(|cluster| cluster.is_done(facts.proc));
    let delete = !facts.deleting && cluster.is_none_or(|cluster| goes(cluster, facts.proc));
    pool.orphan_settled(&facts.pod.uid, &facts.job);
    // A pod that was let go already stays, unless it is in the way of the proc's next pod, which has the same name.
    if facts.tracked || (genuine && delete && !done) {
        untrack(pool, facts.pod.clone(), delete, effects);
    }
}

/// Whether the proc has no other pod, though it may be about to: then what this pod did counts.
fn has_no_other_pod(pool: &Pool, facts: &PodFacts) -> bool {
    let Some(cluster) = pool.jobs().get(&facts.job) else { return false };
    // While a job's spec is not understood, or asks for fewer procs, one may be neither idle nor active.
    cluster
        .active
        .get(&facts.proc)
        .and_then(|name| pool.slots().get(name))
        .is_none_or(|slot| slot.is_assigned() || slot.is_requested())
}
