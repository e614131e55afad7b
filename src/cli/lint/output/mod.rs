//! Writes findings: for people, for programs, for code scanning, for GitHub's log.

mod github;
mod sarif;

use std::io::{self, Write};

use clap::ValueEnum;
use serde_json::json;

use super::report::Report;
use super::rules::Severity;

/// A format of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for each finding: path:line:column: severity: message [rule]
    #[default]
    Human,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub workflow commands, which show findings on the lines of a pull request
    Github,
}

/// Writes a report.
///
/// # Errors
/// When the output cannot be written.
pub fn write(report: &Report, unusable: &[String], format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Human => human(report, out),
        Format::Json => json(report, unusable, out),
        Format::Sarif => document(&sarif::log(report, unusable), out),
        Format::Github => github::commands(report, unusable, out),
    }
}

fn document(document: &serde_json::Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

fn human(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        let (path, line, column) = (&finding.path, finding.line, finding.column);
        writeln!(
            out,
            "{path}:{line}:{column}: {}: {} [{}]",
            finding.severity.word(),
            finding.message,
            finding.rule.id
        )?;
        if let Some(hint) = &finding.hint {
            // Only a line without an indent begins a finding.
            writeln!(out, "    hint: {}", hint.replace('\n', "\n    "))?;
        }
    }
    writeln!(out, "{}", summary(report))
}

/// The last line of the output: `2 errors, 1 warning in 3 objects of 4 files`.
fn summary(report: &Report) -> String {
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{}, {} in {} of {}",
        many(report.count(Severity::Error), "error"),
        many(report.count(Severity::Warning), "warning"),
        many(report.objects, "object"),
        many(report.files, "file"),
    )
}

fn json(report: &Report, unusable: &[String], out: &mut dyn Write) -> io::Result<()> {
    let summary = json!({
        "files": report.files,
        "objects": report.objects,
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notes": report.count(Severity::Note),
    });
    document(
        &json!({"version": 1, "findings": report.findings, "unusable": unusable, "summary": summary}),
        out,
    )
}
