//! Writes findings as GitHub's workflow commands: `::error file=a.yaml,line=1,col=2,title=rule::message`.

use std::io::{self, Write};

use super::super::report::Report;
use super::super::rules::Severity;
use super::summary;

/// Writes a command for each finding, and the summary as a plain line.
pub(super) fn commands(report: &Report, unusable: &[String], out: &mut dyn Write) -> io::Result<()> {
    for path in unusable {
        writeln!(out, "::error title=slotwright lint::{}", data(path))?;
    }
    for finding in &report.findings {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let hint = finding.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        writeln!(
            out,
            "::{command} file={},line={},col={},title={}::{}",
            property(&finding.path),
            finding.line,
            finding.column,
            property(finding.rule.id),
            data(&format!("{}{hint}", finding.message)),
        )?;
    }
    writeln!(out, "{}", summary(report))
}

/// Escapes a message, which ends at the end of its line: line breaks, and the percent sign of escapes.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property, which ends at a comma or a colon too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
