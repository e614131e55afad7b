//! The state machine, transition by transition.

mod claimed;
mod laws;
mod pods;
pub mod scene;
mod standing;
