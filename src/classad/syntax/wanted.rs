//! The part of the parser's messages that says what should be there. The text is made only if there is an error.

use std::fmt;

use super::build::MAX_DEPTH;

/// The text that should stand at the place of an error.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'w> {
    This(&'static str),
    OperandAfter(&'static str),
    EqualsAfter(&'w str),
    LessNesting,
}

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::This(what) => f.write_str(what),
            Self::OperandAfter(symbol) => write!(f, "an operand after '{symbol}'"),
            Self::EqualsAfter(name) => write!(f, "'=' after the attribute name '{}'", excerpt(name)),
            Self::LessNesting => write!(f, "an expression nested at most {MAX_DEPTH} levels deep"),
        }
    }
}

impl From<&'static str> for Wanted<'_> {
    fn from(what: &'static str) -> Self {
        Self::This(what)
    }
}

/// At most the first 40 characters of a text, for a message.
pub(super) fn excerpt(text: &str) -> String {
    let mut start: String = text.chars().take(40).collect();
    if start.len() < text.len() {
        start.push_str("...");
    }
    start
}
