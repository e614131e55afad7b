//! The faults that slot types can have.

use condor_config::{Position, Severity, ValueError};

/// Something wrong with the slot types that a text defines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct Fault {
    /// A text with an error cannot be used.
    pub severity: Severity,
    /// The knob whose value is wrong.
    pub knob: String,
    /// The place in the text.
    pub position: Position,
    /// The text for people: what is wrong, and what to do. The message names the knob.
    pub message: String,
}

impl Fault {
    pub(super) fn of_value(knob: &str, error: &ValueError) -> Self {
        let message = match error {
            ValueError::Expand(error) => format!("{knob}: {}", error.fault),
            ValueError::Expression { error, .. } => format!("{knob} is no expression: {}", error.fault()),
            ValueError::Type { text, wanted, .. } => format!("{knob} is {text}, which is no {wanted}"),
            ValueError::Range { message, .. } => message.clone(),
        };
        let position = error.position().clone();
        Self { severity: Severity::Error, knob: knob.to_owned(), position, message }
    }
}

/// Why a machine cannot be divided as its types say.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Too little of the machine is left for a slot.
    #[error(
        "SLOT_TYPE_{slot_type}: slot {nth} of the type is to have {wanted} of {resource}, and the slots before it leave \
         {left}; give its slots less, or make fewer of them"
    )]
    Short {
        /// The type's number.
        slot_type: u32,
        /// Which slot of the type, from 1.
        nth: u32,
        /// Such as `Cpus`.
        resource: String,
        /// How much the slot should have.
        wanted: f64,
        /// How much is left.
        left: f64,
    },
    /// Less than one unit of a resource is left for each of the slots that share it.
    #[error(
        "slot{slot} (type {slot_type}): {left} of {resource} is left for the {among} slots that share it, less than 1 each; \
         make fewer slots, or give the others less"
    )]
    NothingToShare {
        /// The type's number; 0 if no type is defined.
        slot_type: u32,
        /// The first slot that gets nothing.
        slot: u32,
        /// Such as `Cpus`.
        resource: String,
        /// How much is left.
        left: f64,
        /// How many slots share it.
        among: u32,
    },
    /// A type gives its slots an amount of a resource that the machine does not have.
    #[error(
        "SLOT_TYPE_{slot_type} gives its slots {wanted} of {name}, which this machine does not have; a fraction of it, or \
         0, would be nothing here"
    )]
    Unknown {
        /// The type's number.
        slot_type: u32,
        /// The resource's name, as the text writes it.
        name: String,
        /// How much each slot should have.
        wanted: f64,
    },
    /// Too few of the free devices are what the type asks for.
    #[error(
        "slot{slot} (type {slot_type}) is to have {wanted} {resource}, and {found} of those that are free are what the type \
         asks for"
    )]
    NoDevice {
        /// The type's number; 0 if no type is defined.
        slot_type: u32,
        /// The slot.
        slot: u32,
        /// Such as `GPUs`.
        resource: String,
        /// How many the slot should have.
        wanted: i64,
        /// How many free devices the type's constraint admits.
        found: i64,
    },
    /// The types make more slots than a machine may have.
    #[error("{count} slots are more than the {max} that a machine can have", max = super::MAX_SLOTS)]
    TooMany {
        /// How many there would be.
        count: i64,
    },
}
