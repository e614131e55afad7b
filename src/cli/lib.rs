//! The commands of `slotwright`, a module for each. `src/main.rs` parses the command line and calls them.
//!
//! Invariant: a command decides nothing itself: what it says of a job, a slot or a configuration comes from the same code
//! that the operator runs. Only [`operator`], [`mod@agent`] and [`demo`] open connections; all others take their input and
//! output as arguments. No command ends the process, except [`demo`] at a second Ctrl-C.
//!
//! | module | is |
//! | --- | --- |
//! | [`operator`] | runs the operator on a cluster |
//! | [`mod@agent`] | runs the agent of a node |
//! | [`guard`] | runs the guard of a node, on the host |
//! | [`demo`] | runs the operator on an embedded cluster, and judges what it did |
//! | [`classad`] | evaluates expressions, matches ads |
//! | [`config`], [`knobs`] | read HTCondor's configuration; say what its variables do here |
//! | [`lint`] | checks manifests and configuration text |
//! | [`crds`] | writes the custom resource definitions |
//! | [`quota`], [`negotiate`] | divide a pool among groups; run one negotiation cycle over ads in files |
//! | [`transform`] | applies job transforms and submit requirements to job ads |
//! | [`submit`] | prints what a submit file makes |
//! | [`simulate`] | tries a policy on a workload in virtual time |
//! | [`complete`] | completions of shells, and manual pages |
//! | [`link`] | says what to link to, where HTCondor's tools are linked to this program |
//! | [`logging`] | how the operator and the agent log |
//! | `ads` | reads files of ads, in either syntax |
//! | `circumstances` | the options that set time and random seed |
//! | `daemon` | how commands begin and end that run until they are stopped |
//! | `input` | reads a file or standard input |
//! | `policy_file` | reads configuration from files, and out of manifests |
//! | `stop`, `problems`, `print` | how commands end, report problems, and print JSON |
//! | `named_groups` | reads the groups that a configuration's knobs name |
//! | `outcome` | runs a command, for tests |

mod ads;
pub mod agent;
mod circumstances;
pub mod classad;
pub mod config;
pub mod crds;
mod daemon;
pub mod demo;
pub mod guard;
mod input;
pub mod knobs;
pub mod link;
pub mod lint;
pub mod logging;
mod named_groups;
pub mod negotiate;
pub mod operator;
#[cfg(test)]
mod outcome;
mod policy_file;
mod print;
mod problems;
pub mod quota;
pub mod simulate;
mod stop;
pub mod submit;
pub mod transform;

pub use plugin::complete;
