//! Reads the ads of a file one at a time, in either syntax.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::stop::{Stop, unusable};
use classad::{Ad, Expr, Name, ParseError};

/// An ad, and the line where it begins.
pub(super) struct LocatedAd {
    pub(super) ad: Ad,
    /// The line of its first attribute, from 1.
    pub(super) line: usize,
}

/// Reads the ads of a file, in either syntax: a text in brackets is an ad in the new syntax; other lines, up to a
/// blank one, are an ad in the long form.
pub(super) struct Ads<'r> {
    path: String,
    input: Box<dyn BufRead + 'r>,
    known: ParsedLines,
    bytes: Vec<u8>,
    /// The line that is being read.
    text: String,
    /// How many bytes of the line have been read.
    done: usize,
    /// The number of the line, from 1; 0 before the first.
    line: usize,
}

impl<'r> Ads<'r> {
    /// Opens the file of this path, or standard input if the path is `-`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(path: &Path, stdin: &'r mut dyn BufRead) -> Result<Self, Stop> {
        let input: Box<dyn BufRead + 'r> = if path == Path::new("-") {
            Box::new(stdin)
        } else {
            Box::new(BufReader::new(File::open(path).map_err(|error| unusable(path.display(), error))?))
        };
        Ok(Self::new(path.display().to_string(), input))
    }

    pub(super) fn new(path: String, input: Box<dyn BufRead + 'r>) -> Self {
        let known = ParsedLines::default();
        Self { path, input, known, bytes: Vec::new(), text: String::new(), done: 0, line: 0 }
    }

    /// The next ad; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or something in it is not a ClassAd.
    pub(super) fn next_ad(&mut self) -> Result<Option<LocatedAd>, Stop> {
        loop {
            // Ads in the new syntax may stand in a list; its braces and commas are skipped.
            let between = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',');
            self.done += self.rest().find(|c| !between(c)).unwrap_or(self.rest().len());
            let rest = self.rest();
            if rest.starts_with('[') {
                return self.new_syntax().map(Some);
            }
            if !(rest.is_empty() || rest.starts_with('#') || rest.starts_with("//")) {
                return self.long_form().map(Some);
            }
            if !self.read_line()? {
                return Ok(None);
            }
        }
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The error of an ad that begins in this line.
    pub(super) fn wrong(&self, line: usize, what: &str) -> Stop {
        Stop::Unusable(format!("{}: line {line}, column 1: {what}", self.path))
    }

    fn rest(&self) -> &str {
        self.text.get(self.done..).unwrap_or_default()
    }

    /// Reads the next line. Returns false at the end of the file.
    fn read_line(&mut self) -> Result<bool, Stop> {
        self.bytes.clear();
        self.text.clear();
        self.done = 0;
        let read = self.input.read_until(b'\n', &mut self.bytes);
        if read.map_err(|error| Stop::Unusable(format!("{}: {error}", self.path)))? == 0 {
            return Ok(false);
        }
        self.line += 1;
        match std::str::from_utf8(self.bytes.trim_ascii_end()) {
            Ok(text) => self.text.push_str(text),
            Err(error) => {
                let column = error.valid_up_to() + 1;
                let (path, line) = (&self.path, self.line);
                return Err(Stop::Unusable(format!(
                    "{path}: line {line}, column {column}: this is no UTF-8"
                )));
            }
        }
        Ok(true)
    }

    fn unparsed(&self, error: &ParseError) -> Stop {
        Stop::Unusable(format!("{}: {error}", self.path))
    }

    /// Reads an ad in the long form: an attribute in each line, up to a blank line.
    fn long_form(&mut self) -> Result<LocatedAd, Stop> {
        let line = self.line;
        let mut ad = Ad::new();
        while !self.rest().trim().is_empty() {
            let before = (self.line.saturating_sub(1), self.text.len() - self.rest().len());
            let rest = self.text.get(self.done..).unwrap_or_default();
            let attribute = self.known.attribute(rest);
            ad.extend(attribute.map_err(|error| self.unparsed(&error.shifted(before.0, before.1)))?);
            if !self.read_line()? {
                break;
            }
        }
        Ok(LocatedAd { ad, line })
    }

    /// Reads an ad in the new syntax: from `[` to its `]`.
    fn new_syntax(&mut self) -> Result<LocatedAd, Stop> {
        let line = self.line;
        let before = self.text.get(..self.done).unwrap_or_default().chars().count();
        let (mut text, mut brackets) = (String::new(), Brackets::default());
        loop {
            let rest = self.text.get(self.done..).unwrap_or_default();
            let end = brackets.end(rest);
            let part = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
            text.push_str(part);
            self.done += part.len();
            if end.is_some() || !self.read_line()? {
                break;
            }
            text.push('\n');
        }
        let ad = Ad::parse_new(&text);
        let ad = ad.map_err(|error| self.unparsed(&error.shifted(line.saturating_sub(1), before)))?;
        Ok(LocatedAd { ad, line })
    }
}

/// Finds the end of an ad in brackets, line by line.
#[derive(Default)]
struct Brackets {
    depth: usize,
    within: Within,
}

