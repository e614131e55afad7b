//! Slot types: how a machine is divided into slots, and what a dynamic slot takes of a partitionable one.
//!
//! ```
//! use condor_config::{Host, Reader, Source};
//! use model::startd::slot_types::{MachineTotals, SlotTypes};
//!
//! let text = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = cpus=2, 50%\nSLOT_TYPE_1_PARTITIONABLE = True\nNUM_SLOTS_TYPE_2 = 2\n";
//! let config = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::new("policy", text)]).into_config()?;
//! let types = SlotTypes::read(&config).types.ok_or("the types cannot be used")?;
//! let machine = MachineTotals { cpus: 8, memory_mib: 1024, disk_kib: 1 << 20, swap_kib: None, custom: vec![] };
//! let slots = types.lay_out(&machine)?;
//! assert_eq!(slots.iter().map(|slot| slot.resources.cpus).collect::<Vec<_>>(), [2, 3, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | `share` | what a `SLOT_TYPE_<N>` says: shares of resources, in its own small grammar |
//! | `read` | the knobs of a configuration into [`SlotTypes`], which know no machine |
//! | `totals` | what a machine has |
//! | `layout` | the startd's arithmetic: [`SlotTypes::lay_out`] |
//! | `devices` | which GPU, or other device with a name, goes to which slot |
//! | `requests` | what a dynamic slot takes: [`RequestPolicy`] |
//! | `consumption` | what a match takes by the slot's own policy: [`ConsumptionPolicy`] |
//! | `fault` | what can be wrong: a [`Fault`] of the text, a [`Refusal`] of a machine |
//!
//! Source: the manual, Policy Configuration, "Dividing System Resources in Multi-core Machines" and "Configuring GPUs";
//! where it is silent, the startd of HTCondor 25.14.1, whose answers `tests/slot_types_oracle.rs` keeps. The arithmetic is
//! that of SLOT_CONFIG_FAILURE_MODE = ABORT: what does not fit is refused whole.

mod consumption;
mod devices;
mod fault;
mod layout;
mod read;
mod requests;
mod share;
mod totals;

pub use consumption::{
    Consumption, ConsumptionPolicy, NotConsumed, after, as_consumed, consumed, consumption, cost, given_back,
};
pub use devices::Constraint;
pub use fault::{Fault, Refusal};
pub use read::Reading;
pub use requests::{Amounts, Left, NotTaken, RequestPolicy, Taken, take_as_asked};
pub use totals::{CustomTotal, Declared, Device, MachineTotals, Quantity};

use crate::pool::Resources;
use condor_config::Config;
use share::Item;

/// How many slots a machine can have at most. HTCondor has no bound; a count is a number that anybody may write into a
/// policy, and each slot is an object.
pub const MAX_SLOTS: u32 = 4096;

/// How a configuration divides machines. Two that are equal divide every machine alike.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotTypes {
    /// In the order of their numbers, which is the order of the slots.
    types: Vec<SlotType>,
    reserved: Reserved,
    declared: Vec<Declared>,
}

/// A type of slots.
#[derive(Clone, Debug, PartialEq)]
struct SlotType {
    /// Its `<N>`; 0 where no type is defined.
    number: u32,
    count: Count,
    kind: Kind,
    items: Vec<Item>,
}

/// How many slots of a type there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Of(u32),
    /// `NUM_SLOTS` is not set, and slots are static.
    OneForEachCpu,
}

/// Whether dynamic slots are carved from a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It runs one job at a time, with all that it has.
    Static,
    /// Each job gets a dynamic slot of what it asks for.
    Partitionable,
}

/// What is not offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// `RESERVED_MEMORY`, MiB.
    pub memory_mib: i64,
    /// `RESERVED_DISK`, MiB.
    pub disk_mib: i64,
}

/// A slot of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Laid {
    /// Its number, from 1: `slot1`.
    pub slot: u32,
    /// The `<N>` of its type; 0 where no type is defined.
    pub slot_type: u32,
    /// Whether dynamic slots are carved from it.
    pub kind: Kind,
    /// Its share of the CPUs. It can have a fraction: a quarter of 6 CPUs is 1.5, and a `minimal` slot has less than one.
    pub cpus: f64,
    /// What it offers: of its CPUs the whole ones. Custom resources and the devices that are its own stand under their
    /// Kubernetes names. Over all slots of a machine it is never more than the machine has, and no device twice.
    pub resources: Resources,
    /// Its swap in KiB, where the machine's is known.
    pub swap_kib: Option<i64>,
}

impl SlotTypes {
    /// What the configuration keeps for itself of every machine.
    pub fn reserved(&self) -> Reserved {
        self.reserved
    }

    /// The custom resources that the configuration says every machine has: `MACHINE_RESOURCE_<name>`.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }
}

impl Default for SlotTypes {
    /// What a machine is that nothing is said of: one partitionable slot with everything.
    fn default() -> Self {
        let one = SlotType { number: 0, count: Count::Of(1), kind: Kind::Partitionable, items: Vec::new() };
        Self { types: vec![one], reserved: Reserved::default(), declared: Vec::new() }
    }
}

/// What a policy knob is called for slots of a type: `SLOT_TYPE_<N>_<KNOB>` where that is defined, if only as empty.
fn of_type(config: &Config, slot_type: u32, knob: &str) -> String {
    let own = format!("SLOT_TYPE_{slot_type}_{knob}");
    if config.definition(&own).is_some() { own } else { knob.to_owned() }
}

#[cfg(test)]
mod tests;
