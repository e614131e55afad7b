//! The startd's part: what machines offer, carving, the slot ad, and the state machine.
//!
//! Source: the manual's policy chapter, "Machine States and Transitions", and its transition numbers.

mod ad;
mod carve;
pub mod config;
mod machines;
pub mod slot_types;
mod step;
mod transitions;

pub use ad::{dynamic_slot_ad, keep_slot_ad, machine_ad, partitionable_slot_ad, whole_machine_ad};
pub use carve::{Carving, carve, quantized, slot_weight};
pub use machines::review_machine;
pub use step::{Chore, MATCH_TIMEOUT, Step, View, next};
pub use transitions::{
    BUSY_TO_IDLE, BUSY_TO_RETIRING, CLAIMED_IDLE_TO_BUSY, CLAIMED_IDLE_TO_PREEMPTING, MATCHED_TO_CLAIMED,
    MATCHED_TO_OWNER, OWNER_TO_UNCLAIMED, RETIRING_TO_PREEMPTING, Transition, UNCLAIMED_TO_MATCHED,
    UNCLAIMED_TO_OWNER, VACATING_TO_OWNER, take,
};