/// The part of the text to which the next character belongs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Code,
    /// A text in these quotes.
    Quotes(u8),
    /// A comment: `/* */`.
    Comment,
}

impl Brackets {
    /// How many bytes of the line belong to the ad; `None` if the ad does not end in this line.
    fn end(&mut self, line: &str) -> Option<usize> {
        let bytes = line.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            let next = bytes.get(at + 1).copied();
            at += 1;
            match (self.within, byte) {
                (Within::Code, b'[') => self.depth += 1,
                (Within::Code, b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                (Within::Code, b'"' | b'\'') => self.within = Within::Quotes(byte),
                (Within::Code, b'/') if next == Some(b'/') => return None,
                (Within::Code, b'/') if next == Some(b'*') => {
                    self.within = Within::Comment;
                    at += 1;
                }
                (Within::Quotes(_), b'\\') => at += 1,
                (Within::Quotes(quote), _) if byte == quote => self.within = Within::Code,
                (Within::Comment, b'*') if next == Some(b'/') => {
                    self.within = Within::Code;
                    at += 1;
                }
                _ => {}
            }
        }
        None
    }
}

/// How many lines [`ParsedLines`] keeps in each of its two maps.
const LINES: usize = 1 << 16;

/// Lines that were parsed before. The ads of a pool have most lines in common: each is parsed and stored once.
#[derive(Default)]
struct ParsedLines {
    young: HashMap<Box<str>, Option<(Name, Expr)>>,
    /// The lines of the last full `young`. A line that is not read again before `young` is full again is forgotten.
    old: HashMap<Box<str>, Option<(Name, Expr)>>,
}

impl ParsedLines {
    fn attribute(&mut self, line: &str) -> Result<Option<(Name, Expr)>, ParseError> {
        if let Some(known) = self.young.get(line) {
            return Ok(known.clone());
        }
        let attribute = match self.old.remove(line) {
            Some(known) => known,
            None => Ad::parse_long_line(line)?,
        };
        if self.young.len() >= LINES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(line.into(), attribute.clone());
        Ok(attribute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, String)>, String> {
        let mut ads = Ads::new("f".to_owned(), Box::new(text.as_bytes()));
        let mut all = Vec::new();
        loop {
            match ads.next_ad() {
                Ok(Some(found)) => all.push((found.line, found.ad.to_string())),
                Ok(None) => return Ok(all),
                Err(Stop::Unusable(message)) => return Err(message),
                Err(Stop::Io(error)) => panic!("{error}"),
            }
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is compared with what may fail")]
    fn some(ads: &[(usize, &str)]) -> Result<Vec<(usize, String)>, String> {
        Ok(ads.iter().map(|(line, ad)| (*line, (*ad).to_owned())).collect())
    }

    #[test]
    fn blank_lines_are_between_ads_in_the_long_form() {
        let text = "# two\n\nA = 1\n# c\nB = \"x\\y\"\n\n\n \nA = 2\r\nB = 3";
        assert_eq!(read(text), some(&[(3, "[ A = 1; B = \"x\\\\y\" ]"), (9, "[ A = 2; B = 3 ]")]));
        assert_eq!(read(""), some(&[]));
        assert_eq!(read("\n# nothing\n"), some(&[]));
    }

    #[test]
    fn ads_in_brackets_stand_where_they_like() {
        let text = "// three\n{ [A = \"]\"; B = [C = {1}]], [\nA = 1 /* ] */; // ]\nB = '\\']'\n] ,[A=3]}\n";
        let expected =
            [(2, "[ A = \"]\"; B = [ C = { 1 } ] ]"), (2, "[ A = 1; B = '\\']' ]"), (5, "[ A = 3 ]")];
        assert_eq!(read(text), some(&expected));
    }

    #[test]
    fn what_is_no_ad_is_told_with_file_line_and_column() {
        let at = |text: &str| read(text).unwrap_err();
        assert!(at("A = 1\n\nB = 1 +\n").starts_with("f: line 3, column 8: expected an operand"));
        assert!(at("A = 1\nword\n").starts_with("f: line 2, column 5: expected '='"));
        assert!(at("[A = 1]\n [B = ]").starts_with("f: line 2, column 7: expected"));
        assert!(at("[A = 1;\n\n").starts_with("f: line "));
        let mut ads = Ads::new("f".to_owned(), Box::new(&b"A = 1\nB = \"\xff\"\n"[..]));
        let Err(Stop::Unusable(message)) = ads.next_ad() else { panic!("it was read") };
        assert_eq!(message, "f: line 2, column 6: this is no UTF-8");
    }

    #[test]
    fn a_line_that_is_known_is_the_same_expression() {
        let mut known = ParsedLines::default();
        let first = known.attribute("A = B + 1").unwrap().unwrap().1;
        for n in 0..3 * LINES {
            known.attribute(&format!("N = {n}")).unwrap();
            if n % 1000 == 0 {
                assert_eq!(known.attribute("A = B + 1").unwrap().unwrap().1.address(), first.address());
            }
        }
        assert!(known.young.len() + known.old.len() <= 2 * LINES);
    }
}
