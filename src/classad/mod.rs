//! The ClassAd language: lexer, parser, values, compiled evaluator, functions, matchmaking.

mod ad;
mod env;
mod error;
mod eval;
mod expr;
mod functions;
mod matching;
mod name;
mod syntax;
mod value;

pub use ad::Ad;
pub use env::{Bound, Env, Limits};
pub use error::ParseError;
pub use eval::Evaluation;
pub use expr::{Expr, References};
pub use matching::{Clause, MatchReport, SideReport, explain_match, rank, symmetric_match};
pub use name::Name;
pub use value::{AbsTime, Value};
