//! The errors of texts that are no trace.

/// Why a text is no trace. The faults of single jobs are in [`Trace::skipped`](super::Trace::skipped).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The first line is neither of the Standard Workload Format nor of a job history.
    #[error(
        "line {line}, column {column}: expected a line of the Standard Workload Format (18 numbers, or `;` and a \
         comment) or of a job history (`Attribute = value`), found `{found}`{advice}"
    )]
    Neither {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// How the line begins.
        found: String,
        /// The remedy, if the text's real form can be guessed.
        advice: &'static str,
    },
    /// The text has nothing but blank lines.
    #[error("line {}, column 1: expected a job, found the end of the trace", .lines + 1)]
    Empty {
        /// How many lines there are.
        lines: usize,
    },
    /// The trace has too many jobs.
    #[error("line {line}: more than {most} jobs: split the trace")]
    TooManyJobs {
        /// The line with one job too many, from 1.
        line: usize,
        /// The most jobs that a trace may have.
        most: usize,
    },
}

impl TraceError {
    /// The error for a line that begins, after its blanks, with `text`.
    pub(super) fn neither(line: usize, column: usize, text: &str) -> Self {
        let advice = match text.chars().next() {
            Some('[' | '{' | '<') => ": print the history with `condor_history -l`",
            Some('\u{1f}' | '\u{fffd}') => ": is it compressed?",
            _ => "",
        };
        let mut found: String =
            text.chars().take(20).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        if text.chars().nth(20).is_some() {
            found.push_str("...");
        }
        Self::Neither { line, column, found, advice }
    }
}
