//! Tests on real kubelets with containerd and runc: what happens to the programs of procs, as the programs tell it
//! themselves (`make e2e-nodes`). They drive the operator through the Kubernetes API only.
//!
//! `hack/e2e-nodes.sh` starts the nodes and sets `SLOTWRIGHT_NODES` to the directory of the cluster. The tests share its
//! nodes, so that one test runs at a time. Without the nodes the tests are ignored.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states what it expects by panicking"
)]

mod agents;
mod api_calls;
mod cluster;
mod containers;
mod cordon;
mod cron;
mod daemons;
mod daemonset;
mod devices;
mod drain;
mod eviction;
mod failures;
mod fence;
mod files;
mod kill;
mod lost;
mod machine;
mod many;
mod operators;
mod program;
mod proof;
mod proof_tests;
mod report;
mod seen;
mod sharing;
mod starting;
