//! Prints answers for programs.

use std::io::{self, Write};

use serde::Serialize;

/// Prints an answer as one JSON object.
///
/// # Errors
/// When the answer cannot be written.
pub fn json(answer: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, answer)?;
    writeln!(out)
}
