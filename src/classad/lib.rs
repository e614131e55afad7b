//! The ClassAd language: lexer, parser, values, compiled evaluator, functions, matchmaking.
//!
//! ```
//! use classad::{Ad, Env, Expr, symmetric_match};
//!
//! let mut job = Ad::new().with("RequestMemory", 512);
//! job.insert("Requirements", Expr::parse("TARGET.Memory >= RequestMemory")?);
//! let slot = Ad::parse_new("[Memory = 1024; Requirements = TARGET.RequestMemory < 1000]")?;
//! assert!(symmetric_match(&job, &slot, &Env::at(1_769_860_800)));
//! # Ok::<(), classad::ParseError>(())
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | `syntax` | text to expressions and back: lexer, parser, long form, unparse, times |
//! | `expr` | the compiled expression: a flat array of nodes, names folded and hashed |
//! | `ad`, `name`, `value` | what the language is about |
//! | `eval` | scopes, operators, bounds |
//! | `functions` | the built-in functions by subject; each file has the table of its own |
//! | `roster` | slots made ready for many matches |
//! | `matching` | match, rank, and why not |
//!
//! Everything is pure: time, time zone and randomness come in by [`Env`], with bounds on what an
//! evaluation may cost. Answers are those of HTCondor's library, oddities included; the few differences are
//! in `docs/reference/differences.md`, and `tests/classad_oracle.rs` holds us to the rest.

mod ad;
mod env;
mod error;
mod eval;
mod expr;
mod functions;
mod matching;
mod name;
mod roster;
mod syntax;
mod value;

pub use ad::Ad;
pub use env::{Bound, Env, Limits};
pub use error::ParseError;
pub use eval::Evaluation;
pub use expr::{Expr, References};
pub use functions::Pattern;
pub use matching::{Clause, MatchReport, SideReport, explain_match, rank, symmetric_match};
pub use name::Name;
pub use roster::{Matching, Prepared, Ranks, Roster};
pub use value::{AbsTime, Value};
