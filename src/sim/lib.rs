//! The simulator: the operator's own deciders over a pool in virtual time.
//!
//! It is a shell like the one of the cluster, with a queue of events in place of an API server and kubelets: what the
//! deciders ask for is answered after the scenario's latencies, and nothing is decided here. The same scenario and seed
//! give the same report, byte for byte.
//!
//! | file | is |
//! | --- | --- |
//! | [`scenario`] | what is simulated, understood and checked |
//! | [`spread`] | distributions |
//! | [`arrivals`] | when jobs are submitted |
//! | `chance` | streams of chance, one for each subject |
//! | `workload` | the jobs of each source, the same whatever the policy |
//! | `owner` | what the owners of machines do, and when machines leave |
//! | `queue` | what happens next |
//! | `world` | the API server, the kubelets, the agents: effects into events; `world/machines`: what machines do; `world/pods`: how long pods run |
//! | `books` | procs as they go |
//! | `observe` | what is measured of the pool |
//! | [`report`] | the measurements: tables and a summary |
//! | [`transitions`] | what slots did, with the manual's numbers |
//! | `run` | the loop |
//! | [`trace`] | workloads that were |
//! | [`plot`] | values over time as SVG |
//! | [`charts`] | which plots there are of a report |
//! | `shares` | what each had, and deserved while it waited |
//! | [`compare`] | two policies over the same workload |

pub mod arrivals;
mod books;
mod chance;
pub mod charts;
pub mod compare;
mod number;
mod observe;
mod owner;
pub mod plot;
mod queue;
pub mod report;
mod run;
pub mod scenario;
mod shares;
pub mod spread;
pub mod trace;
pub mod transitions;
mod workload;
mod world;

pub use arrivals::{Arrivals, Listed, Profile};
pub use number::span;
pub use owner::{Absence, OwnerActivity, Visits, Window};
pub use report::{Column, JobRecord, Refused, Report, Row, Series, Summary, Table, Tally, Waits};
pub use run::simulate;
pub use scenario::{MachineGroup, Scenario, Source, Timing};
pub use spread::{BadSpread, Spread};

#[cfg(test)]
mod tests;
