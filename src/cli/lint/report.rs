//! Findings, and the report that collects them.

use serde::Serialize;

use super::rules::{Rule, Severity};
use super::yaml::Lines;
use model::pool::Problem;

/// A file's path and text.
#[derive(Debug)]
pub struct Source {
    /// The file's path, as the command line gave it or below a directory that the command line gave.
    pub path: String,
    /// The file's text.
    pub text: String,
    lines: Lines,
}

impl Source {
    /// A file of this path and text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { path: path.into(), lines: Lines::of(&text), text }
    }

    /// The byte offset of a line and column, which count from 1.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        self.lines.offset(&self.text, line, column)
    }

    /// The line and the column, from 1, of a byte offset.
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
    /// The rule that is broken; only its id is serialized.
    #[serde(serialize_with = "id_only")]
    pub rule: &'static Rule,
    /// The text for people: what is wrong.
    pub message: String,
    /// The advice: what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The object that the finding is about, such as `HTCJob alice/sweep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn id_only<S: serde::Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.id)
}

/// Everything that lint found.
#[derive(Debug, Default)]
pub struct Report {
    /// The findings; after [`Report::sort`] in the order of file, line and column.
    pub findings: Vec<Finding>,
    /// How many files were read.
    pub files: usize,
    /// How many of Slotwright's objects are in the files.
    pub objects: usize,
}

/// The texts of a finding: a message, a hint and an object.
#[derive(Clone, Debug, Default)]
pub struct Saying {
    /// The text for people: what is wrong.
    pub message: String,
    /// The advice: what to do.
    pub hint: Option<String>,
    /// The object that the message is about.
    pub object: Option<String>,
}

impl Saying {
    /// A message without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, object: None }
    }

    /// A problem of the operator's as a message, with what follows the last semicolon as the hint: the operator says there what to do.
    pub fn of(problem: &Problem) -> Self {
        let text = problem.to_string();
        match text.rsplit_once("; ") {
            Some((what, hint)) => Self::new(what).hint(hint),
            None => Self::new(text),
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with the object that the message is about.
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
            hint: saying.hint.map(|hint| clean_lines(&hint)),
            object: saying.object,
        });
    }

    /// Sorts the findings by file, line, column and rule, and drops duplicates.
    pub fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            let key = |finding: &Finding| {
                (finding.path.clone(), finding.line, finding.column, finding.severity, finding.rule.id)
            };
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        self.findings.dedup();
    }

    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// The text with its lines, which may be meant for a file, but without other control characters.
fn clean_lines(text: &str) -> String {
    let clean = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    text.trim().lines().map(|line| clean(line).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The text in one line: control characters, which a quoted text may have, become blanks.
fn one_line(text: &str) -> String {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint for a transform in the old syntax is the transform to paste.
    #[test]
    fn a_hint_keeps_its_lines_and_nothing_that_a_terminal_obeys() {
        assert_eq!(clean_lines(" write\nA @=end\n   SET B 1 \n@end\n"), "write\nA @=end\n   SET B 1\n@end");
        assert_eq!(clean_lines("say \u{1b}[2J\r\nso"), "say  [2J\nso");
        assert_eq!(one_line("a\nb\t"), "a b");
    }
}
