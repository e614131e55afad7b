//! Findings, and where they are gathered.

use serde::Serialize;

use super::rules::{Rule, Severity};
use super::yaml::Lines;

/// A file's text, under the name by which it was given.
#[derive(Debug)]
pub struct Source {
    /// Its path as given, below the path given.
    pub path: String,
    /// What stands in it.
    pub text: String,
    lines: Lines,
}

impl Source {
    /// A file.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { path: path.into(), lines: Lines::of(&text), text }
    }

    /// Byte offset of a line and column, from 1.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        self.lines.offset(&self.text, line, column)
    }

    /// Line and column, from 1, of a byte offset.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        self.lines.place(&self.text, offset)
    }
}

/// Something that lint found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// The rule, of which only the id is written.
    #[serde(serialize_with = "id_only")]
    pub rule: &'static Rule,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The object that it is about, such as `HTCJob alice/sweep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn id_only<S: serde::Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.id)
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Report {
    /// In order of file, line and column once [`Report::sort`] was called.
    pub findings: Vec<Finding>,
    /// How many files were looked at.
    pub files: usize,
    /// How many objects of ours stand in them.
    pub objects: usize,
}

/// What is said of one place.
#[derive(Clone, Debug, Default)]
pub struct Saying {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The object that it is about.
    pub object: Option<String>,
}

impl Saying {
    /// Only what is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, object: None }
    }

    /// With what to do.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// With the object that it is about.
    #[must_use]
    pub fn about(self, object: impl Into<String>) -> Self {
        Self { object: Some(object.into()), ..self }
    }
}

impl Report {
    /// Adds a finding at a byte offset of a file.
    pub fn add(&mut self, rule: &'static Rule, source: &Source, offset: usize, saying: Saying) {
        let (line, column) = source.place(offset);
        self.findings.push(Finding {
            path: source.path.clone(),
            line,
            column,
            severity: rule.severity,
            rule,
            message: one_line(&saying.message),
            hint: saying.hint.map(|hint| one_line(&hint)),
            object: saying.object,
        });
    }

    /// Sorts by file, line, column and rule, and drops what was found twice.
    pub fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            let key = |finding: &Finding| {
                (finding.path.clone(), finding.line, finding.column, finding.severity, finding.rule.id)
            };
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        self.findings.dedup();
    }

    /// How many findings are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// A message stays on its line, whatever the text that it quotes.
fn one_line(text: &str) -> String {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown.trim().to_owned()
}
