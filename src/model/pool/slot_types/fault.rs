//! What can be wrong with slot types.

use condor_config::{Position, Severity, ValueError};

/// Something wrong with what a text says of slot types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct Fault {
    /// With an error, the text cannot be used.
    pub severity: Severity,
    /// The knob that it is about.
    pub knob: String,
    /// Where it is.
    pub position: Position,
    /// What is wrong, and what to do. It names the knob.
    pub message: String,
}

impl Fault {
    pub(super) fn of_value(knob: &str, error: &ValueError) -> Self {
        let message = match error {
            ValueError::Expand(error) => format!("{knob}: {}", error.fault),
            ValueError::Expression { error, .. } => {
                let (expected, found) = (error.expected(), error.found());
                format!("{knob} is no expression: expected {expected}, found {found}")
            }
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
    /// The machine has not enough left for what a slot is to have.
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
        /// How much it is to have.
        wanted: f64,
        /// How much there is.
        left: f64,
    },
    /// What is left for the slots that share what is left is less than one for each.
    #[error(
        "slot{slot} (type {slot_type}): {left} of {resource} is left for the {among} slots that share it, less than 1 each; \
         make fewer slots, or give the others less"
    )]
    NothingToShare {
        /// The type's number, 0 where no type is defined.
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
    /// A share of something that the machine does not have.
    #[error(
        "SLOT_TYPE_{slot_type} gives its slots {wanted} of {name}, which this machine does not have; a fraction of it, or \
         0, would be nothing here"
    )]
    Unknown {
        /// The type's number.
        slot_type: u32,
        /// The name, as it is written.
        name: String,
        /// How much each is to have.
        wanted: f64,
    },
    /// No free device is what the type wants.
    #[error(
        "slot{slot} (type {slot_type}) is to have {wanted} {resource}, and {found} of those that are free are what the type \
         asks for"
    )]
    NoDevice {
        /// The type's number, 0 where no type is defined.
        slot_type: u32,
        /// The slot.
        slot: u32,
        /// Such as `GPUs`.
        resource: String,
        /// How many it is to have.
        wanted: i64,
        /// How many there are.
        found: i64,
    },
    /// More slots than there may be.
    #[error("{count} slots are more than the {max} that a machine can have", max = super::MAX_SLOTS)]
    TooMany {
        /// How many there would be.
        count: i64,
    },
}
