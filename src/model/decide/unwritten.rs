//! Takes over pods whose claims an earlier leader had not written yet: it makes each claim again, from the pod and the job.

use super::review_machines;
use crate::pool::limits::Wants;
use crate::pool::{
    Assignment, Claim, Claimed, Effect, NegotiatorId, Offer, PODS, Phase, PodFacts, Pool, Resources, Slot,
    SlotKind, State, Time,
};
use crate::startd::{claim_weight, size_for, unclaimed_slot_ad};
use classad::Env;

/// Takes over the pods that live under claims that no object has. Does so once, when everything that existed at the start is
/// known. A pod that does not fit its job and its machine stays an orphan.
pub(super) fn adopt(pool: &mut Pool, now: Time, effects: &mut Vec<Effect>) {
    let pods = pool.take_unwritten().into_iter();
    let (unknown, known): (Vec<_>, Vec<_>) = pods.partition(|facts| facts.requests.is_unknown());
    take_over(pool, known, now);
    if !unknown.is_empty() {
        // Until now, the known pods counted against what their machines offer. These pods are in slots now, so that
        // their machines offer more: the offers are worked out anew before the other pods are taken over.
        review_machines(pool, now, effects);
        take_over(pool, unknown, now);
    }
}

fn take_over(pool: &mut Pool, pods: Vec<PodFacts>, now: Time) {
    for facts in pods {
        if let Some(slot) = slot_of(pool, &facts, now) {
            pool.adopt_pod(facts, slot, now);
        }
    }
}

/// The slot of a pod, as the leader carved it that created the pod. `None` if pod, job and machine do not fit.
fn slot_of(pool: &Pool, facts: &PodFacts, now: Time) -> Option<Slot> {
    let (name, made) = facts.claim.made_for()?;
    name.dynamic?;
    let machine = pool.machines().get(&name.machine).filter(|machine| machine.offer != Offer::Gone)?;
    (facts.machine.as_ref() == Some(&name.machine)).then_some(())?;
    let parent = machine.machine_slots.get(&name.slot).filter(|slot| slot.kind == SlotKind::Partitionable)?;
    let job = pool
        .jobs()
        .get(&facts.job)
        .filter(|job| job.owns(facts) && !job.removing && job.idle.contains(facts.proc))?;
    let spec = job.spec_of(facts.proc)?;
    let config = pool.startd(machine);
    let own = machine.slot_config(&config, name.slot);
    let (ad, env) = (unclaimed_slot_ad(machine, parent, &config), Env::at(now.secs()));
    let resources = if facts.requests.is_unknown() {
        // The pod cannot be decoded. The leader carved what the job requests.
        size_for(machine, parent, own, &ad, &spec.ad, &env).filter(Resources::is_plain)?
    } else {
        facts.slot_resources(machine.total.extended.contains_key(PODS))?
    };
    let limits = Wants::on_slot(&spec.ad, &ad, &env);
    // A claim that takes concurrency limits is written before its pod is created: the job was edited since.
    limits.is_empty().then_some(())?;
    let negotiator = pool.answering(&NegotiatorId::Unnamed);
    let weight = claim_weight(pool, &negotiator, &ad, &resources, own, &env);
    let claim = Claim {
        id: facts.claim.clone(),
        submitter: spec.submitter.clone(),
        group: spec.group.clone(),
        negotiator,
        regrouped: false,
        weight,
        limits,
        since: made.min(now),
        last: Assignment { job: job.key.clone(), cluster_id: job.cluster_id, proc: facts.proc },
    };
    let phase = Phase::starting(State::Claimed(Claimed::Idle), now);
    Some(Slot::new(name, resources, claim, phase).unwritten())
}
