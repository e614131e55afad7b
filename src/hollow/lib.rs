//! A Kubernetes cluster inside one process: an API server and nodes without containers. Tests run on it, and
//! `slotwright demo` uses it by default.
//!
//! - [`server`]: an API server that keeps its objects in memory and speaks the Kubernetes HTTP API to kube-rs and
//!   to kubectl.
//! - [`nodes`]: kubelets and agents that pretend to run pods, as annotations on the pods tell them. The nodes are
//!   ordinary clients, so they also work against a real API server.
//! - [`watchdog`]: an observer that watches pods and nodes through the API, and notes overcommitted nodes, procs
//!   that run twice, and pods that come back.
//!
//! Invariant: this crate knows nothing of the model (machines, slots, claims, policy) and nothing of the operator.
//! It shares with the operator only the custom resource types and labels of the crate `api`.
//!
//! Invariant: nothing here starts a container, authenticates a client, or writes to disk.

pub mod nodes;
pub mod server;
pub mod watchdog;
