//! Discrete-event simulation of a policy over a workload, with plots.

pub mod plot;
pub mod trace;
