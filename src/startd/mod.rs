//! The startd's part: what machines offer, carving, the slot ad, and the state machine.
//!
//! Source: the manual's policy chapter, "Machine States and Transitions", and its transition numbers.

mod ad;
mod carve;
pub mod config;
mod draining;
mod machines;
mod step;
mod transitions;
mod unclaimed;

pub use ad::{claimed_slot_ad, keep_slot_ad, machine_ad, unclaimed_slot_ad, whole_slot_ad};
pub use carve::{Carving, carve, quantized, slot_weight};
pub use machines::review_machine;
pub use step::{Chore, MATCH_TIMEOUT, Step, View, next};
pub use transitions::{
    BUSY_TO_IDLE, BUSY_TO_RETIRING, CLAIMED_IDLE_TO_BUSY, CLAIMED_IDLE_TO_PREEMPTING, MATCHED_TO_CLAIMED,
    MATCHED_TO_OWNER, OWNER_TO_UNCLAIMED, RETIRING_TO_PREEMPTING, Transition, UNCLAIMED_TO_MATCHED,
    UNCLAIMED_TO_OWNER, VACATING_TO_OWNER, take,
};
