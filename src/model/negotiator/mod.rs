//! The negotiator: accountant, group quotas, pie spin, candidates.
//!
//! One negotiation is a pure function, [`negotiate`]: a [`Cycle`] says who asks for what, which slots are
//! free and what is in use; the [`Outcome`] says who gets which slot and why others get none. Everything is
//! known by its index in the input, so that callers map back to their own objects.
//!
//! | file | is |
//! | --- | --- |
//! | [`accountant`] | what a submitter has used, and the priority that follows |
//! | [`config`] | the knobs of a cycle |
//! | `knobs` | the knobs, read from a configuration text |
//! | [`groups`] | the tree of accounting groups and the quotas that follow from it |
//! | [`autoclusters`] | which jobs any slot treats alike |
//! | [`cycle`] | input and output of a negotiation |
//! | [`allocation`] | what groups are given of the pool, surplus included |
//! | `surplus` | the fair share among groups |
//! | `sorting` | the order of groups |
//! | `round` | a negotiation from its input to the bill |
//! | `rounds` | group after group, and again for what is left |
//! | `spin` | the pie spins of one group |
//! | `pie` | shares, limits and the rounding rule |
//! | `ledger` | what is in use while a cycle goes on |
//! | `time_limits` | how long a cycle, a submitter and its turn may take |
//! | `turn` | one submitter's turn in a spin |
//! | `candidates` | which slots match a request, the best first |
//! | `order` | slots as jobs of one kind like them |
//! | `dynamic` | dynamic slots of which a job may have several at once |
//! | `rooms` | the look for room that they make |
//! | `in_use` | slots in use, and when a job may have them instead |
//! | [`Ready`] | slots made ready, kept from one cycle to the next |
//! | `consuming` | partitionable slots, of which each match takes a part |
//! | [`limits`] | what jobs want of limited things, and what is in use |

pub use crate::pool::{accountant, limits, negotiation as config};
pub mod allocation;
pub mod autoclusters;
mod candidates;
mod consuming;
pub mod cycle;
mod dynamic;
pub mod groups;
mod in_use;
mod knobs;
mod ledger;
mod order;
mod pie;
mod ready;
mod rooms;
mod round;
mod rounds;
mod sorting;
mod spin;
mod surplus;
mod time_limits;
mod turn;

pub use allocation::{Allocation, Allocations, Demand};
pub use config::{Config, GROUP_SORT_EXPR, POST_JOB_RANK, PRE_JOB_RANK, PREEMPTION_RANK};
pub use cycle::{
    Candidate, Cycle, Match, Outcome, Pie, PreemptState, RejectReason, Rejection, Request, Slice, Stats,
    SubmitterInput, negotiate, negotiate_with,
};
pub use groups::GroupInput;
pub use ready::Ready;
pub use time_limits::Watch;

#[cfg(test)]
mod tests;
