//! A text as lines: trimmed, with continued lines joined.

use std::str::SplitInclusive;

use super::text::{Text, is_space};

/// The lines of a text as HTCondor reads them.
///
/// A backslash at the end of a line joins the next line, whose leading white space is dropped. A comment does not
/// continue. Within a continued line, a comment is dropped except for a backslash at its end, which continues the
/// line. A last line without a newline is taken as it stands.
pub(super) struct Lines<'a> {
    physical: SplitInclusive<'a, char>,
    source: u32,
    line: u32,
    /// `#opt:oldcomment`: a comment is continued like any other line, and is text within a continued line.
    pub old_comments: bool,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str, source: u32) -> Self {
        Self { physical: text.split_inclusive('\n'), source, line: 0, old_comments: false }
    }

    /// The number of the line that was read last.
    pub fn line(&self) -> u32 {
        self.line
    }
}

impl Iterator for Lines<'_> {
    type Item = Text;

    fn next(&mut self) -> Option<Text> {
        let mut buffer = Text::default();
        let mut any = false;
        for line in self.physical.by_ref() {
            any = true;
            self.line += 1;
            let start = buffer.len();
            let Some(whole) = line.strip_suffix('\n') else {
                buffer.append(&Text::line(line, self.source, self.line));
                break;
            };
            buffer.append(&Text::line(whole, self.source, self.line));
            if !goes_on(&mut buffer, start, self.old_comments) {
                return Some(buffer);
            }
        }
        (any && !buffer.is_empty()).then_some(buffer)
    }
}

/// Trims the line that starts at `start` and drops a backslash at its end. Returns whether that backslash joins the
/// next line.
fn goes_on(buffer: &mut Text, start: usize, old_comments: bool) -> bool {
    let mut end = buffer.len();
    while end > start && buffer.byte(end - 1).is_some_and(is_space) {
        end -= 1;
    }
    buffer.truncate(end);
    let mut first = start;
    while buffer.byte(first).is_some_and(is_space) {
        first += 1;
    }
    let mut comment = buffer.byte(first) == Some(b'#');
    if comment && start > 0 && !old_comments {
        first = end - 1;
        comment = false;
    }
    buffer.cut(start, first);
    if buffer.bytes().last() != Some(&b'\\') {
        return false;
    }
    buffer.truncate(buffer.len() - 1);
    !comment || old_comments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let lines: Vec<String> = Lines::new(text, 2).map(|line| line.as_str().into_owned()).collect();
        assert_eq!(lines, expected, "{text:?}");
    }

    #[test]
    fn lines_are_trimmed_and_joined() {
        check("  A = 1  \n\n\tB\n", &["A = 1", "", "B"]);
        check("a\\\n   b\nc", &["ab", "c"]);
        check("a \\\n   b\n", &["a b"]);
        check("a \\  \n  \\\n b\n", &["a b"]);
        check("a\\\n\nb\n", &["a", "b"]);
        check("a\\\\\n b\n", &["a\\b"]);
        check("a\\\n", &["a"]);
        check("\r\na\\\r\n b\r\n", &["", "ab"]);
    }

    #[test]
    fn comments_do_not_continue() {
        check("# a \\\nb\n", &["# a ", "b"]);
        check("\\\n#b\nc\n", &["#b", "c"]);
    }

    #[test]
    fn a_comment_in_a_continued_line_is_its_last_character() {
        check("a\\\n# b\\\n c\n", &["ac"]);
        check("a\\\n# b\n c\n", &["ab", "c"]);
        check("a\\\n#\n", &["a#"]);
    }

    #[test]
    fn a_last_line_without_a_newline_is_taken_as_it_stands() {
        check("a\n  b \\", &["a", "  b \\"]);
        check("a\\\n  #b ", &["a  #b "]);
    }

    #[test]
    fn old_comments_continue() {
        let mut lines = Lines::new("#a\\\nb\nc\\\n#d\n", 2);
        lines.old_comments = true;
        assert_eq!(lines.map(|line| line.as_str().into_owned()).collect::<Vec<_>>(), ["#ab", "c#d"]);
    }

    #[test]
    fn joined_text_knows_its_places() {
        let line = Lines::new("a = 1 + \\\n   2\n", 2).next().unwrap();
        let place = line.place(8).unwrap();
        assert_eq!((place.line, place.column), (2, 4));
    }
}
