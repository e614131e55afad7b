//! A machine's totals, and its division into slots.

use std::collections::BTreeMap;

use crate::pool::slot_types::{CustomTotal, LaidOutSlot, MachineTotals, Quantity, SlotTypes};
use crate::pool::{Machine, PODS, ResourceName, Resources, Share, SlotKind, StartdConfig, classad_name};

/// The slots into which a configuration divides a machine.
///
/// # Errors
/// Why the machine cannot be divided.
pub(super) fn shares(machine: &Machine, config: &StartdConfig) -> Result<Vec<Share>, String> {
    // Without slot types the machine is one slot with everything, however little the pods outside the pool leave of it.
    if config.division == SlotTypes::default() {
        return Ok(machine.undivided());
    }
    let laid = config.division.lay_out(&totals(machine)).map_err(|refusal| refusal.to_string())?;
    Ok(laid.into_iter().map(|laid| share(machine, laid)).collect())
}

/// Whether a configuration can divide a machine; the error says why not.
pub(super) fn fits(machine: &Machine, config: &StartdConfig) -> Result<(), String> {
    if config.division == SlotTypes::default() {
        return Ok(());
    }
    if machine.declared == declared(config) {
        return shares(machine, config).map(drop);
    }
    let mut with = machine.clone();
    declare(&mut with, config);
    shares(&with, config).map(drop)
}

fn declared(config: &StartdConfig) -> BTreeMap<ResourceName, Quantity> {
    let declared = config.division.declared().iter();
    declared.map(|declared| (declared.name.as_str().into(), declared.quantity.clone())).collect()
}

/// Gives a machine the custom resources that its configuration declares.
pub(super) fn declare(machine: &mut Machine, config: &StartdConfig) {
    let declared = declared(config);
    if machine.declared != declared {
        machine.declared = declared;
        machine.recount();
    }
}

/// Makes a share of a laid-out slot. A static slot takes one of the pods that the kubelet admits, a partitionable slot
/// as many as the kubelet admits: slot types do not divide pods.
fn share(machine: &Machine, laid: LaidOutSlot) -> Share {
    let mut resources = laid.resources;
    if let Some((pods, count)) = machine.total.extended.get_key_value(PODS) {
        let count = if laid.kind == SlotKind::Partitionable { *count } else { 1 };
        resources.extended.insert(pods.clone(), count);
    }
    Share { slot_type: laid.slot_type, kind: laid.kind, resources }
}

fn totals(machine: &Machine) -> MachineTotals {
    let Resources { cpus, memory_mib, disk_kib, ref extended, .. } = machine.total;
    let disk_kib = machine.manages_disk().then_some(disk_kib);
    let swap_kib = machine.report.as_ref().and_then(|report| report.virtual_memory_kib);
    let mut custom: BTreeMap<String, CustomTotal> = BTreeMap::new();
    for (resource, count) in extended.iter().filter(|(name, _)| &***name != PODS) {
        let name = classad_name(resource);
        // If two resources have the same name, the larger counts, as in the slot's ad.
        if custom.get(&name).is_none_or(|known| known.count < *count) {
            let devices = machine.devices.get(resource).map(|devices| devices.to_vec()).unwrap_or_default();
            custom.insert(
                name.clone(),
                CustomTotal { name, resource: resource.clone(), count: *count, devices },
            );
        }
    }
    MachineTotals { cpus, memory_mib, disk_kib, swap_kib, custom: custom.into_values().collect() }
}
