//! Tests that drive the operator through the Kubernetes API only. They use the embedded API server, or the real one that
//! `SLOTWRIGHT_TEST_KUBECONFIG` names (`make e2e`). Each test has an embedded server of its own. On the real server each test has
//! namespaces of its own, and deletes the nodes and pods of the test before.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states what it expects by panicking"
)]

mod agents;
mod attack;
mod backfill;
mod bad_input;
mod budget;
mod harness;
mod history;
mod leader;
mod life;
mod logs;
mod main_job;
mod manual;
mod many;
mod negotiators;
mod nodes;
mod operator;
mod owners;
mod policy_text;
mod submit_policy;
