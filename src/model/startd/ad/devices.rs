//! Devices in the slot's ad: which devices the slot has, their properties, and which of them are free.
//!
//! Source: the manual, "Configuring GPUs"; for the form, the ads of HTCondor 25.14.1's startd in
//! `tests/oracle/devices.json`.

use std::collections::BTreeMap;

use super::constant;
use crate::pool::{Machine, ResourceName, Resources, Slot, classad_name};
use classad::{Ad, Expr, Value};

/// Puts into a slot's ad the devices among the resources `assigned`: `Assigned<R>`, a nested ad for each device, and the
/// properties that all of them have alike. For example `AssignedGPUs = "GPU-1,GPU-2"`,
/// `GPUs_GPU_1 = [ Id = "GPU-1"; Capability = 8.0 ]`, `GPUs_Capability = 8.0`. A device of which only the id is known has no
/// nested ad.
pub(super) fn set_assigned(ad: &mut Ad, machine: &Machine, assigned: &Resources) {
    for (resource, ids) in assigned.devices.iter().filter(|(_, ids)| !ids.is_empty()) {
        let Some(name) = name_of(machine, resource) else { continue };
        let all: Vec<&str> = ids.iter().map(|id| &**id).collect();
        ad.set(format!("Assigned{name}"), all.join(","));
        let devices: Vec<Ad> = ids.iter().map(|id| properties(machine, resource, id)).collect();
        for (attribute, expr) in in_common(&devices) {
            ad.insert(format!("{name}_{attribute}"), expr);
        }
        for (id, mut device) in ids.iter().zip(devices).filter(|(_, device)| !device.is_empty()) {
            device.set("Id", &**id);
            ad.insert(attribute_of(&name, id), Expr::literal(Value::from(device)));
        }
    }
}

/// The resources of a slot whose pod has found other devices than the slot has, with the devices that it has found. None if the
/// machine's agent does not tell. The kubelet chooses a pod's devices, also those of a resource that is only counted here.
pub(super) fn found(machine: &Machine, slot: &Slot) -> Option<Resources> {
    let report = machine.report.as_ref().filter(|_| machine.agent)?;
    let found = report.pod_devices.get(&slot.active()?.pod.uid)?;
    let mut resources = slot.resources().clone();
    let has = |resource: &ResourceName| resources.extended.get(resource).is_some_and(|amount| *amount > 0);
    let found: Vec<_> = found.iter().filter(|(resource, _)| has(resource)).collect();
    for (resource, ids) in found {
        resources.devices.insert(resource.clone(), ids.clone());
    }
    (resources != *slot.resources()).then_some(resources)
}

/// Puts `Available<R>` into the ad of a slot: a list of references to the nested ads of the free devices.
pub(super) fn set_available(ad: &mut Ad, machine: &Machine, available: &Resources) {
    for (resource, name) in counted(machine) {
        let free: Vec<String> =
            available.devices_of(resource).iter().map(|id| attribute_of(&name, id)).collect();
        ad.insert(format!("Available{name}"), constant(&format!("{{ {} }}", free.join(", "))));
    }
}

/// The machine's resources whose devices have ids, with their names in ads. If two resources have the same name in ads, only the
/// one that the name means is returned.
fn counted(machine: &Machine) -> impl Iterator<Item = (&ResourceName, String)> {
    machine.devices.keys().filter_map(|resource| Some((resource, name_of(machine, resource)?)))
}

/// The name of a resource in ads; none if another resource has this name there.
fn name_of(machine: &Machine, resource: &ResourceName) -> Option<String> {
    let name = classad_name(resource);
    (machine.total.called(&name) == Some(resource)).then_some(name)
}

/// The properties of a device. If the machine does not know the id, the device is taken to be like the machine's
/// devices of this resource, provided that all of these are alike: labels describe GPUs without their ids. Otherwise
/// the ad is empty.
fn properties(machine: &Machine, resource: &str, id: &str) -> Ad {
    let known = machine.devices.get(resource).map(|all| &**all).unwrap_or_default();
    let device = known.iter().find(|device| &*device.id == id).or_else(|| {
        let (first, others) = known.split_first()?;
        others.iter().all(|other| other.properties == first.properties).then_some(first)
    });
    device.map(|device| device.properties.clone()).unwrap_or_default()
}

/// The properties that have the same value on all devices.
fn in_common(devices: &[Ad]) -> BTreeMap<String, Expr> {
    let Some((first, others)) = devices.split_first() else { return BTreeMap::new() };
    let alike = |name: &str, expr: &Expr| others.iter().all(|other| other.get(name) == Some(expr));
    let all = first.iter().filter(|(name, expr)| alike(name.as_str(), expr));
    all.map(|(name, expr)| (name.as_str().to_owned(), expr.clone())).collect()
}

/// The name of the attribute with a device's nested ad: `GPUs_GPU_6a96bd13`.
fn attribute_of(resource: &str, id: &str) -> String {
    let id: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{resource}_{id}")
}
