//! Slotwright runs HTCondor's policy model on Kubernetes pods.
//!
//! ```text
//! API server --watch--> Event --> Pool --decide(now)--> Effect --apply--> API server
//! ```
//!
//! Rooms, in the order of their dependencies (a room knows only those above it):
//!
//! | room | is |
//! | --- | --- |
//! | [`classad`] | the ClassAd language: lexer, parser, values, compiled evaluator, functions, matchmaking |
//! | [`config`] | HTCondor's configuration language and the knobs we honour |
//! | [`api`] | the custom resources: types only |
//! | [`pool`] | the model: ids, resources, machines, slots, claims, jobs, events, effects |
//! | [`startd`] | carving, the slot ad, the state machine |
//! | [`negotiator`] | accountant, group quotas, pie spin, candidates |
//! | [`schedd`] | the job queue: procs, order, claims, activation |
//! | [`decide`] | the deciders in their order: from the pool and the time to effects |
//! | [`sim`] | the deciders over a pool in virtual time: a policy tried on a workload |
//! | [`controller`] | Kubernetes I/O: watches into events, effects into calls, leader election |
//! | [`hollow`] | an embedded API server and hollow nodes: test bed and demo, not the product |
//! | [`cli`] | what the command line does |
//!
//! `classad`, `config`, `pool`, `startd`, `schedd`, `negotiator`, `decide` and `sim` are pure: no clock, no network, no async
//! (`tests/purity.rs` holds them to it). Only shells do I/O.

pub mod api;
pub mod classad;
pub mod cli;
pub mod config;
pub mod controller;
pub mod decide;
pub mod hollow;
pub mod negotiator;
pub mod pool;
pub mod schedd;
pub mod sim;
pub mod startd;
