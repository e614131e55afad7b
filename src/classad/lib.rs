//! The ClassAd language of HTCondor: parser, evaluator, built-in functions and matchmaking.
//!
//! A ClassAd ("classified advertisement") is a set of named expressions that describes a job, a machine, or anything else
//! that looks for a partner. Each side says in `Requirements` what it demands of the other, and in `Rank` what it prefers.
//! Two ads match if the `Requirements` of each is true of the other.
//!
//! The crate is for programs that read, evaluate or match ClassAds without HTCondor's C++ library: schedulers, tools that
//! look into a pool, and services that take expressions from people whom they do not trust.
//!
//! ```
//! use classad::{Ad, Env, Value, explain_match, symmetric_match};
//!
//! let slot = Ad::parse_new("[Memory = 4096; Requirements = TARGET.RequestMemory <= MY.Memory]")?;
//! let job = Ad::parse_long("RequestMemory = 8 * 1024\nRequirements = true\nRank = TARGET.Memory\n")?;
//! let env = Env::at(1_769_860_800);
//! assert_eq!(job.eval_attr("RequestMemory", None, &env), Value::Int(8192));
//!
//! assert!(!symmetric_match(&job, &slot, &env));
//! let report = explain_match(&job, &slot, &env);
//! let refused = report.target.failed().next().map(ToString::to_string);
//! assert_eq!(refused.as_deref(), Some("TARGET.RequestMemory <= MY.Memory is false"));
//! # Ok::<(), classad::ParseError>(())
//! ```
//!
//! # Where to start
//!
//! | to | use |
//! | --- | --- |
//! | read and print ads | [`Ad::parse_new`] (`[a = 1; b = 2]`), [`Ad::parse_long`] (an attribute a line), [`Ad::to_long`], `Display` |
//! | read and evaluate an expression | [`Expr::parse`], [`Expr::eval`], [`Expr::evaluate`] |
//! | say what an evaluation may know and cost | [`Env`], [`Limits`] |
//! | match two ads | [`symmetric_match`], [`rank`], [`explain_match`] |
//! | match one job after another with many slots | [`Roster`] |
//!
//! # What is guaranteed
//!
//! - **No panics.** No text, ad or expression panics the caller or overflows the stack of a thread of 2 MiB, also in a
//!   build without optimization. The crate has no `unsafe` code.
//! - **Bounded parsing.** Time and memory are proportional to the text. An expression that nests more than 500 levels deep
//!   is a [`ParseError`], which tells line, column, what was expected and what was found.
//! - **Bounded evaluation.** [`Limits`] bounds the steps, the depth, the length of a string and of a list. An evaluation
//!   that hits a bound is `error`, and [`Evaluation::bound`] says which bound. Steps are paid in proportion to the work:
//!   with the default limits, no evaluation takes longer than about 5 ms. Regular expressions take time linear in the
//!   text and in the size of the compiled pattern.
//! - **The same answer every time.** The time, the time zone and the seed of random numbers are in [`Env`]. The crate reads
//!   no clock, file, environment variable or global state. (Compiled patterns are remembered, and a bound holds for all of
//!   them together. Remembered patterns change how long an evaluation takes, not its answer, nor its steps.)
//! - **Cheap to share.** [`Ad`], [`Expr`], [`Value`] and [`Name`] are `Send` and `Sync`; a clone copies at most a few words.
//! - **Printed text reads back.** An expression or ad that is printed parses to an equal one.
//! - **HTCondor's answers, oddities included.** The crate is held to version 25.14 of HTCondor's own library: a test
//!   compares more than 21,000 recorded answers, and `make oracle` compares fresh ones. The differences are deliberate;
//!   `docs/reference/differences.md` of the repository lists each with its reason.
//!
//! # What it does not do
//!
//! - Regular expressions have no look-around, no back references and no atomic groups: such a pattern is `error`.
//! - `userMap()` knows the maps of its environment ([`Env::maps`]), and `userHome()` no home directories.
//! - Functions cannot be added at run time.
//! - Ads are not read from or written to XML or JSON, and nothing is sent over a network.
//!
//! # Modules
//!
//! All modules are private; their public items are re-exported here.
//!
//! | module | holds |
//! | --- | --- |
//! | `ad`, `name`, `value`, `expr` | the types: ads, attribute names, values, compiled expressions |
//! | `syntax` | text to expressions and back: lexer, parser, both forms of ads, printing, times |
//! | `env` | what an evaluation may know and cost |
//! | `eval` | evaluation: scopes, operators, bounds |
//! | `functions` | the built-in functions by subject; each file has its own table |
//! | `matching` | match, rank, and why two ads do not match |
//! | `roster` | slots that are made ready for many matches |
//! | `error` | parse errors |

mod ad;
mod env;
mod error;
mod eval;
mod expr;
mod functions;
mod layers;
mod matching;
mod mistakes;
mod name;
mod roster;
mod syntax;
mod user_maps;
mod value;

pub use ad::Ad;
pub use env::{Bound, Env, Limits};
pub use error::{ParseError, hint_at, operator_for};
pub use eval::Evaluation;
pub use expr::{Expr, References};
pub use functions::{Pattern, join_arguments, split_arguments};
pub use matching::{
    Clause, MatchReport, SideReport, explain_match, rank, symmetric_match, symmetric_match_within,
};
pub use mistakes::{Mistake, function_names, quoted_names};
pub use name::Name;
pub use roster::{Matching, Prepared, Ranks, Roster};
pub use user_maps::{Maps, UserMaps, preferred};
pub use value::{AbsTime, Value};

/// The example of the README runs as a doc test.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
