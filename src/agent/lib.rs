//! The agent of a node: it senses what the API server does not know, and does to pods what a kubelet does not do.
//!
//! | part | does |
//! | --- | --- |
//! | `pods` | reads what the operator wants of the pool's pods: pure |
//! | `deciding` | decides what is done to a pod's processes: pure |
//! | `report` | decides what is reported, and when: pure |
//!
//! `docs/reference/agents.md` describes the objects by which the agent and the operator communicate.

pub mod cgroup;
mod deciding;
mod pods;
pub mod report;
