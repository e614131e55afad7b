//! Tests of the embedded API server and of the hollow nodes, through the Kubernetes API.

mod admission;
mod hollow_nodes;
mod hollow_server;
mod program;
