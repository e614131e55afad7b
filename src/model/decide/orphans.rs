//! Pods of the pool that run under no live claim: left behind by a crash between two writes, or by a leader that lost its
//! lease with a call under way.

use super::slots::{goes, untrack};
use crate::pool::{Activation, Effect, End, PodFacts, Pool, Time, Vacate, VacateReason};

/// Books the ends of orphans that have ended, lets them go once that is recorded, and ends those that live: without a
/// claim nothing of the pool may run. Pods whose letting go failed are let go again.
pub(super) fn settle(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    let again = pool.untrack_again().into_iter();
    effects.extend(again.map(|(pod, delete)| Effect::UntrackPod { pod, delete }));
    let uids: Vec<_> = pool.orphans().keys().cloned().collect();
    for uid in uids {
        let Some(facts) = pool.orphans().get(&uid).cloned() else { continue };
        match &facts.end {
            Some(end) => settle_ended(pool, &facts, end.clone(), now, effects),
            None if facts.tracked && !facts.deleting => {
                pool.orphan_deleted(&uid);
                let why = vacated(pool, &facts);
                effects.push(Effect::DeletePod { pod: facts.pod, slot: None, grace: None, off: None, why });
            }
            None => {}
        }
    }
}

/// What is said of an orphan that is ended; nothing where its job's user removed the job.
fn vacated(pool: &Pool, facts: &PodFacts) -> Option<Vacate> {
    pool.jobs().get(&facts.job).filter(|cluster| !cluster.removing)?;
    let message = format!("its claim {} is not known any more: nothing runs without one", facts.claim);
    Some(Vacate { reason: VacateReason::ReconnectFailed, message: message.into() })
}

fn settle_ended(pool: &mut Pool, facts: &PodFacts, end: End, now: Time, effects: &mut Vec<Effect>) {
    let genuine = pool.jobs().get(&facts.job).is_some_and(|cluster| cluster.owns(facts));
    if genuine && matches!(end, End::Exited { .. }) && has_no_other_pod(pool, facts) {
        pool.proc_ended(facts, end, now);
    }
    let cluster = pool.jobs().get(&facts.job);
    let done = cluster.is_some_and(|cluster| cluster.is_done(facts.proc));
    if done && cluster.is_some_and(|cluster| !cluster.is_recorded(facts.proc)) {
        return;
    }
    let delete = !facts.deleting && cluster.is_none_or(|cluster| goes(cluster, facts.proc));
    pool.orphan_settled(&facts.pod.uid, &facts.job);
    // One that was let go already stays, unless it is in the way of the proc's next pod, which has the same name.
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
        .is_none_or(|slot| matches!(slot.activation, Activation::Assigned | Activation::Requested))
}
