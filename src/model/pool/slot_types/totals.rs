//! The resources of a machine that is to be divided.

use crate::pool::{DeviceId, ResourceName};
use classad::Ad;

/// The resources of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineTotals {
    /// Whole CPUs.
    pub cpus: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Scratch space in KiB; `None` if the machine does not manage disk.
    pub disk_kib: Option<i64>,
    /// Swap in KiB, if the amount is known.
    pub swap_kib: Option<i64>,
    /// Custom resources, such as GPUs. Each name is there once.
    pub custom: Vec<CustomTotal>,
}

/// A custom resource of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTotal {
    /// The resource's name in ClassAds and in `SLOT_TYPE_<N>`: `GPUs`.
    pub name: String,
    /// The resource's name in Kubernetes, such as `nvidia.com/gpu`, and in the resources of a slot.
    pub resource: ResourceName,
    /// How many the machine has.
    pub count: i64,
    /// The devices, in the order in which slots get them; empty if they have no ids.
    pub devices: Vec<Device>,
}

/// One device of a custom resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The device's id, such as `GPU-6a96bd13`.
    pub id: DeviceId,
    /// The device's properties, such as `Capability`.
    pub properties: Ad,
}

/// A custom resource that a configuration says every machine has: `MACHINE_RESOURCE_<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The resource's name, as the text writes it.
    pub name: String,
    /// How much every machine has.
    pub quantity: Quantity,
}

/// How much there is of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number of devices without ids.
    Count(i64),
    /// The ids of the devices.
    Ids(Vec<String>),
}

impl Declared {
    /// The resource on a machine that reports nothing about it.
    pub fn total(&self) -> CustomTotal {
        CustomTotal {
            name: self.name.clone(),
            resource: self.name.as_str().into(),
            count: self.quantity.count(),
            devices: self.quantity.devices(),
        }
    }
}

impl Quantity {
    /// How many devices there are.
    pub fn count(&self) -> i64 {
        match self {
            Self::Count(count) => *count,
            Self::Ids(ids) => i64::try_from(ids.len()).unwrap_or(i64::MAX),
        }
    }

    /// The devices, without properties; none if they have no ids.
    pub fn devices(&self) -> Vec<Device> {
        match self {
            Self::Count(_) => Vec::new(),
            Self::Ids(ids) => {
                let device = |id: &String| Device { id: id.as_str().into(), properties: Ad::new() };
                ids.iter().map(device).collect()
            }
        }
    }
}
