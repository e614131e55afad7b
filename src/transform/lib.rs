//! HTCondor's schedd policy: job transforms, which change the ad of a job at submission, and submit requirements, which keep some
//! jobs out.
//!
//! | to | use |
//! | --- | --- |
//! | apply the transforms of a configuration | [`Transforms`] |
//! | check a job against the requirements of a configuration | [`Requirements`] |
//! | apply a file of rules, as condor_transform_ads does | [`RulesFile`] |
//!
//! # What is guaranteed
//!
//! - **No panics, and bounds.** No text and no ad panics the caller. All transforms of one ad together take at most about half a
//!   second; the ad gets at most 10,000 attributes.
//! - **The same answer every time.** The time and the seed of random numbers are arguments.
//! - **HTCondor's answers.** A test compares 5,000 recorded answers of condor_transform_ads 25.14.1. The deliberate differences
//!   are in `docs/reference/differences.md` of the repository.
//! - **Errors have a place.** Errors and warnings name the source, line and column, and what to do.
//!
//! # Modules
//!
//! | module | holds |
//! | --- | --- |
//! | `transforms` | the transforms that a configuration names |
//! | `file`, `iteration` | a file of rules; the passes that TRANSFORM asks for |
//! | `rules`, `command`, `words` | the text of one transform, read: headings, commands, the words of a command |
//! | `apply` | the commands, carried out |
//! | `old_syntax` | the syntax that HTCondor dropped, shown in the native one |
//! | `requirements` | submit requirements |
//!
//! The conditionals and variables of a transform are those of the configuration language: `condor_config::Script`.

mod apply;
mod command;
mod file;
mod iteration;
mod old_syntax;
mod requirements;
mod rules;
mod transforms;
mod words;

pub use file::RulesFile;
pub use requirements::{Requirements, Unmet, Verdict};
pub use transforms::{Applied, Transforms};
