//! The operator, driven through the Kubernetes API only: against the embedded API server, or against the one that
//! `SLOTWRIGHT_TEST_KUBECONFIG` names (`make e2e`). Each test has a cluster of its own where the server is embedded, and
//! namespaces and nodes of its own otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states what it expects by panicking"
)]

mod agents;
mod backfill;
mod bad_input;
mod budget;
mod harness;
mod leader;
mod main_job;
mod manual;
mod many;
mod negotiators;
mod nodes;
mod policy_text;
mod submit_policy;
