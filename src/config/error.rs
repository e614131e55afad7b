//! What can go wrong when a text is read, a value expanded, a value understood.

use super::source::{Diagnostic, Position};
use classad::ParseError;

/// The texts have errors. Reading goes on after an error, so that all can be told at once; HTCondor stops at
/// the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", list(.errors))]
pub struct ReadError {
    /// At least one, in the order of the text.
    pub errors: Vec<Diagnostic>,
}

fn list(errors: &[Diagnostic]) -> String {
    let lines: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.position, error.message)).collect();
    lines.join("\n")
}

/// A value cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {fault}")]
pub struct ExpandError {
    /// The reference or function that cannot be replaced.
    pub position: Position,
    /// Why not.
    pub fault: ExpandFault,
}

/// Why a value cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandFault {
    /// A name that leads back to itself. HTCondor would never finish.
    #[error("{} refer to each other without end: let one of them stand for something else", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The text becomes too long.
    #[error("expands to more than {0} bytes: make the values that it refers to shorter")]
    TooLong(usize),
    /// Expanding takes too long.
    #[error("takes too many steps to expand: it refers to too many values that refer to others")]
    TooMuchWork,
    /// References nest too deeply.
    #[error("references nest more than {0} deep: shorten the chain")]
    TooDeep(usize),
    /// The host must be asked and may not be.
    #[error("{0} is refused here: {1}")]
    Refused(String, &'static str),
    /// A function cannot make anything of its arguments.
    #[error("${function}(): {message}")]
    Function {
        /// Such as `INT`.
        function: &'static str,
        /// What is wrong with the arguments.
        message: String,
    },
}

/// A value cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It cannot be expanded.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// It is no ClassAd expression. The position is the place in the configuration text.
    #[error("{position}: {name} is no expression: expected {}, found {}", .error.expected(), .error.found())]
    Expression {
        /// The name whose value it is.
        name: String,
        /// Where the text stops being an expression.
        position: Position,
        /// What the expression parser says of the expanded value.
        error: ParseError,
    },
    /// It has the wrong type.
    #[error("{position}: {name} is {text}, which is no {wanted}")]
    Type {
        /// The name whose value it is.
        name: String,
        /// Where the value starts.
        position: Position,
        /// The expanded value.
        text: String,
        /// Such as `integer`.
        wanted: &'static str,
    },
    /// It is out of the knob's range.
    #[error("{position}: {message}")]
    Range {
        /// Where the value starts.
        position: Position,
        /// The knob, what it allows, and the number.
        message: String,
    },
}

impl ValueError {
    /// Where it is.
    pub fn position(&self) -> &Position {
        match self {
            Self::Expand(error) => &error.position,
            Self::Expression { position, .. }
            | Self::Type { position, .. }
            | Self::Range { position, .. } => position,
        }
    }
}
