//! What the command line does, one file a command.

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
pub mod plugin;
pub mod quota;
pub mod simulate;
