//! Compares what our condor_q, condor_status and condor_history print of ads with what HTCondor 25.14.1 prints of the same ads, as
//! `hack/oracle-queue.sh` recorded.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects by panicking"
)]

mod events;
mod missing;
mod safety;

use std::path::PathBuf;
use std::{env, fs};

use ::history::Records;
use jiff::tz::TimeZone;
use serde::Deserialize;
use tools::queue::{self, Source};
use tools::{Screen, Width, history, slots};

/// The words of command lines whose answer differs, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "condor_q -jobads jobs.ads -nobatch -cputime",
        "condor_q cuts ids of more than 4 digits; ours widens the columns as it does without -cputime",
    ),
    ("condor_history -file history -name x", BEFORE_ERRORS),
    ("condor_status -ads slots.ads -state", MEMORY_AND_TOTAL),
    ("condor_status -ads slots.ads -state -wide:80", MEMORY_AND_TOTAL),
    ("condor_status -ads slots.ads -totals -state", MEMORY_AND_TOTAL),
    ("condor_status -ads slots.ads -compact -state", MEMORY_AND_TOTAL),
];

const BEFORE_ERRORS: &str =
    "condor_history prints headings before it finds that it cannot connect; ours refuses the option first";

const MEMORY_AND_TOTAL: &str = "condor_status 25.14.1 leaves the column Mem of -state blank, and its column Total is always 0; ours have the numbers";

/// A command line, and what the real tool answered.
#[derive(Deserialize)]
struct Answer {
    words: Vec<String>,
    status: i32,
    said: String,
    complaints: String,
}

#[derive(Deserialize)]
struct Recorded {
    answers: Vec<Answer>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tools"))
}

/// The recorded answers; `TOOLS_ORACLE` names another file of them.
fn recorded() -> Recorded {
    let path = env::var("TOOLS_ORACLE").map_or_else(|_| folder().join("recorded.json"), Into::into);
    serde_json::from_str(&fs::read_to_string(path).expect("the recorded answers")).expect("JSON")
}

fn ads(file: &str) -> Vec<classad::Ad> {
    let text = fs::read_to_string(folder().join("ads").join(file)).expect("a file of ads");
    tools::reads_ads(&text).expect("ads")
}

/// A screen that is a pipe. Its time occurs in none of the ads, so that the present time in a header is recognized.
fn screen() -> Screen {
    Screen { width: Width::Piped, now: 0, zone: TimeZone::UTC }
}

/// The answer of our tool: the exit status and the text.
fn ours(words: &[String]) -> (i32, String) {
    let screen = screen();
    let (tool, words) = words.split_first().expect("the tool");
    match tool.as_str() {
        "condor_q" => match queue::parse(words) {
            Ok(queue::Asked::Jobs(request)) => {
                let file = request.ads_file.clone().expect("a file of ads");
                let source = Source { label: format!("Jobads: {file}"), ..Source::default() };
                (0, request.print(&ads(&file), &source, &screen).replace("01/01/70 00:00:00", "NOW"))
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => (1, String::new()),
        },
        "condor_status" => match slots::parse(words) {
            Ok(slots::Asked::Ads(request)) => {
                (0, request.print(&ads(&request.ads_file.clone().expect("a file of ads")), &screen))
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => (1, String::new()),
        },
        "condor_history" => match history::parse(words) {
            Ok(history::Asked::Jobs(request)) => past(&request, &screen),
            Ok(history::Asked::Help) => panic!("the usage is not compared"),
            Err(_) => (1, String::new()),
        },
        other => panic!("{other} is not compared"),
    }
}

/// The exit status and the output of our condor_history for a history file.
fn past(request: &history::Request, screen: &Screen) -> (i32, String) {
    let search = &request.search;
    let mut printer = request.printer(screen);
    let mut said = printer.head();
    let path = folder().join("ads").join(request.file.as_ref().expect("a file of ads"));
    let Ok(file) = fs::File::open(path) else { return (1, said) };
    let records = Records::of(file, search.direction).expect("a history");
    let see = |ad: Option<&classad::Ad>| match ad {
        Some(ad) => printer.ad(ad, &mut said),
        None => said.push_str(history::Printer::malformed()),
    };
    search.begin(screen.now).read(records, see).expect("a history");
    said.push_str(&printer.foot());
    (0, said)
}

/// A command line without an answer would be compared with nothing.
#[test]
fn each_command_line_has_an_answer() {
    let cases = fs::read_to_string(folder().join("cases.txt")).expect("the command lines");
    let lines = cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    // Quotes stand around some words of a line.
    let plain = |line: &str| line.replace(['\'', '"'], "");
    let asked: Vec<String> = lines.map(plain).collect();
    let answered: Vec<String> =
        recorded().answers.iter().map(|answer| plain(&answer.words.join(" "))).collect();
    assert_eq!(asked, answered);
}

#[test]
fn what_is_printed_is_what_the_tools_print() {
    let mut different = Vec::new();
    for answer in recorded().answers {
        let line = answer.words.join(" ");
        let mut answer = answer;
        if answer.status != 0 && answer.said.starts_with("Usage:") {
            // Ours has a usage of its own, on standard error.
            answer.said.clear();
        }
        let same = ours(&answer.words) == (answer.status, answer.said.clone());
        let listed = DIFFERENCES.iter().any(|(known, _)| *known == line);
        if same && listed {
            different.push(format!("$ {line}\nis listed as different, and is not"));
        } else if !same && !listed {
            let (status, said) = ours(&answer.words);
            let (theirs, complaints) = (&answer.said, &answer.complaints);
            different.push(format!(
                "$ {line}\nHTCondor's: {}\n{theirs}{complaints}ours: {status}\n{said}",
                answer.status
            ));
        }
    }
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n"));
}
