//! What a machine has to be divided.

use crate::pool::{DeviceId, ResourceName};
use classad::Ad;

/// What a machine has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineTotals {
    /// Whole CPUs.
    pub cpus: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Scratch space in KiB.
    pub disk_kib: i64,
    /// Swap in KiB, where it is known.
    pub swap_kib: Option<i64>,
    /// Custom resources, GPUs among them; one for a name.
    pub custom: Vec<CustomTotal>,
}

/// A custom resource of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTotal {
    /// Its name in ClassAds and in `SLOT_TYPE_<N>`: `GPUs`.
    pub name: String,
    /// Its name in Kubernetes, such as `nvidia.com/gpu`: under it a slot's resources have it.
    pub resource: ResourceName,
    /// How many there are.
    pub count: i64,
    /// Each of them in the order in which they are given away, or none where they have no names.
    pub devices: Vec<Device>,
}

/// One device of a custom resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its id, such as `GPU-6a96bd13`.
    pub id: DeviceId,
    /// Its properties, such as `Capability`.
    pub properties: Ad,
}

/// A custom resource that a configuration says every machine has: `MACHINE_RESOURCE_<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name, as it is written.
    pub name: String,
    /// How much there is of it.
    pub quantity: Quantity,
}

/// How much there is of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// So many.
    Count(i64),
    /// These.
    Ids(Vec<String>),
}

impl Declared {
    /// As a machine has it that has nothing else to say of it.
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
    /// How many.
    pub fn count(&self) -> i64 {
        match self {
            Self::Count(count) => *count,
            Self::Ids(ids) => i64::try_from(ids.len()).unwrap_or(i64::MAX),
        }
    }

    /// Which ones, where they have names. Nothing more is known of them.
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
