//! The problems of the files that a command reads.

use std::fmt;
use std::io::{self, Write};

use crate::lint::{Finding, Source};

/// Problems, each with its place, as messages.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<String>,
    warnings: Vec<String>,
}

impl Problems {
    /// Adds a problem at a byte offset of a file.
    pub fn at(&mut self, source: &Source, offset: usize, message: &str) {
        let (line, column) = source.place(offset);
        self.found.push(format!("{}:{line}:{column}: {message}", source.path));
    }

    /// Adds findings of lint.
    pub fn extend(&mut self, findings: impl Iterator<Item = Finding>) {
        self.found.extend(findings.map(told));
    }

    /// Adds findings of lint that are no problems.
    pub fn warn(&mut self, findings: impl Iterator<Item = Finding>) {
        self.warnings.extend(findings.map(told));
    }

    /// Takes the findings that are no problems.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// One problem without a place.
    pub fn one(message: String) -> Self {
        Self { found: vec![message], warnings: Vec::new() }
    }

    /// Writes every problem to `err`, each on lines of its own.
    ///
    /// # Errors
    /// When `err` cannot be written.
    pub fn tell(&self, err: &mut dyn Write) -> io::Result<()> {
        self.found
            .iter()
            .flat_map(|problem| problem.lines())
            .try_for_each(|line| writeln!(err, "slotwright: {line}"))
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many problems there are.
    pub fn count(&self) -> usize {
        self.found.len()
    }
}

fn told(found: Finding) -> String {
    let object = found.object.map_or_else(String::new, |object| format!("{object}: "));
    let hint = found.hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{}:{}:{}: {object}{}{hint}", found.path, found.line, found.column, found.message)
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found.join("\n"))
    }
}

impl std::error::Error for Problems {}
