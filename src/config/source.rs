//! Texts to read, places in them, and findings about them.

use std::fmt;
use std::sync::Arc;

/// A configuration text, and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path of a file, or the field of a manifest, such as `NodePolicy/gpus spec.config`.
    pub name: String,
    /// The text. HTCondor takes a last line without a newline as it stands, with the white space around it: see
    /// [`Source::block`].
    pub text: String,
}

impl Source {
    /// The text of a file, as it is.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// A text from a manifest. A newline is added if the last line has none.
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
    /// The name of the source. `<Default>` is a compiled-in default, `<Detected>` is what [`Host`](super::Host)
    /// predefines.
    pub file: Arc<str>,
    /// The line, from 1; 0 if the source has no lines.
    pub line: u32,
    /// The column in characters, from 1; 0 if the source has no lines.
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

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The text is read, but may not mean what its author meant.
    Warning,
    /// The text has an error, at which HTCondor would stop.
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
    /// How bad the finding is.
    pub severity: Severity,
    /// The place that the finding is about.
    pub position: Position,
    /// The text for people: what is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.position, self.message)
    }
}
