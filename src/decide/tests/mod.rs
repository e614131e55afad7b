//! The deciders against a world in memory: what the API server and kubelets would do, in virtual time.

mod chaos;
mod devices;
mod draining;
mod leases;
mod manual;
mod policy;
mod static_slots;
mod stories;
mod world;
