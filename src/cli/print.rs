//! Prints answers for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table
    #[default]
    Text,
    /// One JSON object
    Json,
}

/// Prints an answer as one JSON object.
///
/// # Errors
/// When the answer cannot be written.
pub fn json(answer: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, answer)?;
    writeln!(out)
}
