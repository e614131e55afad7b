//! The simulator: it runs the operator's own deciders over a pool in virtual time, to try a policy on a workload before
//! a cluster runs it. `slotwright simulate` is its command.
//!
//! [`simulate`] takes a [`Scenario`] and returns a [`Report`]. A queue of events stands in for the API server, the
//! kubelets and the agents: every effect that the deciders ask for is carried out after the scenario's latencies, and
//! told to the pool as an event.
//!
//! Invariant: the simulator decides nothing; all policy is in the crate `model`. The simulator reads no clock, file or
//! network, and starts no thread: the same scenario and seed give the same report, byte for byte.
//!
//! | file | is |
//! | --- | --- |
//! | `scenario` | the input: machines, sources of jobs, latencies |
//! | `spread` | distributions of amounts and spans |
//! | `arrivals` | when jobs are submitted |
//! | `chance` | random streams, one for each subject and purpose |
//! | `workload` | the jobs of each source, the same under every policy |
//! | `owner` | the owners of machines |
//! | `queue` | what will happen, by time |
//! | `world` | the API server, the kubelets and the agents: carries out effects and tells the pool events |
//! | `run` | the loop |
//! | `books` | a record of each proc, and counts for each submitter |
//! | `observe` | measures the pool at every sample, and makes the report |
//! | `report` | the measurements: tables, records of procs, a summary |
//! | `transitions` | the transitions of slots, with the manual's numbers |
//! | [`trace`] | reads workloads of the past |
//! | `plot` | draws plots as SVG |
//! | [`charts`] | the plots of a report |
//! | `shares` | the slot weights that submitters and groups used and deserved |
//! | [`compare`] | compares two policies over the same workload |

mod arrivals;
mod books;
mod chance;
pub mod charts;
pub mod compare;
mod number;
mod observe;
mod owner;
mod plot;
mod queue;
mod report;
mod run;
mod scenario;
mod shares;
mod spread;
pub mod trace;
mod transitions;
mod workload;
mod world;

pub use arrivals::{Arrivals, Listed, Profile};
pub use number::span;
pub use owner::{Absence, OwnerActivity, Visits, Window};
pub use plot::{Pairs, PlotError};
pub use report::{Column, JobRecord, Refused, Report, Row, Series, Summary, Table, Tally, Waits};
pub use run::simulate;
pub use scenario::{MachineGroup, Scenario, Source, Timing};
pub use spread::{BadSpread, Spread};
pub use transitions::Transitions;

#[cfg(test)]
mod tests;
