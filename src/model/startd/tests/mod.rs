//! The state machine, transition by transition.

mod claimed;
mod laws;
pub mod scene;
mod standing;
