//! The deciders against a world in memory: what the API server and kubelets would do, in virtual time.

mod again;
mod backfill;
mod charges;
mod defaults;
mod devices;
mod draining;
mod gathering;
mod governed;
mod invariants;
mod kubelets;
mod leases;
mod limits;
mod manual;
mod negotiator;
mod policy;
mod ranking;
mod reasons;
mod runtime_limits;
mod sensed;
mod several;
mod static_slots;
mod stories;
mod stuck;
mod world;
mod world_checks;
mod world_pods;
