//! Claimed slots as candidates for the negotiator; and matches with them, which become claims that wait until the
//! present claims have ended.
//!
//! Source: the manual, "Preemption"; the startd's side of it is in [`crate::startd::offer_claim`].

use super::gathering;
use super::negotiation::slot_ad;
use super::quotas::Moment;
use crate::negotiator::{Candidate, Config};
use crate::pool::{Offer, Pool, Preemptor, Slot, SlotName, State, Time};
use crate::schedd::{self, Matched, Place, Refusal};
use crate::startd::offer_claim;
use classad::{Env, Expr, Value, symmetric_match};

/// The claimed slots that some job may preempt, as far as that can be said without looking at jobs. Most pools preempt
/// nobody; for them the list is empty.
pub(super) fn candidates(pool: &Pool, config: &Config, env: &Env) -> Vec<(SlotName, Candidate)> {
    if !config.consider_preemption {
        return Vec::new();
    }
    let by_priority = !config.preemption_requirements.as_ref().is_some_and(is_never_true);
    let slots = pool.slots().values().filter(|slot| matches!(slot.state(), State::Claimed(_)));
    let candidates = slots.filter_map(|slot| {
        let machine = pool.machines().get(&slot.name().machine)?;
        // While a machine drains, a claim that waits is given up, even if the drain's START lets jobs in.
        if slot.removal().is_some() || machine.offer != Offer::Offered || machine.draining.is_some() {
            return None;
        }
        let config = pool.startd(machine);
        let rank = machine.slot_config(&config, slot.name().slot).policy.rank.as_ref();
        // A rank that is the same for all jobs is never higher than that of the running job.
        if !by_priority && rank.is_none_or(is_literal) {
            return None;
        }
        Some((slot.name().clone(), Candidate::new(slot_ad(pool, slot, env), slot.claim().weight)))
    });
    candidates.collect()
}

fn is_literal(expr: &Expr) -> bool {
    expr.as_literal().is_some()
}

fn is_never_true(expr: &Expr) -> bool {
    expr.as_literal().is_some_and(|value| !matches!(value, Value::Bool(true)))
}

/// Whether the claim that waits for a slot may go on waiting. When it could get the slot, quotas, ceilings and limits
/// are checked again: others may have used them up, or people may have lowered them, while it waited.
pub(super) fn may_go_on(pool: &Pool, slot: &Slot, moment: &Moment) -> bool {
    let Some(next) = slot.preemptor() else { return false };
    let gone = slot.is_vacant();
    if next.part {
        return gathering::may_go_on(pool, &next.claim.id, gone, moment);
    }
    // A claim that will not get the slot is given up, so that its proc may be matched elsewhere.
    let machine = pool.machines().get(&slot.name().machine);
    if machine.is_none_or(|machine| machine.offer != Offer::Offered || machine.draining.is_some()) {
        return false;
    }
    let quotas = || moment.quotas(pool, &next.claim.negotiator);
    let place = Place::Of(&[slot.claim()]);
    !gone || schedd::check_again(pool, slot.name(), &next.claim, place, &quotas()).is_ok()
}

/// Lets a claim for a job wait for the slot with which the job was matched. Refused if the match does not hold any
/// more: the two do not match, the slot ranks its present job higher by now, or a quota, ceiling or limit is reached.
pub(super) fn claim(pool: &mut Pool, name: &SlotName, matched: Matched, now: Time) -> Result<(), Refusal> {
    let next = preemptor(pool, name, matched, now)?;
    if offer_claim(pool, name, next) { Ok(()) } else { Err(Refusal::NoMatch) }
}

fn preemptor(pool: &mut Pool, name: &SlotName, matched: Matched, now: Time) -> Result<Preemptor, Refusal> {
    let env = Env::at(now.secs());
    let slot = pool.slots().get(name).ok_or(Refusal::Unavailable)?;
    let ad = slot_ad(pool, slot, &env);
    let spec = matched.spec(pool).ok_or(Refusal::NothingWaits)?;
    if !symmetric_match(&spec.ad, &ad, &env) {
        return Err(Refusal::NoMatch);
    }
    let rank = ad.eval_attr("Rank", Some(&spec.ad), &env).as_number().unwrap_or(0.0);
    let terms = schedd::check(pool, matched, &ad, slot.claim().weight, Place::Of(&[slot.claim()]), now)?;
    let claim = terms.into_claim(pool, name, matched, now).ok_or(Refusal::NothingWaits)?;
    Ok(Preemptor { claim, rank, part: false })
}
