//! What the command line does, one file a command.

pub mod crds;
pub mod demo;
