//! Errors: texts that cannot be read, values that cannot be expanded or understood.

use super::source::{Diagnostic, Position};
use classad::ParseError;

/// The texts have errors. Unlike HTCondor, which stops at the first, the reader goes on after an error, so that all
/// errors are reported at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", list(.errors))]
pub struct ReadError {
    /// At least one error, in the order of the texts.
    pub errors: Vec<Diagnostic>,
}

fn list(errors: &[Diagnostic]) -> String {
    let lines: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.position, error.message)).collect();
    lines.join("\n")
}

/// A value cannot be expanded: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {fault}")]
pub struct ExpandError {
    /// The place of the reference or function that cannot be replaced.
    pub position: Position,
    /// Why not.
    pub fault: ExpandFault,
}

/// Why a value cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandFault {
    /// A name refers back to itself. HTCondor would never finish.
    #[error("{} refer to each other without end: let one of them stand for something else", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The text becomes longer than so many bytes.
    #[error("expands to more than {0} bytes: make the values that it refers to shorter")]
    TooLong(usize),
    /// Expanding the value takes more work than is allowed.
    #[error("takes too many steps to expand: it refers to too many values that refer to others")]
    TooMuchWork,
    /// References nest deeper than so many levels.
    #[error("references nest more than {0} deep: shorten the chain")]
    TooDeep(usize),
    /// The text asks the host for something that the caller did not allow: what it asks for, and why it is refused.
    #[error("{0} is refused here: {1}")]
    Refused(String, &'static str),
    /// A function cannot use its arguments.
    #[error("${function}(): {message}")]
    Function {
        /// Such as `INT`.
        function: &'static str,
        /// The mistake in the arguments.
        message: String,
    },
}

/// A value cannot be understood as what the caller asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The value cannot be expanded.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// The value is no ClassAd expression.
    #[error("{position}: {name} is no expression: {}", .error.fault())]
    Expression {
        /// The name whose value it is.
        name: String,
        /// Where the configuration text stops being an expression.
        position: Position,
        /// The error of the expression parser, about the expanded value.
        error: ParseError,
    },
    /// The value has the wrong type.
    #[error("{position}: {name} is {text}, which is no {wanted}")]
    Type {
        /// The name whose value it is.
        name: String,
        /// Where the value starts.
        position: Position,
        /// The expanded value.
        text: String,
        /// The type of value that the knob needs, such as `integer`.
        wanted: &'static str,
    },
    /// The value is a number that the knob does not allow.
    #[error("{position}: {message}")]
    Range {
        /// Where the value starts.
        position: Position,
        /// The knob, what it allows, and the number.
        message: String,
    },
}

impl ValueError {
    /// The place in the configuration text.
    pub fn position(&self) -> &Position {
        match self {
            Self::Expand(error) => &error.position,
            Self::Expression { position, .. }
            | Self::Type { position, .. }
            | Self::Range { position, .. } => position,
        }
    }
}
