//! How much to carve for a job.

use std::collections::BTreeMap;

use crate::classad::{Ad, Env, symmetric_match};
use crate::pool::slot_types::{Amounts, Left};
use crate::pool::{
    GPUS, Machine, PODS, Request, ResourceName, Resources, SlotConfig, SlotKind, Standing, classad_name,
};

/// What a match becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carving {
    /// A dynamic slot of this size.
    Slot(Resources),
    /// The job does not fit, or one of the two does not want the other (any more).
    Refused,
}

/// What a request becomes in a slot: `MODIFY_REQUEST_EXPR_*` with their defaults, `quantize(RequestCpus, {1})`,
/// `quantize(RequestMemory, {128})` and `quantize(RequestDisk, {1024})`. GPUs are asked of the node's own GPU resource.
///
/// None when the machine has no resource of a kind that is asked for.
pub fn quantized(request: &Request, machine: &Machine) -> Option<Resources> {
    let mut extended = BTreeMap::new();
    if request.gpus > 0 {
        extended.insert(machine.total.gpu_resource()?.clone(), request.gpus);
    }
    for (name, amount) in request.extended.iter().filter(|(_, amount)| **amount > 0) {
        extended.insert(machine.total.named(name)?.clone(), *amount);
    }
    if let Some((pods, _)) = machine.total.extended.get_key_value(PODS) {
        extended.insert(pods.clone(), 1);
    }
    Some(Resources {
        cpus: request.cpus,
        memory_mib: up_to_multiple(request.memory_mib, 128),
        disk_kib: up_to_multiple(request.disk_kib, 1024),
        extended,
    })
}

fn up_to_multiple(amount: i64, step: i64) -> i64 {
    let rest = amount.rem_euclid(step);
    if rest == 0 { amount } else { amount.saturating_add(step - rest) }
}

/// Carves for a job from what is left of a machine: both sides' `Requirements` are asked once more, since the match may
/// be older than what is left. How much the slot gets, the slot's `MODIFY_REQUEST_EXPR_*` make of the request; where that
/// does not fit, it gets what the job asked for, unless `MUST_MODIFY_REQUEST_EXPRS` is true.
///
/// A static slot is taken as it is.
pub fn carve(
    machine: &Machine,
    slot: &Standing,
    config: &SlotConfig,
    ad: &Ad,
    request: &Request,
    job: &Ad,
    env: &Env,
) -> Carving {
    let left = machine.available_in(slot);
    // A slot's Requirements say nothing of resources that its machine has none of.
    if !symmetric_match(job, ad, env) || quantized(request, machine).is_none() {
        return Carving::Refused;
    }
    let wanted = match slot.kind {
        SlotKind::Static => Some(slot.total.clone()),
        SlotKind::Partitionable => taken(machine, &left, config, ad, request, job, env),
    };
    wanted.filter(|wanted| wanted.fits_in(&left)).map_or(Carving::Refused, Carving::Slot)
}

/// What a dynamic slot takes of a partitionable one.
fn taken(
    machine: &Machine,
    left: &Resources,
    config: &SlotConfig,
    ad: &Ad,
    request: &Request,
    job: &Ad,
    env: &Env,
) -> Option<Resources> {
    // Disk is not managed where the node reports none.
    let managed = machine.total.disk_kib > 0;
    let room = Left {
        amounts: Amounts {
            cpus: left.cpus,
            memory_mib: left.memory_mib,
            disk_kib: if managed { left.disk_kib } else { i64::MAX },
            custom: left.by_classad_name(),
        },
        devices: BTreeMap::new(),
    };
    let taken = config.requests.take(job, ad, &room, env).ok()?.amounts;
    let mut extended = BTreeMap::new();
    for (name, amount) in taken.custom {
        extended.insert(resource_called(machine, request, &name)?, amount);
    }
    if let Some((pods, _)) = machine.total.extended.get_key_value(PODS) {
        extended.insert(pods.clone(), 1);
    }
    let disk_kib = if managed { taken.disk_kib } else { 0 };
    Some(Resources { cpus: taken.cpus, memory_mib: taken.memory_mib, disk_kib, extended })
}

/// The node's resource of a name in ads. GPUs are asked of the one that there is most of; of others of one name, of the one
/// that the job names.
fn resource_called(machine: &Machine, request: &Request, name: &str) -> Option<ResourceName> {
    if name == GPUS {
        return machine.total.gpu_resource().cloned();
    }
    let called = |resource: &&ResourceName| classad_name(resource) == name;
    let has = |resource: &&ResourceName| machine.total.extended.contains_key(*resource);
    let asked = request.extended.keys().filter(called).find(has);
    asked.or_else(|| machine.total.extended.keys().find(called)).cloned()
}

/// `SLOT_WEIGHT` of a slot of this size: what its claim costs. Not a number, or less than nothing, counts as 1, as in the
/// negotiator.
pub fn slot_weight(machine_ad: &Ad, resources: &Resources, config: &SlotConfig, env: &Env) -> f64 {
    let Some(expr) = &config.slot_weight else {
        #[allow(clippy::cast_precision_loss, reason = "no machine has 2^52 CPUs")]
        return resources.cpus as f64;
    };
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
    expr.eval(Some(&ad), None, env)
        .as_number()
        .filter(|weight| *weight >= 0.0 && weight.is_finite())
        .unwrap_or(1.0)
}

/// A dynamic slot without GPUs has none, although its machine has some.
fn machine_resource_names(ad: &Ad) -> Vec<(String, i64)> {
    let names = ad.eval_attr("MachineResources", None, &Env::at(0));
    names.as_str().unwrap_or_default().split(' ').skip(3).map(|name| (name.to_owned(), 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_rounded_up() {
        for (amount, step, rounded) in
            [(1, 128, 128), (128, 128, 128), (129, 128, 256), (0, 128, 0), (i64::MAX, 128, i64::MAX)]
        {
            assert_eq!(up_to_multiple(amount, step), rounded, "{amount}");
        }
    }
}
