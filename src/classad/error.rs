//! Parse errors: where a text stops being ClassAd, and what is wrong there.

use std::fmt;

/// A text that does not parse: the place where it stops being ClassAd, what stands there and what should.
///
/// The error prints like `line 1, column 14: expected an operand after '&&', found end of input`.
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
    /// The fault at a byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, expected: String, found: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self(Box::new(Fault { line, column, expected, found }))
    }

    /// The same fault as seen in a larger text, in which the parsed text starts after `lines` lines and after
    /// `columns` characters of the next line.
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

    /// The text that would have been right at the place, such as `an operand after '&&'`.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// The text at the place, such as `';'` or `end of input`.
    pub fn found(&self) -> &str {
        &self.0.found
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { line, column, expected, found } = &*self.0;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}")?;
        // `=` assigns, and stands in no expression.
        if found == "'='" { f.write_str("; write == to compare") } else { Ok(()) }
    }
}
