//! The negotiator: accountant, group quotas, pie spin, candidates.
//!
//! One negotiation is a pure function, [`negotiate`]. The [`Cycle`] says which submitters ask for what, which slots are
//! free and what is in use; the [`Outcome`] says which job gets which slot and why other jobs get none. Submitters, requests,
//! slots and groups are named by their index in the input, so that callers map the outcome back to their own objects.
//!
//! | file | is |
//! | --- | --- |
//! | [`accountant`] | what a submitter has used, and the priority that follows from it |
//! | [`config`] | the knobs of a cycle |
//! | `knobs` | reads the knobs from a configuration text |
//! | `constraint` | doubts about a slot constraint, of which admins are warned |
//! | [`groups`] | the tree of accounting groups and the quotas that follow from it |
//! | [`autoclusters`] | which jobs every slot treats alike |
//! | [`cycle`] | input and output of a negotiation |
//! | [`allocation`] | how much of the pool each group is given, surplus included |
//! | `surplus` | the fair share among groups |
//! | `sorting` | the order in which groups have their turns |
//! | `negotiation` | the state of one negotiation, and its steps in a pool without groups |
//! | `rounds` | the turns of all groups, and further rounds for what groups could not use |
//! | `spin` | the pie spins of one group |
//! | `pie` | shares, limits and the rounding rule |
//! | `ledger` | what submitters and groups use while a cycle goes on |
//! | `time_limits` | how long a cycle, a submitter and a turn may take |
//! | `turn` | one submitter's turn in a spin |
//! | `candidates` | which slots match a request, the best first |
//! | `order` | slots in the order in which jobs prefer them |
//! | `dynamic` | preempts several dynamic slots of one partitionable slot for one job |
//! | `rooms` | searches partitionable slots for the room that such preemption would make |
//! | `in_use` | slots in use, and which jobs may preempt the jobs there |
//! | [`Ready`] | prepared slots, kept from one cycle to the next |
//! | `consuming` | partitionable slots, of which each match takes a part |
//! | [`limits`] | concurrency limits: what jobs want of them, and what is in use |

pub use crate::pool::{accountant, limits, negotiation as config};
pub mod allocation;
pub mod autoclusters;
mod candidates;
mod constraint;
mod consuming;
pub mod cycle;
mod dynamic;
pub mod excess;
pub mod groups;
mod in_use;
mod knobs;
mod ledger;
mod negotiation;
mod order;
mod pie;
mod ready;
mod rooms;
mod rounds;
mod shares;
mod sorting;
mod spin;
mod surplus;
mod time_limits;
mod turn;

pub use allocation::{Allocation, Allocations, Demand};
pub use config::{Config, GROUP_SORT_EXPR, POST_JOB_RANK, PRE_JOB_RANK, PREEMPTION_RANK};
pub use constraint::doubts;
pub use cycle::{
    Candidate, Cycle, Match, Outcome, OwnerInput, Pie, PreemptState, RejectReason, Rejection, Request, Slice,
    Stats, SubmitterInput, negotiate, negotiate_with,
};
pub use groups::GroupInput;
pub use ready::Ready;
pub use time_limits::Stopwatch;

#[cfg(test)]
mod tests;
