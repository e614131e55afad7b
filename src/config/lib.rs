//! HTCondor's configuration language: macros, conditionals, templates, and the table of knobs.
//!
//! HTCondor is configured by texts of `NAME = value` lines, in which values refer to each other by `$(NAME)`, `if` chooses
//! lines, and `use CATEGORY : NAME` inserts a template that HTCondor ships. The crate reads such texts, expands values, and
//! knows for each of HTCondor's variables ("knobs") its type, default, unit and range.
//!
//! The crate is for programs that must understand an HTCondor configuration without running HTCondor: checkers, editors,
//! migration tools, and services that accept policies from people whom they do not trust.
//!
//! ```
//! use condor_config::{Host, Reader, Source, knobs};
//!
//! let text = "HOURS = 2\nMAX = $(HOURS) * 3600\nSTART = $(START) && RequestCpus <= 8\n";
//! let reader = Reader::new(Host::none()).subsystem("STARTD");
//! let config = reader.read(&[Source::new("policy", text)]).into_config()?;
//! assert_eq!(config.value("MAX")?.as_deref(), Some("2 * 3600"));
//! assert_eq!(config.integer("MAX")?, Some(7200));
//! assert_eq!(config.value("START")?.as_deref(), Some("True && RequestCpus <= 8"));
//! assert_eq!(knobs::find("start").map(|knob| knob.kind), Some(knobs::Kind::Expression));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to start
//!
//! | to | use |
//! | --- | --- |
//! | read texts as one daemon does | [`Reader`], with a [`Host`] for what the texts may ask about the machine |
//! | get a value | [`Config::value`], [`Config::integer`], [`Config::boolean`], [`Config::expr`], ... |
//! | get what a slot sees | [`Config::slot_text`], [`Config::policy_text`], [`Config::attribute_text`] |
//! | say where a value comes from | [`Config::definitions`], [`Config::position`], [`Config::position_in`] |
//! | know a variable, or check a value | [`knobs::find`], [`knobs::check`], [`knobs::unknown`] |
//! | map users to groups | [`user_map::UserMap`] |
//! | run a text with commands, such as a job transform | [`Script`], [`Scope`] |
//!
//! A [`Config`] is for one daemon: the [`Reader`]'s subsystem and local name decide already during reading, in conditions and
//! in references of a name to itself, whether `STARTD.NAME` stands above `NAME`.
//!
//! # What is guaranteed
//!
//! - **No panics.** No text and no name panics the caller. The crate has no `unsafe` code.
//! - **Bounds.** All texts together may have 32 MiB, nest 20 deep by `include` and `use`, and include 1000 files. A value
//!   expands to at most 1 MiB, within a bound on work; a name that refers back to itself is an error. [`Reader::guarded`]
//!   also bounds the work of reading and of all later questions together, for texts from people who are not trusted.
//! - **Nothing of the host leaks.** `$ENV()`, files and random numbers are refused unless the caller hands them in by
//!   [`Host`] and [`Reader::files`]. Commands are never run.
//! - **The same answer every time.** The time and the seed of random numbers are in [`Host`].
//! - **Every error has a place.** Errors and warnings name the source, line and column, and what to do; a parse error within
//!   an expanded value points to the text that the value came from.
//! - **HTCondor's answers.** The crate is held to `condor_config_val` of HTCondor 25.14.1: tests compare thousands of
//!   recorded values, every template, and the maps of users. The defaults are HTCondor's own parameter table.
//!   `docs/reference/differences.md` of the repository lists the deliberate differences.
//!
//! # What it does not do
//!
//! - Nothing is configured: the crate reads and answers, and acts on nothing.
//! - [`knobs::Support`], [`templates::Template::advice`] and the messages of [`knobs::check`] say what a knob is worth in
//!   Slotwright, the Kubernetes operator that this crate was written for.
//! - Submit files are another language. Job transforms are, too: their macros, conditionals and variables are here
//!   ([`Script`], [`Scope`]), their commands in the crate `slotwright-transform`.
//! - Configuration is not written, and no configuration directories are searched: the caller lists the [`Source`]s.
//!
//! # Modules
//!
//! [`knobs`], [`templates`] and [`user_map`] are public. The others are private; their public items are re-exported here.
//!
//! | module | holds |
//! | --- | --- |
//! | `text` | text in which each byte knows where it comes from |
//! | `source`, `host` | what the caller gives: texts, and what they may know of the machine |
//! | `lines`, `statement` | a text to lines, joined and trimmed; a line to a statement |
//! | `condition` | `if`, `elif`, `else`, `endif` |
//! | `read`, `arguments` | statements to definitions; `include`; `use` and its arguments |
//! | `table` | the definitions, and the order in which a name is looked up |
//! | `scan`, `expand`, `allowance` | `$(NAME)` in a text, found and replaced, within bounds |
//! | `names` | what an expansion looks names up in |
//! | `script`, `scope` | texts whose lines are commands, as in a job transform; their variables |
//! | `functions`, `format`, `paths` | `$INT()` and the other functions |
//! | `value`, `slots` | values as text, numbers, lists, expressions; what a slot sees |
//! | `error` | errors of reading, expanding and understanding |

mod allowance;
mod amount;
mod arguments;
mod condition;
mod error;
mod expand;
mod format;
mod functions;
mod host;
mod iteration;
pub mod knobs;
mod lines;
mod names;
mod paths;
mod read;
mod scan;
mod scope;
mod script;
mod slots;
mod source;
mod statement;
mod table;
pub mod templates;
mod text;
pub mod user_map;
mod value;

pub use amount::{Amount, amount};
pub use error::{ExpandError, ExpandFault, ReadError, ValueError};
pub use format::Format;
pub use host::{FileError, Host};
pub use iteration::iteration_keyword;
pub use read::{Reader, Reading};
pub use scope::{Scope, Variable};
pub use script::Script;
pub use source::{Diagnostic, Position, Severity, Source};
pub use table::{Config, Definition, Origin};
pub use text::Text;

/// The example of the README runs as a doc test.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
