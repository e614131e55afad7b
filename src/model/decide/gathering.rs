//! Makes a claim of a match with a partitionable slot that has too little left: several dynamic slots make room for the
//! claim, and then its own slot is carved.
//!
//! Source: the manual, "Dynamic Provisioning: Partitionable and Dynamic Slots": "the dynamic slots are preempted, such
//! that their resources are returned to the partitionable slot for use by the new job".

use super::negotiation::slot_ad;
use super::quotas::Moment;
use crate::pool::{
    Claim, ClaimId, JobSpec, Machine, MachineName, NegotiatorId, Offer, Pool, Resources, Slot, SlotName,
    State, Time,
};
use crate::schedd::{self, Matched, Place, Refusal};
use crate::startd::{Carving, carve, claim_weight, unclaimed_slot_ad};
use classad::{Ad, Env};

/// The room that a job gets once some dynamic slots have gone.
struct Room<'p> {
    /// The dynamic slots that must go, each with its `RANK` for the job.
    slots: Vec<(&'p Slot, f64)>,
    /// The partitionable slot's ad without these dynamic slots.
    ad: Ad,
    resources: Resources,
    weight: f64,
}

/// Lets a claim for a job wait until these dynamic slots have gone, or those of them that are still needed. Refused if
/// the match does not hold any more: some slots have gone or rank their jobs higher, or a quota, ceiling or limit is
/// reached.
pub(super) fn claim(
    pool: &mut Pool,
    parent: &SlotName,
    slots: &[SlotName],
    matched: Matched,
    now: Time,
) -> Result<(), Refusal> {
    let env = Env::at(now.secs());
    let machine = pool.machines().get(&parent.machine).filter(|machine| may_gather(machine, parent));
    let machine = machine.ok_or(Refusal::Unavailable)?;
    if !schedd::waits(pool, matched, now) {
        return Err(Refusal::NothingWaits);
    }
    let spec = matched.spec(pool).cloned().ok_or(Refusal::NothingWaits)?;
    let preemptible = slots.iter().filter_map(|name| preemptible(pool, name, &spec, &env)).collect();
    let Room { slots, ad, resources, weight } =
        room(pool, machine, parent, preemptible, &spec, &matched.quotas.negotiator, &env)
            .ok_or(Refusal::TooLittle)?;
    let present: Vec<&Claim> = slots.iter().map(|(slot, _)| slot.claim()).collect();
    let terms = schedd::check(pool, matched, &ad, weight, Place::Of(&present), now)?;
    let slots: Vec<_> = slots.into_iter().map(|(slot, rank)| (slot.name().clone(), rank)).collect();
    let claim = terms.into_claim(pool, parent, matched, now).ok_or(Refusal::NothingWaits)?;
    pool.gather(claim, parent.clone(), resources, &slots);
    Ok(())
}

/// Whether a claim may wait for room on a machine.
fn may_gather(machine: &Machine, parent: &SlotName) -> bool {
    let stands = machine.machine_slots.get(&parent.slot);
    machine.offer == Offer::Offered
        && machine.draining.is_none()
        && stands.is_some_and(|slot| matches!(slot.state(), State::Unclaimed(_) | State::Backfill(_)))
}

/// The dynamic slot, with its `RANK` for the job, if the job may still preempt it: no other claim waits for it, and it
/// does not rank its own job higher.
fn preemptible<'p>(pool: &'p Pool, name: &SlotName, spec: &JobSpec, env: &Env) -> Option<(&'p Slot, f64)> {
    let slot = pool.slots().get(name)?;
    let free =
        matches!(slot.state(), State::Claimed(_)) && slot.removal().is_none() && slot.preemptor().is_none();
    let rank = slot_ad(pool, slot, env).eval_attr("Rank", Some(&spec.ad), env).as_number().unwrap_or(0.0);
    (free && rank >= slot.rank()).then_some((slot, rank))
}

