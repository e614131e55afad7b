//! Slots that are claimed, as the negotiator sees them, and what becomes of matches with them: claims that wait until the
//! present ones have gone.
//!
//! Source: the manual, "Preemption"; the startd's side of it is in [`crate::startd::offer_claim`].

use super::gathering;
use super::negotiation::slot_ad;
use super::quotas::quotas_with;
use crate::negotiator::limits::Wants;
use crate::negotiator::{Candidate, Config};
use crate::pool::{Activation, Claim, Offer, Pool, Preemptor, Slot, SlotName, State, Time};
use crate::schedd::{self, Matched};
use crate::startd::offer_claim;
use classad::{Env, Expr, Value, symmetric_match};

/// Claimed slots that some job may have instead, as far as that can be told without looking at jobs: most pools preempt
/// nobody, and then there are none.
pub(super) fn candidates(pool: &Pool, config: &Config, env: &Env) -> Vec<(SlotName, Candidate)> {
    if !config.consider_preemption {
        return Vec::new();
    }
    let by_priority = !config.preemption_requirements.as_ref().is_some_and(is_never_true);
    let slots = pool.slots().values().filter(|slot| matches!(slot.state, State::Claimed(_)));
    let candidates = slots.filter_map(|slot| {
        let machine = pool.machines().get(&slot.name.machine)?;
        if slot.removal.is_some() || machine.offer != Offer::Offered {
            return None;
        }
        let config = pool.startd(machine);
        let rank = machine.slot_config(&config, slot.name.slot).policy.rank.as_ref();
        // A rank that is the same for all jobs is not above that of the one that runs.
        if !by_priority && rank.is_none_or(is_literal) {
            return None;
        }
        Some((slot.name.clone(), Candidate::new(slot_ad(pool, slot, env), slot.claim.weight)))
    });
    candidates.collect()
}

fn is_literal(expr: &Expr) -> bool {
    expr.as_literal().is_some()
}

fn is_never_true(expr: &Expr) -> bool {
    expr.as_literal().is_some_and(|value| !matches!(value, Value::Bool(true)))
}

/// Whether the claim that waits for a slot may go on waiting. When it may have the slot quotas, ceilings and limits are held
/// against it again, which others may have reached, or people lowered, while it waited.
pub(super) fn may_go_on(pool: &Pool, slot: &Slot, now: Time) -> bool {
    let Some(next) = &slot.preempting else { return false };
    let gone = slot.activation == Activation::Vacant;
    if next.part {
        return gathering::may_go_on(pool, &next.claim.id, gone, now);
    }
    // One that will not have the slot may be matched elsewhere.
    let machine = pool.machines().get(&slot.name.machine);
    if machine.is_none_or(|machine| machine.offer != Offer::Offered || machine.draining.is_some()) {
        return false;
    }
    if !gone {
        return true;
    }
    let Claim { submitter, group, weight, limits, negotiator, .. } = &next.claim;
    if pool.holdings().blocked_in(&slot.name, limits).is_some() {
        return false;
    }
    let quotas = quotas_with(pool, &pool.answering(negotiator), now);
    schedd::within_caps_in_place_of(&[&slot.claim], pool, submitter, group.as_ref(), *weight, &quotas)
}

/// Has a claim for a job wait for a slot that it was matched with. False where that is not so any more: the two do not match,
/// the slot likes its job better by now, or a quota or ceiling is reached.
pub(super) fn claim(pool: &mut Pool, name: &SlotName, matched: Matched, now: Time) -> bool {
    let Some(next) = preemptor(pool, name, matched, now) else { return false };
    offer_claim(pool, name, next)
}

fn preemptor(pool: &mut Pool, name: &SlotName, matched: Matched, now: Time) -> Option<Preemptor> {
    let env = Env::at(now.secs());
    let slot = pool.slots().get(name)?;
    let ad = slot_ad(pool, slot, &env);
    let cluster = pool.jobs().get(matched.job).filter(|cluster| schedd::may_start(pool, cluster))?;
    let proc = cluster.next_idle(now)?;
    let spec = cluster.spec.as_ref().filter(|spec| symmetric_match(&spec.ad, &ad, &env))?;
    let weight = slot.claim.weight;
    let (submitter, group) = (&spec.submitter, spec.group.as_ref());
    if !schedd::within_caps_in_place_of(&[&slot.claim], pool, submitter, group, weight, matched.quotas) {
        return None;
    }
    let limits = Wants::on_slot(&spec.ad, &ad, &env);
    let rank = ad.eval_attr("Rank", Some(&spec.ad), &env).as_number().unwrap_or(0.0);
    let claim = matched.claim(pool, name, proc, weight, limits, now)?;
    Some(Preemptor { claim, rank, part: false })
}
