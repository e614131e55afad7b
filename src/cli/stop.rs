//! How a command ends: exit statuses, and errors that stop it.

use std::fmt::Display;
use std::io::{self, Write};

/// The exit status of a command that did everything, or whose answer is yes.
pub const DONE: u8 = 0;
/// The exit status of a command whose answer is no.
pub const NO: u8 = 1;
/// The exit status of a command whose input cannot be used.
pub const UNUSABLE: u8 = 2;

/// A reason for which a command stops.
#[derive(Debug)]
pub enum Stop {
    /// The input cannot be used; the message goes to standard error.
    Unusable(String),
    /// The output cannot be written.
    Io(io::Error),
}

impl Stop {
    /// The stop for values that cannot be used, with a line for each.
    pub fn of_values(faults: &[impl Display]) -> Self {
        Self::Unusable(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The error of an input that cannot be used: what it is, and why.
pub fn unusable(what: impl Display, error: impl Display) -> Stop {
    Stop::Unusable(format!("{what}: {error}"))
}

/// The exit status of a command. If its input cannot be used, the message is written to `stderr`.
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