/// The room that a job gets once these dynamic slots have gone, with those of the slots that must go for it. If fewer
/// are enough, the slots at the end of the list stay, which are to be preempted last.
fn room<'p>(
    pool: &Pool,
    machine: &Machine,
    parent: &SlotName,
    mut slots: Vec<(&'p Slot, f64)>,
    spec: &JobSpec,
    negotiator: &NegotiatorId,
    env: &Env,
) -> Option<Room<'p>> {
    let config = pool.startd(machine);
    let carved = |slots: &[(&Slot, f64)]| {
        let without = without(machine, slots);
        let machine_slot = without.machine_slots.get(&parent.slot)?;
        let own = without.slot_config(&config, parent.slot);
        let ad = unclaimed_slot_ad(&without, machine_slot, &config);
        match carve(&without, machine_slot, own, &ad, &spec.request, &spec.ad, env) {
            Carving::Slot(resources) => {
                let weight = claim_weight(pool, negotiator, &ad, &resources, own, env);
                Some((weight, resources, ad))
            }
            Carving::Refused | Carving::Unwilling => None,
        }
    };
    let (mut weight, mut resources, mut ad) = carved(&slots)?;
    for at in (0..slots.len()).rev() {
        let mut fewer = slots.clone();
        fewer.remove(at);
        if let Some(found) = carved(&fewer).filter(|_| !fewer.is_empty()) {
            (weight, resources, ad) = found;
            slots = fewer;
        }
    }
    (!slots.is_empty()).then_some(Room { slots, ad, resources, weight })
}

/// The machine as it will be when some dynamic slots have gone.
fn without(machine: &Machine, slots: &[(&Slot, f64)]) -> Machine {
    let mut machine = machine.clone();
    for (slot, _) in slots {
        machine.carved.subtract(slot.resources());
        if let Some(machine_slot) = machine.machine_slots.get_mut(&slot.name().slot) {
            machine_slot.carved.subtract(slot.resources());
            machine_slot.dynamic.retain(|id| Some(*id) != slot.name().dynamic);
        }
    }
    machine
}

/// Whether a claim that waits for several slots may go on waiting. Before one of the slots goes for good, quotas,
/// ceilings and limits are checked again.
pub(super) fn may_go_on(pool: &Pool, id: &ClaimId, for_good: bool, moment: &Moment) -> bool {
    let Some(gathering) = pool.gatherings().get(id) else { return false };
    let parent = &gathering.parent;
    if !pool.machines().get(&parent.machine).is_some_and(|machine| may_gather(machine, parent))
        || !pool.has_room(gathering)
    {
        return false;
    }
    let within = || {
        let slots = gathering.slots.iter().filter_map(|name| pool.slots().get(name));
        let present: Vec<&Claim> = slots.map(Slot::claim).collect();
        let quotas = moment.quotas(pool, &gathering.claim.negotiator);
        schedd::check_again(pool, parent, &gathering.claim, Place::Of(&present), &quotas).is_ok()
    };
    !for_good || within()
}

/// Marks the gatherings on a machine, because something of the machine changed.
pub(super) fn review(pool: &mut Pool, machine: &MachineName) {
    pool.look_at_gatherings(machine);
}

/// Carves the slots of claims for which no dynamic slot has to go any more. A claim that cannot be made is negotiated
/// again.
pub(super) fn complete(pool: &mut Pool, moment: &Moment) {
    while let Some(id) = pool.next_gathering() {
        if pool.gatherings().get(&id).is_none_or(|gathering| !gathering.slots.is_empty()) {
            if !may_go_on(pool, &id, false, moment) {
                pool.end_gathering(&id);
            }
            continue;
        }
        if let Some(gathering) = pool.end_gathering(&id) {
            let quotas = moment.quotas(pool, &gathering.claim.negotiator);
            let Claim { last, regrouped, .. } = &gathering.claim;
            let job = pool.jobs().get(&last.job.uid);
            let own = job.and_then(|job| job.own_spec(last.proc)).cloned();
            let matched =
                Matched { job: &last.job.uid, own: own.as_ref(), regrouped: *regrouped, quotas: &quotas };
            // A slot that is refused is negotiated again.
            let _refused = schedd::claim_match(pool, &gathering.parent, matched, moment.now).err();
        }
    }
}
