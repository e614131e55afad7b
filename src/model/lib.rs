//! The pool in memory, and what decides over it: HTCondor's startd, negotiator and schedd as functions of the pool and the time.
//!
//! ```text
//! Event --> Pool --decide(now)--> Effect
//! ```
//!
//! | room | is |
//! | --- | --- |
//! | [`pool`] | the model: ids, resources, machines, slots, claims, jobs, events, effects |
//! | [`startd`] | carving, the slot ad, the state machine |
//! | [`negotiator`] | accountant, group quotas, pie spin, candidates |
//! | [`schedd`] | the job queue: procs, order, claims, activation |
//! | [`decide`] | the deciders in their order: from the pool and the time to effects |
//!
//! The rooms are one crate because nearly every change of a rule touches several of them.
//!
//! Invariant: no clock, chance, file, network, thread or async, and no Kubernetes. The same pool at the same time gives the same
//! effects, byte for byte.

pub mod attributes;
mod box_map;
pub mod decide;
#[cfg(test)]
mod kit;
pub mod mistakes;
pub mod negotiator;
pub mod pool;
pub mod schedd;
pub mod startd;

pub use box_map::BoxMap;
