//! Slot types: how a machine is divided into slots, and how much is carved from a partitionable slot for a job.
//!
//! ```
//! use condor_config::{Host, Reader, Source};
//! use model::startd::slot_types::{MachineTotals, SlotTypes};
//!
//! let text = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = cpus=2, 50%\nSLOT_TYPE_1_PARTITIONABLE = True\nNUM_SLOTS_TYPE_2 = 2\n";
//! let config = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::new("policy", text)]).into_config()?;
//! let types = SlotTypes::read(&config).types.ok_or("the types cannot be used")?;
//! let machine = MachineTotals { cpus: 8, memory_mib: 1024, disk_kib: Some(1 << 20), swap_kib: None, custom: vec![] };
//! let slots = types.lay_out(&machine)?;
//! assert_eq!(slots.iter().map(|slot| slot.resources.cpus).collect::<Vec<_>>(), [2, 3, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | `share` | the grammar of `SLOT_TYPE_<N>`: shares of resources |
//! | `read` | reads the knobs of a configuration into [`SlotTypes`], which are independent of any machine |
//! | `totals` | the resources of a machine |
//! | `layout` | divides a machine by the startd's arithmetic: [`SlotTypes::lay_out`] |
//! | `devices` | decides which GPU, or other device with an id, goes to which slot |
//! | `requests` | how much is carved for a job: [`RequestPolicy`] |
//! | `consumption` | how much a match takes by the slot's own policy: [`ConsumptionPolicy`] |
//! | `fault` | what can be wrong: a [`Fault`] in the text, a [`Refusal`] to divide a machine |
//!
//! Source: the manual, Policy Configuration, "Dividing System Resources in Multi-core Machines" and "Configuring GPUs"; where the
//! manual is silent, the startd of HTCondor 25.14.1, whose answers `tests/commands/slot_types_oracle.rs` keeps. The arithmetic is that of
//! SLOT_CONFIG_FAILURE_MODE = ABORT: if one slot does not fit, the machine gets no slots.

mod check;
mod consumption;
mod devices;
mod fault;
mod layout;
mod read;
mod requests;
mod share;
mod totals;

pub use consumption::{
    Consumption, ConsumptionPolicy, NotConsumed, after, as_consumed, by_name, consumed, consumption, cost,
    given_back, weight_of,
};
pub use devices::Constraint;
pub use fault::{Fault, Refusal};
pub use read::Reading;
pub use requests::{Amounts, Carved, Left, NotCarved, RequestPolicy, carve_as_requested};
pub use totals::{CustomTotal, Declared, Device, MachineTotals, Quantity};

use crate::pool::Resources;
use condor_config::Config;
use share::Item;

/// The most slots of a machine. HTCondor has no bound. Here each slot is an object in the API server, and a policy could ask for
/// any number.
pub const MAX_SLOTS: u32 = 4096;

/// How a configuration divides machines. Two equal values divide every machine alike.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotTypes {
    /// The types in the order of their numbers. The slots of a machine are in the same order.
    types: Vec<SlotType>,
    reserved: Reserved,
    declared: Vec<Declared>,
}

/// A type of slots.
#[derive(Clone, Debug, PartialEq)]
struct SlotType {
    /// The `<N>` of `SLOT_TYPE_<N>`; 0 if the configuration defines no type.
    number: u32,
    count: Count,
    kind: Kind,
    items: Vec<Item>,
}

/// How many slots of a type there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Of(u32),
    /// One slot for each CPU of the machine: `NUM_SLOTS` is not set, and the slots are static.
    OneForEachCpu,
}

/// Whether dynamic slots are carved from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The slot runs one job at a time, which gets all of the slot's resources.
    Static,
    /// Each job gets a dynamic slot that is carved from this slot, as large as the job requests.
    Partitionable,
}

/// The part of every machine that the slots do not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// `RESERVED_MEMORY`, MiB.
    pub memory_mib: i64,
    /// `RESERVED_DISK`, MiB.
    pub disk_mib: i64,
}

/// A slot that the types lay out on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct LaidOutSlot {
    /// The slot's number, from 1: `slot1`.
    pub slot: u32,
    /// The `<N>` of the slot's type; 0 if the configuration defines no type.
    pub slot_type: u32,
    /// Whether dynamic slots are carved from this slot.
    pub kind: Kind,
    /// The slot's share of the CPUs, which can have a fraction: a quarter of 6 CPUs is 1.5, and a `minimal` slot has less than 1.
    pub cpus: f64,
    /// The resources that the slot offers, with the whole number of its CPUs. Custom resources and the slot's own devices are
    /// under their Kubernetes names. The slots of a machine together never have more than the machine, and no device is in two.
    pub resources: Resources,
    /// The slot's swap in KiB, if the machine's swap is known.
    pub swap_kib: Option<i64>,
}

impl SlotTypes {
    /// The part of every machine that the slots do not get.
    pub fn reserved(&self) -> Reserved {
        self.reserved
    }

    /// The custom resources that the configuration says every machine has: `MACHINE_RESOURCE_<name>`.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }
}

impl Default for SlotTypes {
    /// The division of a machine if nothing is configured: one partitionable slot with all of the machine.
    fn default() -> Self {
        let one = SlotType { number: 0, count: Count::Of(1), kind: Kind::Partitionable, items: Vec::new() };
        Self { types: vec![one], reserved: Reserved::default(), declared: Vec::new() }
    }
}

/// The name of a policy knob for slots of a type: `SLOT_TYPE_<N>_<KNOB>` if the configuration defines that name, even as empty;
/// otherwise the knob's own name.
fn of_type(config: &Config, slot_type: u32, knob: &str) -> String {
    let own = format!("SLOT_TYPE_{slot_type}_{knob}");
    if config.definition(&own).is_some() { own } else { knob.to_owned() }
}

#[cfg(test)]
mod tests;
