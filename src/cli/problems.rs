//! The problems of the files that a command reads.

use std::fmt;
use std::io::{self, Write};

use crate::lint::{Finding, Source};

/// Problems, each with its place, as messages.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Adds a problem at a byte offset of a file.
    pub fn at(&mut self, source: &Source, offset: usize, message: &str) {
        let (line, column) = source.place(offset);
        self.0.push(format!("{}:{line}:{column}: {message}", source.path));
    }

    /// Adds findings of lint.
    pub fn extend(&mut self, findings: impl Iterator<Item = Finding>) {
        self.0.extend(findings.map(|found| {
            let object = found.object.map_or_else(String::new, |object| format!("{object}: "));
            let hint = found.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{}:{}:{}: {object}{}{hint}", found.path, found.line, found.column, found.message)
        }));
    }

    /// One problem without a place.
    pub fn one(message: String) -> Self {
        Self(vec![message])
    }

    /// Writes every problem to `err`, each on lines of its own.
    ///
    /// # Errors
    /// When `err` cannot be written.
    pub fn tell(&self, err: &mut dyn Write) -> io::Result<()> {
        self.0
            .iter()
            .flat_map(|problem| problem.lines())
            .try_for_each(|line| writeln!(err, "slotwright: {line}"))
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many problems there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}
