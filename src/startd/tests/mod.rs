//! The state machine, transition by transition.

mod claimed;
mod laws;
mod scene;
mod standing;
