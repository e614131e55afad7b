#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod history;
mod laws;
mod select;
mod swf;

use super::*;

fn trace(text: &str) -> Trace {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The jobs that the reader skipped, as messages.
fn skipped(text: &str) -> Vec<String> {
    trace(text).skipped.iter().map(ToString::to_string).collect()
}

#[test]
fn a_text_that_is_no_trace_is_refused_with_its_place() {
    for (text, message) in [
        ("", "line 1, column 1: expected a job, found the end of the trace"),
        ("\n  \n", "line 3, column 1: expected a job, found the end of the trace"),
        (
            "\n  hello, world",
            "line 2, column 3: expected a line of the Standard Workload Format (18 numbers, or `;` and a comment) or of \
             a job history (`Attribute = value`), found `hello, world`",
        ),
        (
            "[\n{\n\"ClusterId\": 1 }]",
            "line 1, column 1: expected a line of the Standard Workload Format (18 numbers, or `;` and a comment) or of \
             a job history (`Attribute = value`), found `[`: print the history with `condor_history -l`",
        ),
        (
            "\u{1f}\u{fffd}\u{8}abcdefghijklmnopqrstuvwxyz",
            "line 1, column 1: expected a line of the Standard Workload Format (18 numbers, or `;` and a comment) or of \
             a job history (`Attribute = value`), found `\u{fffd}\u{fffd}\u{fffd}abcdefghijklmnopq...`: is it compressed?",
        ),
        (
            "two words = 1",
            "line 1, column 1: expected a line of the Standard Workload Format (18 numbers, or `;` and a comment) or of \
             a job history (`Attribute = value`), found `two words = 1`",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn the_first_line_tells_the_form_and_blanks_and_marks_do_not_count() {
    let swf = "1 0 5 60 4 -1 -1 4 -1 -1 1 7 2 -1 1 -1 -1 -1";
    let ad = "QDate = 100\nRemoteWallClockTime = 60.0\nOwner = \"ann\"";
    for (text, owner) in [
        (swf.to_owned(), "user7"),
        (format!("\u{feff}{swf}\r\n"), "user7"),
        (format!("\n\n; Version: 2.2\n{swf}"), "user7"),
        (ad.to_owned(), "ann"),
        (format!("\u{feff}\n# printed by condor_history\n{ad}\n"), "ann"),
        (format!("*** Offset = 0\n{ad}\n"), "ann"),
    ] {
        assert_eq!(&*trace(&text).jobs[0].owner, owner, "{text:?}");
    }
}

#[test]
fn what_was_skipped_is_told_by_reasons() {
    let text = "; Version: 2.2\n1 2 3\n1 0 5 x 4 -1 -1 4 -1 -1 1 7 2 -1 1 -1 -1 -1\n1\n";
    let trace = trace(text);
    let reasons: Vec<String> = trace.reasons().iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        ["line 2: has 3 fields, not 18 (and 1 more like it)", "line 3: field 4 is no number"]
    );
}
