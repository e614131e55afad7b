//! Pods of the pool that run under no live claim: left behind by a crash between two writes, or by a leader that lost its
//! lease with a call under way.

use super::slots::goes;
use crate::pool::{Effect, End, PodFacts, Pool, Time, pod_name};

/// Books the ends of orphans that have ended, lets them go once that is recorded, and ends those that live: without a
/// claim nothing of the pool may run.
pub(super) fn settle(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    let uids: Vec<_> = pool.orphans.keys().cloned().collect();
    for uid in uids {
        let Some(facts) = pool.orphans.get(&uid).cloned() else { continue };
        match &facts.end {
            Some(end) if facts.tracked => settle_ended(pool, &facts, end.clone(), now, effects),
            Some(_) => {
                pool.orphans.remove(&uid);
            }
            None if facts.tracked && !facts.deleting => {
                if let Some(orphan) = pool.orphans.get_mut(&uid) {
                    orphan.deleting = true;
                }
                effects.push(Effect::DeletePod { pod: facts.pod, slot: None, grace: None });
            }
            None => {}
        }
    }
}

fn settle_ended(pool: &mut Pool, facts: &PodFacts, end: End, now: Time, effects: &mut Vec<Effect>) {
    let genuine = pool.jobs.get(&facts.job).is_some_and(|cluster| {
        // Anybody who may make pods in the namespace can write our labels; nobody else can.
        cluster.key.namespace == facts.pod.namespace
            && *pod_name(&cluster.key.name, facts.proc) == *facts.pod.name
            && cluster.idle.contains(facts.proc)
    });
    if genuine && matches!(end, End::Exited { .. }) {
        pool.proc_ended(facts, end, now);
    }
    let cluster = pool.jobs.get(&facts.job);
    let waits =
        cluster.is_some_and(|cluster| cluster.is_done(facts.proc) && !cluster.is_recorded(facts.proc));
    if waits {
        return;
    }
    let delete = !facts.deleting && cluster.is_none_or(|cluster| goes(cluster, facts.proc));
    pool.orphans.remove(&facts.pod.uid);
    pool.released.insert(facts.pod.uid.clone());
    pool.attention.jobs.insert(facts.job.clone());
    effects.push(Effect::ReleasePod { pod: facts.pod.clone(), delete });
}
