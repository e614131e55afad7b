//! A machine's totals, and its division into slots.

use std::collections::BTreeMap;

use crate::classad::Ad;
use crate::pool::slot_types::{CustomTotal, Device, Laid, MachineTotals, SlotTypes};
use crate::pool::{
    GPUS, Machine, PODS, ResourceName, Resources, Share, SlotKind, StartdConfig, classad_name,
};

/// How a machine is laid out under a configuration.
///
/// # Errors
/// Why it cannot be.
pub(super) fn shares(machine: &Machine, config: &StartdConfig) -> Result<Vec<Share>, String> {
    // What nothing is said of is there whole, however little the pods of others leave of it.
    if config.division == SlotTypes::default() {
        return Ok(machine.undivided());
    }
    let laid = config.division.lay_out(&totals(machine)).map_err(|refusal| refusal.to_string())?;
    Ok(laid.into_iter().map(|laid| share(machine, laid)).collect())
}

/// Whether a machine can be laid out under a configuration.
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

fn declared(config: &StartdConfig) -> BTreeMap<ResourceName, i64> {
    let declared = config.division.declared().iter();
    declared.map(|declared| (declared.name.as_str().into(), declared.total().count)).collect()
}

/// Gives a machine the custom resources that its configuration says it has.
pub(super) fn declare(machine: &mut Machine, config: &StartdConfig) {
    let declared = declared(config);
    if machine.declared != declared {
        machine.declared = declared;
        machine.recount();
    }
}

/// Each slot takes one of the pods that the kubelet runs, and a partitionable slot as many as there are: they are no share
/// of anything.
fn share(machine: &Machine, laid: Laid) -> Share {
    let mut resources = laid.resources;
    if let Some((pods, count)) = machine.total.extended.get_key_value(PODS) {
        let count = if laid.kind == SlotKind::Partitionable { *count } else { 1 };
        resources.extended.insert(pods.clone(), count);
    }
    Share { slot_type: laid.slot_type, kind: laid.kind, resources, devices: laid.devices }
}

fn totals(machine: &Machine) -> MachineTotals {
    let Resources { cpus, memory_mib, disk_kib, ref extended } = machine.total;
    let swap_kib = machine.report.as_ref().and_then(|report| report.virtual_memory_kib);
    let mut custom: BTreeMap<String, CustomTotal> = BTreeMap::new();
    for (resource, count) in extended.iter().filter(|(name, _)| &***name != PODS) {
        let name = classad_name(resource);
        // Of two resources of one name the larger counts, as in the slot's ad.
        if custom.get(&name).is_none_or(|known| known.count < *count) {
            let devices = devices(machine, resource, &name, *count);
            custom.insert(
                name.clone(),
                CustomTotal { name, resource: resource.clone(), count: *count, devices },
            );
        }
    }
    MachineTotals { cpus, memory_mib, disk_kib, swap_kib, custom: custom.into_values().collect() }
}

/// The devices of a resource: those that the agent reports, or GPUs as the node's labels describe them. Those are all alike,
/// and have no names but their places.
fn devices(machine: &Machine, resource: &str, name: &str, count: i64) -> Vec<Device> {
    let reported = machine.report.iter().flat_map(|report| &report.devices);
    let devices: Vec<Device> = reported
        .filter(|device| &*device.resource == resource)
        .map(|device| {
            let mut properties = Ad::new();
            for (name, expr) in &device.properties {
                properties.insert(&**name, expr.clone());
            }
            Device { id: device.id.to_string(), properties }
        })
        .collect();
    if !devices.is_empty() || name != GPUS {
        return devices;
    }
    let properties = gpu_properties(&machine.facts.labels);
    if properties.is_empty() {
        return devices;
    }
    (0..count).map(|n| Device { id: format!("GPU-{n}"), properties: properties.clone() }).collect()
}

/// What GPU feature discovery's labels say of the GPUs of a node, as `condor_gpu_discovery` names it.
pub(super) fn gpu_properties(labels: &BTreeMap<String, String>) -> Ad {
    let mut properties = Ad::new();
    let label = |name: &str| labels.get(&format!("nvidia.com/{name}"));
    if let Some(product) = label("gpu.product") {
        properties.set("DeviceName", product.as_str());
    }
    if let Some(memory) = label("gpu.memory").and_then(|text| text.parse::<i64>().ok()) {
        properties.set("GlobalMemoryMb", memory);
    }
    let number = |name: &str| label(name).and_then(|text| text.parse::<u16>().ok());
    if let Some(major) = number("gpu.compute.major") {
        let version = format!("{major}.{}", number("gpu.compute.minor").unwrap_or(0));
        properties.set("Capability", version.parse().unwrap_or(f64::from(major)));
    }
    if let Some(major) = number("cuda.runtime.major") {
        let minor = i64::from(number("cuda.runtime.minor").unwrap_or(0));
        properties.set("MaxSupportedVersion", i64::from(major) * 1000 + minor * 10);
    }
    properties
}
