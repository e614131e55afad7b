//! Absent machines: whether a machine whose node went stays listed ("Absent ClassAds").

use std::sync::Arc;

use super::published_ad;
use crate::pool::{Absence, AbsentMachine, Machine, MachineName, Offer, Pool, SlotName, Time};
use classad::{Ad, Env};

/// The most bytes of ads that are kept of a machine: an object of Kubernetes has room for about 1.5 MB. The ads of some hundred
/// slots fit.
const MOST_BYTES: usize = 1 << 20;

/// Lists a machine as absent if its node went and the policy wants to see that the machine is missing.
///
/// A machine whose kubelet was silent or reported that it was not ready is one whose ad expired in HTCondor. A machine that was in
/// order until its node was deleted has invalidated its ad: only `EXPIRE_INVALIDATED_ADS` keeps that one.
pub fn review(pool: &mut Pool, name: &MachineName, now: Time) {
    let Some(machine) = pool.machines().get(name).filter(|machine| machine.offer == Offer::Gone) else {
        return;
    };
    let config = pool.startd(machine);
    let Some(absence) = &config.absence else { return };
    let in_order = machine.facts.ready && !pool.heartbeats().is_silent(name, now);
    if (in_order && !absence.in_good_order) || pool.absent(name).is_some() {
        return;
    }
    if let Some(absent) = absentee(pool, machine, absence, now) {
        pool.list_absent(absent);
    }
}

/// The machine with the ads that stay; `None` if no ad does.
fn absentee(pool: &Pool, machine: &Machine, absence: &Absence, now: Time) -> Option<AbsentMachine> {
    let since = Time::from_secs(now.secs());
    let mut room = MOST_BYTES;
    // A slot of which only a claim is known has no ad that tells anything.
    let laid_out = machine.machine_slots.values().filter(|slot| slot.slot_type.is_some());
    let slots = laid_out.filter_map(|slot| last_ad(pool, slot.name(&machine.facts.name), absence, since));
    let slots: Vec<_> = slots
        .take_while(|(_, ad)| {
            let left = room.checked_sub(ad.len());
            room = left.unwrap_or(0);
            left.is_some()
        })
        .collect();
    (!slots.is_empty()).then(|| AbsentMachine {
        name: machine.facts.name.clone(),
        since,
        until: absence.expires_after.map(|after| since + after),
        slots,
    })
}

/// A slot's last ad as the collector keeps it; `None` if `ABSENT_REQUIREMENTS` is not true of the ad.
fn last_ad(pool: &Pool, slot: SlotName, absence: &Absence, since: Time) -> Option<(SlotName, Arc<str>)> {
    let mut ad: Ad = published_ad(pool, &slot, since)?;
    let wanted = absence.requirements.eval(Some(&ad), None, &Env::at(since.secs()));
    if wanted.as_bool_equiv() != Some(true) {
        return None;
    }
    ad.set("Absent", true);
    // HTCondor writes "for ever" as the greatest 32-bit integer.
    let lifetime = absence
        .expires_after
        .map_or(i64::from(i32::MAX), |after| i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
    ad.set("ClassAdLifetime", lifetime);
    ad.set("LastHeardFrom", since.secs());
    ad.set("MyCurrentTime", since.secs());
    Some((slot, ad.to_long().into()))
}
