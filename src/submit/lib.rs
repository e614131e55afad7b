//! HTCondor's submit language: from a submit file to the ads of its jobs, as `condor_submit -dry-run` writes them, and to
//! HTCJobs.
//!
//! | to | use |
//! | --- | --- |
//! | read a submit file | [`submit`], with a [`World`] for what the file may know |
//! | get the HTCJobs of a cluster | [`manifest::jobs`] |
//! | put a proc's own values into a pod template | [`each::Names`] |
//! | know where a container's streams go | [`streams::unwrapped`] |
//! | know what becomes of a command | [`commands::COMMANDS`], [`commands::find`] |
//!
//! # What is guaranteed
//!
//! - **No panics, and bounds.** No text panics the caller. A file has at most 100,000 procs, 10,000 lines besides items, and
//!   items of 8 MiB; the work of all expansions is bounded.
//! - **Nothing of the place leaks.** Files, directories and the environment are what the caller hands in by [`World`].
//! - **The same answer every time.** The time and the seed of random numbers are in [`World::host`].
//! - **Errors have a place.** Errors and warnings name the source, line and column, and what to do.
//! - **HTCondor's answers.** A test compares the ads of recorded submit files with those of condor_submit 25.14.1. The
//!   deliberate differences are in `docs/reference/submit.md` of the repository.
//!
//! # Modules
//!
//! | module | holds |
//! | --- | --- |
//! | `file` | a submit file, read and carried out |
//! | `queue`, `columns`, `items`, `glob` | the arguments of `queue`; how items are split; the items; names of files |
//! | `job` | the ad of one proc |
//! | `words`, `amount` | the syntaxes of arguments, environments and amounts |
//! | `commands` | the table of commands |
//! | `unused` | which variables are used, and which differ between procs |
//! | `manifest` | HTCJobs |
//! | `each` | references in pod templates to the proc, such as `$(Process)` |
//! | `streams` | standard output and standard error in files of a volume |
//! | `world` | what the caller hands in |

mod columns;
pub mod commands;
pub mod each;
mod file;
mod glob;
mod items;
mod job;
pub mod manifest;
mod queue;
pub mod streams;
mod unused;
mod words;
mod world;

pub use file::{Cluster, Options, Proc, Submission, WrittenCommand, submit};
pub use job::Program;
pub use world::{Entry, Files, Listing, Sizes, World};
