//! Tests of the state machine of slots, transition by transition.

mod claimed;
mod laws;
mod pods;
mod rules;
pub mod scene;
mod without_claim;
