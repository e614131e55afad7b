//! Orphans: pods of the pool that run without a live claim. A crash between two writes leaves them behind, or a leader
//! that lost its Lease while a call was under way.

use super::slots::{goes, untrack};
use crate::pool::{Effect, Forced, Granted, PodFacts, Pool, Remains, Time, Vacate, VacateReason};
use crate::startd::{self, Off};

/// Books the ends of orphans, takes their finalizers off once the end is recorded, and ends orphans that live: nothing
/// of the pool may run without a claim. If taking a finalizer off failed, it is tried again.
pub(super) fn settle(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    let again = pool.untrack_again().into_iter();
    effects.extend(again.map(|(pod, delete)| Effect::UntrackPod { pod, delete }));
    let (mut unsettled, mut next) = (Vec::new(), None::<Time>);
    for facts in pool.unsettled_orphans() {
        let lost = lost_at(pool, facts, now);
        // There may be thousands of pods that were deleted by force and wait for an end that nobody tells of, for as long as finalizers
        // of their users keep them. None of them is copied.
        if facts.end.is_some() || !facts.deleting || lost.is_some_and(|at| at <= now) {
            unsettled.push(facts.clone());
        }
        next = [next, lost.filter(|at| *at > now)].into_iter().flatten().min();
    }
    if let Some(at) = next {
        pool.wake_at(at);
    }
    for facts in unsettled {
        let uid = facts.pod.uid.clone();
        let recorded = book(pool, &facts, now);
        if facts.is_over() || lost_at(pool, &facts, now).is_some_and(|at| at <= now) {
            if recorded {
                let_go(pool, &facts, now, effects);
            }
        } else if recorded && facts.tracked && !facts.deleting && facts.remains != Remains::Ending {
            pool.orphan_deleted(&uid);
            let (pod, why) = (facts.pod.clone(), vacated(pool, &facts));
            effects.push(Effect::DeletePod { pod, slot: None, grace: None, granted: None, off: None, why });
        }
    }
}

/// When an orphan is over although no kubelet confirms its end: it was deleted by force, and either no node has the pod, or its kubelet
/// works and no container was seen to run, or its machine is off and the time that the pod was granted is over. `None` as long as nothing
/// says that the orphan is over.
fn lost_at(pool: &Pool, facts: &PodFacts, now: Time) -> Option<Time> {
    if facts.forced == Forced::No {
        return None;
    }
    let Some(name) = &facts.machine else {
        // The machine of a pod that cannot be decoded is not known.
        return if facts.requests.is_unknown() { Some(gone_by(pool, facts, now)) } else { Some(now) };
    };
    match pool.machines().get(name).map_or(Off::NodeGone, |machine| startd::off(pool, machine, now)) {
        Off::OutOfService => Some(now),
        Off::NodeGone => Some(gone_by(pool, facts, now)),
        Off::No => (facts.forced == Forced::Idle && !pool.heartbeats().is_silent(name, now)).then_some(now),
    }
}

/// When the time is over that an orphan was granted: the grace period that the pod shows, and nothing before the pod is seen to be
/// deleted.
fn gone_by(pool: &Pool, facts: &PodFacts, now: Time) -> Time {
    pool.orphan_granted(&facts.pod.uid).and_then(Granted::gone_by).unwrap_or(now)
}

/// The reason that is written on an orphan that is ended; `None` if its user removed the job, if its proc has ended, or
/// if the pod says already why it is disrupted.
fn vacated(pool: &Pool, facts: &PodFacts) -> Option<Vacate> {
    if facts.end.is_some() || facts.disrupted {
        return None;
    }
    pool.jobs().get(&facts.job).filter(|job| !job.removing)?;
    let message = format!("its claim {} is not known any more: nothing runs without one", facts.claim);
    Some(Vacate { reason: VacateReason::ReconnectFailed, message: message.into() })
}

/// Books how the proc of an orphan ended, if nobody has. Returns whether that end is recorded, so that the pod may go.
///
/// If an orphan has no finalizer, whoever booked its end took the finalizer off. Since then anybody may have deleted
/// the pod, so that its present status proves nothing.
fn book(pool: &mut Pool, facts: &PodFacts, now: Time) -> bool {
    let job = pool.jobs().get(&facts.job);
    let counts = facts.tracked && job.is_some_and(|job| job.owns(facts) && !job.is_done(facts.proc));
    let counts = counts && facts.remains != Remains::Ending;
    if let Some(end) = facts.end.as_ref().filter(|end| counts && end.is_final())
        && has_no_other_pod(pool, facts)
    {
        pool.proc_ended(facts, end.clone(), now);
    }
    pool.jobs().get(&facts.job).is_none_or(|job| job.is_settled(facts.proc))
}

/// Takes the finalizer off a pod that is over.
fn let_go(pool: &mut Pool, facts: &PodFacts, now: Time, effects: &mut Vec<Effect>) {
    let job = pool.jobs().get(&facts.job);
    let genuine = job.is_some_and(|job| job.owns(facts));
    let done = job.is_some_and(|job| job.is_done(facts.proc));
    let delete = !facts.deleting && job.is_none_or(|job| goes(job, facts.proc));
    pool.orphan_settled(&facts.pod.uid, &facts.job, now);
    // A pod without the finalizer stays, unless it blocks the name of the proc's next pod.
    if facts.tracked || (genuine && delete && !done) {
        untrack(pool, facts.pod.clone(), delete, effects);
    }
}

/// Whether the proc has no other pod, though one may be about to be created. Then the end of this pod counts.
fn has_no_other_pod(pool: &Pool, facts: &PodFacts) -> bool {
    let Some(job) = pool.jobs().get(&facts.job) else { return false };
    // The proc need not be idle: while the job's spec is not valid, or has fewer procs, a proc may be neither idle
    // nor active.
    job.active
        .get(&facts.proc)
        .and_then(|name| pool.slots().get(name))
        .is_none_or(|slot| slot.is_assigned() || slot.is_requested())
}
