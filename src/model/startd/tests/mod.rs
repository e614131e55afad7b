//! Tests of the state machine of slots, transition by transition.

mod claimed;
mod laws;
mod pods;
pub mod scene;
mod without_claim;
