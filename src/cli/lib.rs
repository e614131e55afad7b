//! What the command line does, one file a command.

mod circumstances;
pub mod classad;
pub mod config;
pub mod crds;
pub mod demo;
pub mod knobs;
pub mod lint;
pub mod negotiate;
pub mod operator;
#[cfg(test)]
mod outcome;
mod print;
mod problems;
pub mod quota;
pub mod simulate;
mod stop;
