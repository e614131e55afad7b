//! Decides how much is carved for a job.

use std::collections::BTreeMap;

use super::ad::carved_slot_ad;
use crate::pool::slot_types::{
    Amounts, Carved, Device, Left, NotConsumed, as_consumed, carve_as_requested, consumed, consumption,
};
use crate::pool::{
    DeviceId, ExtendedResources, GPUS, Machine, MachineSlot, NegotiatorId, PODS, Pool, Request, ResourceName,
    Resources, Slot, SlotConfig, SlotKind, classad_name,
};
use classad::{Ad, Env, symmetric_match};

/// The result of carving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carving {
    /// The claim gets a slot of this size.
    Slot(Resources),
    /// The job does not fit, or one of the two Requirements is not true (any more).
    Refused,
    /// The `START` of the dynamic slot itself would refuse the job: it reads the slot's size, or that the slot is
    /// dynamic.
    Unwilling,
}

/// Carves for a job from what is left of a machine. Both sides' `Requirements` are evaluated again, since the match may
/// be older than what is left. The size of the dynamic slot is what the slot's `MODIFY_REQUEST_EXPR_*` make of the
/// request. If that does not fit, the size is what the job requested, unless `MUST_MODIFY_REQUEST_EXPRS` is true. If
/// the job requests devices, the slot gets the first free ones that the job's `Require<R>` admits. Under a consumption
/// policy, the policy decides the size.
///
/// The carved slot must itself let the job in. A static slot is taken as it is.
pub fn carve(
    machine: &Machine,
    slot: &MachineSlot,
    config: &SlotConfig,
    ad: &Ad,
    request: &Request,
    job: &Ad,
    env: &Env,
) -> Carving {
    if !has_all_kinds(machine, request) {
        return Carving::Refused;
    }
    let left = machine.available_in(slot);
    let wanted = match slot.kind {
        SlotKind::Static => symmetric_match(job, ad, env).then(|| slot.total.clone()),
        SlotKind::Partitionable => {
            let taken = taken(config, ad, job, &room(machine, &left), env);
            taken.and_then(|taken| resources(machine, taken))
        }
    };
    match wanted.filter(|wanted| wanted.fits_in(&left)) {
        None => Carving::Refused,
        Some(carved) if lets_in(machine, slot, ad, &carved, job, env) => Carving::Slot(carved),
        Some(_) => Carving::Unwilling,
    }
}

/// Whether the `START` of the dynamic slot lets the job in. The slot has what the job requested.
fn lets_in(machine: &Machine, slot: &MachineSlot, ad: &Ad, carved: &Resources, job: &Ad, env: &Env) -> bool {
    let same_for_all = ad.get("Start").is_none_or(|start| start.as_literal().is_some());
    if same_for_all || slot.kind == SlotKind::Static {
        return true;
    }
    let start = carved_slot_ad(ad, machine, slot, carved).eval_attr("Start", Some(job), env);
    start.as_bool_equiv() == Some(true)
}

/// The resources that a dynamic slot takes of a partitionable slot: the amounts of the slot's consumption policy, or else the
/// request as the slot's expressions modify it. `None` if one of the two Requirements is not true, or the job does not fit.
fn taken(config: &SlotConfig, ad: &Ad, job: &Ad, room: &Left, env: &Env) -> Option<Carved> {
    match seen_by(ad, job, env) {
        Some(seen) => {
            let seen = seen.ok().filter(|seen| symmetric_match(seen, ad, env))?;
            carve_as_requested(&seen, ad, room, env).ok()
        }
        None => symmetric_match(job, ad, env).then(|| config.requests.carve(job, ad, room, env).ok())?,
    }
}

/// The job's ad as a slot with a consumption policy sees it; `None` if the slot has no such policy.
fn seen_by(ad: &Ad, job: &Ad, env: &Env) -> Option<Result<Ad, NotConsumed>> {
    let resources = consumed(ad, env)?;
    let seen = consumption(ad, &resources, job, env).map(|mut taken| {
        // A part of a KiB counts as a whole one.
        taken.entry("Disk".to_owned()).and_modify(|disk| *disk = disk.ceil());
        as_consumed(job, &taken)
    });
    Some(seen)
}

/// Whether a slot has enough left for a job. The Requirements of both sides do not count.
pub fn has_room(
    machine: &Machine,
    slot: &MachineSlot,
    config: &SlotConfig,
    ad: &Ad,
    request: &Request,
    job: &Ad,
    env: &Env,
) -> bool {
    let room = room(machine, &machine.available_in(slot));
    fitting(config, ad, job, &room, env).is_some() && has_all_kinds(machine, request)
}

/// The resources that a dynamic slot would take of a partitionable slot, without regard to the Requirements of both sides.
fn fitting(config: &SlotConfig, ad: &Ad, job: &Ad, room: &Left, env: &Env) -> Option<Carved> {
    match seen_by(ad, job, env) {
        Some(seen) => carve_as_requested(&seen.ok()?, ad, room, env).ok(),
        None => config.requests.fitting(job, ad, room, env),
    }
}

/// The size of the slot that would be carved for a job. The Requirements of both sides do not count. `None` if not enough is left.
pub fn size_for(
    machine: &Machine,
    slot: &MachineSlot,
    config: &SlotConfig,
    ad: &Ad,
    job: &Ad,
    env: &Env,
) -> Option<Resources> {
    let left = machine.available_in(slot);
    let taken = fitting(config, ad, job, &room(machine, &left), env)?;
    resources(machine, taken).filter(|size| size.fits_in(&left))
}

