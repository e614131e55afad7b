//! Texts to read, places in them, and what is to be said about them.

use std::fmt;
use std::sync::Arc;

/// A configuration text and what to call it in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A file's path, or the field of a manifest such as `NodePolicy/gpus spec.config`.
    pub name: String,
    /// The text, as in the file. HTCondor takes a last line that does not end in a newline as it stands, blanks
    /// around it included: see [`Source::block`].
    pub text: String,
}

impl Source {
    /// The text of a file.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// Text out of a manifest: its last line is a line, whether or not a newline ends it.
    pub fn block(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Self { name: name.into(), text }
    }
}

/// A place in a source. It prints like `policy.config, line 3, column 14`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The source's name; `<Default>` for what is compiled in, `<Detected>` for what [`Host`](super::Host) predefines.
    pub file: Arc<str>,
    /// The line, from 1; 0 where there are no lines.
    pub line: u32,
    /// The column in characters, from 1; 0 where there are no lines.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.file);
        }
        write!(f, "{}, line {}, column {}", self.file, self.line, self.column)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The text is read, but it may not say what was meant.
    Warning,
    /// HTCondor would stop here.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A finding about a text. It prints like `error: policy.config, line 3, column 1: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub position: Position,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.position, self.message)
    }
}
