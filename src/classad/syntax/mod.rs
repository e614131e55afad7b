//! Syntax: text to expressions and ads, and back.

pub(crate) mod ads;
pub(crate) mod build;
pub(crate) mod lexer;
pub(crate) mod literal;
mod operators;
pub(crate) mod parser;
pub(crate) mod time;
pub(crate) mod unparse;
mod wanted;
