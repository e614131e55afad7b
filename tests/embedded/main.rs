//! The embedded API server and the hollow nodes, from outside.

mod hollow_nodes;
mod hollow_server;
