//! How a command ends.

use std::fmt::Display;
use std::io::{self, Write};

/// Everything was done, or the answer is yes.
pub const DONE: u8 = 0;
/// The answer is no.
pub const NO: u8 = 1;
/// The input cannot be used.
pub const UNUSABLE: u8 = 2;

/// What stops a command: a message for standard error, or output that cannot be written.
#[derive(Debug)]
pub enum Stop {
    /// The input cannot be used.
    Unusable(String),
    /// The output cannot be written.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What cannot be used, and why.
pub fn unusable(what: impl Display, error: impl Display) -> Stop {
    Stop::Unusable(format!("{what}: {error}"))
}

/// The exit status of a command, with a message on standard error where it was stopped.
///
/// # Errors
/// When the output cannot be written.
pub fn status(command: &str, outcome: Result<u8, Stop>, stderr: &mut dyn Write) -> io::Result<u8> {
    match outcome {
        Ok(status) => Ok(status),
        Err(Stop::Io(error)) => Err(error),
        Err(Stop::Unusable(message)) => {
            writeln!(stderr, "slotwright {command}: {message}")?;
            Ok(UNUSABLE)
        }
    }
}
