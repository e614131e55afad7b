//! The startd's part: what machines offer, carving, slots' ads, and the state machine of slots.
//!
//! Source: the manual's policy chapter, "Machine States and Transitions", and its transition numbers.

mod absence;
mod ad;
mod arrival;
mod backfill;
mod carve;
pub mod config;
mod costs;
mod cron;
mod draining;
mod governing;
mod layout;
mod lease;
mod leave;
mod load;
mod machines;
mod neighbours;
pub mod policy;
pub mod retirement;
mod without_claim;
pub use crate::pool::slot_types;
mod step;
mod transitions;
mod unclaimed;
mod view;
mod wake;

pub use ad::{
    Broken, broken, claimed_slot_ad, goes_into, is_own, keep_machine_ad, keep_slot_ad, machine_ad,
    published_ad, unclaimed_slot_ad, undrained_slot_ad, whole_slot_ad,
};
pub use arrival::offer_claim;
pub use carve::{Carving, carve, claim_weight, has_room, part_of, size_for, slot_weight};
pub use costs::expect_costs;
pub use draining::keep_deadline;
pub use governing::{overlap, shadowed};
pub use lease::{SHORTEST_LEASE, claim_lease};
pub use machines::{off, review_machine};
pub use policy::rank;
pub use step::next;
pub use transitions::{
    CLAIMED_IDLE_TO_PREEMPTING, OWNER_TO_UNCLAIMED, TRANSITIONS, Transition, UNCLAIMED_TO_MATCHED,
    UNCLAIMED_TO_OWNER, take,
};
pub use unclaimed::end_benchmarks;
pub use view::{Change, Chore, Common, Grace, Off, Pace, Step, View};
pub use wake::wake;
pub use without_claim::{Surroundings, Wanted, without_claim};

#[cfg(test)]
mod tests;
