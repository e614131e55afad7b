//! The file by which a site says that somebody is there: for input that no terminal shows, such as that of a desktop.
//!
//! The file has lines `keyboard = WHEN` and `console = WHEN`. WHEN is `ongoing` while somebody is there, or the time of the last
//! input in RFC 3339. Empty lines and lines that begin with `#` say nothing. If a key stands more than once, the latest input
//! counts. Whoever writes the file should write a new one beside it and rename that, so that no half file is read.

use std::fmt;

use jiff::Timestamp;

/// The most malformed lines that are told of one file.
const MAX_MALFORMED: usize = 16;
/// The most characters of a line that a message repeats.
const MAX_SHOWN: usize = 40;

/// When somebody was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// There was input last at this time.
    At(Timestamp),
    /// Somebody is there now.
    Ongoing,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Said {
    /// Input on any terminal or desktop.
    pub(super) keyboard: Option<Presence>,
    /// Input at the node's own keyboard or mouse.
    pub(super) console: Option<Presence>,
}

/// A line that says nothing because it is malformed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text for people: what is there and what was expected.
    pub message: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// Reads a file. Malformed lines are returned, [`MAX_MALFORMED`] at most, and otherwise ignored.
pub(super) fn parse(text: &str) -> (Said, Vec<Malformed>) {
    let (mut said, mut malformed) = (Said::default(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        match parse_line(line) {
            Ok(None) => {}
            Ok(Some((Key::Keyboard, presence))) => said.keyboard = said.keyboard.max(Some(presence)),
            Ok(Some((Key::Console, presence))) => said.console = said.console.max(Some(presence)),
            Err(_) if malformed.len() == MAX_MALFORMED => {}
            Err((column, message)) => malformed.push(Malformed { line: number, column, message }),
        }
    }
    (said, malformed)
}

/// Which idle time a line is about.
enum Key {
    Keyboard,
    Console,
}

/// Returns what a line says; or the column of what is wrong, and a message.
fn parse_line(line: &str) -> Result<Option<(Key, Presence)>, (usize, String)> {
    let text = line.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let start = 1 + line.chars().take_while(|character| character.is_whitespace()).count();
    let Some((before, after)) = line.split_once('=') else {
        return Err((start, format!("{} has no \"=\": \"keyboard = WHEN\" was expected", shown(text))));
    };
    let key = match before.trim() {
        "keyboard" => Key::Keyboard,
        "console" => Key::Console,
        other => return Err((start, format!("{} is neither \"keyboard\" nor \"console\"", shown(other)))),
    };
    let value = after.trim();
    if value == "ongoing" {
        return Ok(Some((key, Presence::Ongoing)));
    }
    let spaces = after.chars().take_while(|character| character.is_whitespace()).count();
    let column = before.chars().count() + 2 + spaces;
    match value.parse() {
        Ok(time) => Ok(Some((key, Presence::At(time)))),
        Err(_) => Err((
            column,
            format!("{} is neither \"ongoing\" nor a time such as 2026-11-24T08:30:00Z", shown(value)),
        )),
    }
}

/// The text in quotes, cut to a length that a message can bear.
fn shown(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Presence {
        Presence::At(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn lines_say_who_is_there() {
        for (text, keyboard, console) in [
            ("", None, None),
            ("# nobody\n\n", None, None),
            ("keyboard = ongoing\n", Some(Presence::Ongoing), None),
            ("console=1970-01-01T00:01:40Z", None, Some(at(100))),
            (" console  =\t1970-01-01T01:01:40+01:00 \r\n", None, Some(at(100))),
            (
                "keyboard = 1970-01-01T00:00:09.5Z\nkeyboard = 1970-01-01T00:00:02Z\n",
                { Some(Presence::At(Timestamp::from_millisecond(9500).unwrap())) },
                None,
            ),
            ("console = ongoing\nconsole = 1970-01-01T00:00:02Z\n", None, Some(Presence::Ongoing)),
        ] {
            assert_eq!(parse(text), (Said { keyboard, console }, vec![]), "{text:?}");
        }
    }

    #[test]
    fn malformed_lines_are_told_with_their_place_and_the_others_count() {
        let text = "keyboard = soon\n  mouse = ongoing\nongoing\n\nconsole = ongoing\nkeyboard =\nä = 1\n";
        let (said, malformed) = parse(text);
        assert_eq!(said, Said { keyboard: None, console: Some(Presence::Ongoing) });
        let expected = [
            "line 1, column 12: \"soon\" is neither \"ongoing\" nor a time such as 2026-11-24T08:30:00Z",
            "line 2, column 3: \"mouse\" is neither \"keyboard\" nor \"console\"",
            "line 3, column 1: \"ongoing\" has no \"=\": \"keyboard = WHEN\" was expected",
            "line 6, column 11: \"\" is neither \"ongoing\" nor a time such as 2026-11-24T08:30:00Z",
            "line 7, column 1: \"ä\" is neither \"keyboard\" nor \"console\"",
        ];
        assert_eq!(malformed.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn messages_are_bounded_in_number_and_length() {
        let (_, malformed) = parse(&format!("{}\n", "x".repeat(1000)).repeat(1000));
        assert_eq!(malformed.len(), MAX_MALFORMED);
        assert!(malformed.iter().all(|one| one.message.len() < 120));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)((keyboard|console| ?= ?|ongoing|1970-01-01T00:00:0|Z|\n|.){0,20})") {
            parse(&text);
        }
    }
}
