//! What is wrong with a text that does not parse, and where.

use std::fmt;

/// The place in a text where it stops being ClassAd, what stands there and what should.
///
/// It prints like `line 1, column 14: expected an operand after '&&', found end of input`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    column: usize,
    expected: String,
    found: String,
}

impl ParseError {
    /// Describes the fault at the byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, expected: String, found: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self(Box::new(Fault { line, column, expected, found }))
    }

    /// The same fault in a text of which the parsed one is a part that starts after `lines` lines and
    /// `columns` characters of its first line.
    #[must_use]
    pub fn shifted(mut self, lines: usize, columns: usize) -> Self {
        if self.0.line == 1 {
            self.0.column += columns;
        }
        self.0.line += lines;
        self
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// What would have been right, such as `an operand after '&&'`.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What stands there, such as `';'` or `end of input`.
    pub fn found(&self) -> &str {
        &self.0.found
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { line, column, expected, found } = &*self.0;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}")
    }
}