/// The part of a claimed slot that is a job's: the size of the job's pod. A dynamic slot may have been carved for a
/// larger job of the same claim; the part is then what would be carved out of the slot, without regard to the
/// Requirements of both sides. A static slot is the job's as a whole. `None` if the job does not fit.
///
/// `ad` is the slot's ad, without a job.
pub fn part_of(
    machine: &Machine,
    slot: &Slot,
    config: &SlotConfig,
    ad: &Ad,
    request: &Request,
    job: &Ad,
    env: &Env,
) -> Option<Resources> {
    if slot.name().dynamic.is_none() {
        return Some(slot.resources().clone());
    }
    if !has_all_kinds(machine, request) {
        return None;
    }
    let mut room = room(machine, slot.resources());
    // If the slot has none of a resource, the amount is 0, so that a request for the resource is refused instead of
    // ignored.
    for name in machine.total.by_classad_name().into_keys() {
        room.amounts.custom.entry(name).or_insert(0);
    }
    let mut whole = ad.clone();
    // Only partitionable slots have consumption policies. Here the policy divides the dynamic slot in the same way.
    whole.set("PartitionableSlot", true);
    let taken = match seen_by(&whole, job, env) {
        Some(seen) => carve_as_requested(&seen.ok()?, ad, &room, env).ok(),
        None => config.requests.fitting(job, ad, &room, env),
    };
    resources(machine, taken?).filter(|part| part.fits_in(slot.resources()))
}

/// Whether the machine counts each resource that the job requests. The job's own Requirements demand that too, so that
/// no match is made that would fail here.
fn has_all_kinds(machine: &Machine, request: &Request) -> bool {
    let asked = request.extended.iter().filter(|(_, amount)| **amount > 0);
    (request.gpus <= 0 || machine.total.called(GPUS).is_some())
        && asked.map(|(name, _)| machine.total.named(name)).all(|named| named.is_some())
}

/// The resources that are left of a machine, in the form with which requests are compared.
fn room(machine: &Machine, left: &Resources) -> Left {
    let counted = |resource: &ResourceName| machine.total.called(&classad_name(resource)) == Some(resource);
    let free = left.devices.iter().filter(|(resource, _)| counted(resource)).map(|(resource, ids)| {
        let device = |id: &DeviceId| {
            let known = machine.device(resource, id).cloned();
            known.unwrap_or_else(|| Device { id: id.clone(), properties: Ad::new() })
        };
        (classad_name(resource), ids.iter().map(device).collect())
    });
    Left {
        amounts: Amounts {
            cpus: left.cpus,
            memory_mib: left.memory_mib,
            disk_kib: if machine.manages_disk() { left.disk_kib } else { i64::MAX },
            custom: left.by_classad_name(),
        },
        devices: free.collect(),
    }
}

/// The resources that a dynamic slot takes, under the machine's names of the resources.
fn resources(machine: &Machine, taken: Carved) -> Option<Resources> {
    let (mut extended, mut devices) = (ExtendedResources::new(), BTreeMap::new());
    for (name, amount) in taken.amounts.custom {
        let resource = machine.total.called(&name)?.clone();
        if let Some(ids) = taken.devices.get(&name) {
            devices.insert(resource.clone(), ids.clone());
        }
        extended.insert(resource, amount);
    }
    if let Some((pods, _)) = machine.total.extended.get_key_value(PODS) {
        extended.insert(pods.clone(), 1);
    }
    let Amounts { cpus, memory_mib, disk_kib, .. } = taken.amounts;
    let disk_kib = if machine.manages_disk() { disk_kib } else { 0 };
    Some(Resources { cpus, memory_mib, disk_kib, extended, devices })
}

/// The cost of a claim on a slot of this size for its submitter with a negotiator: the slot's `SLOT_WEIGHT`, or 1
/// without `NEGOTIATOR_USE_SLOT_WEIGHTS`.
pub fn claim_weight(
    pool: &Pool,
    negotiator: &NegotiatorId,
    machine_ad: &Ad,
    resources: &Resources,
    config: &SlotConfig,
    env: &Env,
) -> f64 {
    if pool.uses_slot_weights(negotiator) { slot_weight(machine_ad, resources, config, env) } else { 1.0 }
}

/// `SLOT_WEIGHT` of a slot of this size: what its claim costs. As in HTCondor's negotiator, a negative or infinite
/// number counts as 1.
pub fn slot_weight(machine_ad: &Ad, resources: &Resources, config: &SlotConfig, env: &Env) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "no machine has 2^52 CPUs")]
    let cpus = resources.cpus as f64;
    let Some(expr) = &config.slot_weight else { return cpus };
    let mut ad = machine_ad.clone();
    ad.set("Cpus", resources.cpus);
    ad.set("Memory", resources.memory_mib);
    ad.set("Disk", resources.disk_kib);
    for (name, amount) in machine_resource_names(&ad) {
        ad.set(&*name, amount);
    }
    for (name, amount) in resources.by_classad_name() {
        ad.set(&*name, amount);
    }
    // As in HTCondor, a value that is no number counts as if SLOT_WEIGHT were not set.
    let Some(weight) = expr.eval(Some(&ad), None, env).as_number() else { return cpus };
    if weight >= 0.0 && weight.is_finite() { weight } else { 1.0 }
}

/// The machine's resources with an amount of 0. A dynamic slot without GPUs has none, although its machine has some.
fn machine_resource_names(ad: &Ad) -> Vec<(String, i64)> {
    let names = ad.eval_attr("MachineResources", None, &Env::at(0));
    names.as_str().unwrap_or_default().split(' ').skip(3).map(|name| (name.to_owned(), 0)).collect()
}
