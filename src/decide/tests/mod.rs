//! The deciders against a world in memory: what the API server and kubelets would do, in virtual time.

mod chaos;
mod draining;
mod policy;
mod stories;
mod world;
