//! The agent of a node: it senses what the API server does not know, and does to pods what a kubelet does not do.
//!
//! `docs/reference/agents.md` describes the objects by which the agent and the operator communicate.

pub mod benchmark;
pub mod cgroup;
pub mod sense;
