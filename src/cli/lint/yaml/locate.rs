//! Finds the place in the file of each character of a scalar's text.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

use granit_parser::ScalarStyle;

use super::Scalar;

/// The byte offset in the file of each character of the scalar's text; `None` if the text cannot be found in the
/// file. The caller then takes the start of the scalar.
pub(super) fn offsets(file: &str, span: Range<usize>, scalar: &Scalar) -> Option<Vec<usize>> {
    let text = scalar.text.as_str();
    match scalar.style {
        ScalarStyle::Literal => literal(file, span.start, text),
        ScalarStyle::Folded => folded(file, span.start, text),
        style => flow(file.get(span.clone())?, span.start, style, text),
    }
}

/// The offsets of a literal block. Its lines are those of the file without the indentation. The parser's span starts
/// with the first line that is not empty, after its indentation.
fn literal(file: &str, start: usize, text: &str) -> Option<Vec<usize>> {
    let visible = text.trim_start_matches('\n');
    let mut offsets = vec![start; text.len() - visible.len()];
    let mut at = start;
    for line in visible.split_inclusive('\n') {
        let whole = file.get(at..)?.split_inclusive('\n').next().unwrap_or_default();
        let written = whole.trim_end_matches('\n').trim_end_matches('\r');
        let content = line.trim_end_matches('\n');
        if !content.is_empty() && !written.ends_with(content) {
            return None;
        }
        let first = at + written.len().saturating_sub(content.len());
        offsets.extend(content.char_indices().map(|(i, _)| first + i));
        if line.ends_with('\n') {
            offsets.push(at + written.len());
        }
        at += whole.len();
    }
    Some(offsets)
}

/// The offsets of a folded block. Folding changes only white space: all other characters are in the file in the same
/// order.
fn folded(file: &str, start: usize, text: &str) -> Option<Vec<usize>> {
    let mut at = start;
    let mut offsets = Vec::with_capacity(text.len());
    for c in text.chars() {
        if is_space(c) {
            offsets.push(at);
            at += usize::from(file.get(at..)?.starts_with(' '));
            continue;
        }
        let rest = file.get(at..)?;
        at += rest.len() - rest.trim_start_matches(is_space).len();
        if !file.get(at..)?.starts_with(c) {
            return None;
        }
        offsets.push(at);
        at += c.len_utf8();
    }
    Some(offsets)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// The offsets of a plain or quoted scalar, which is decoded once more to find the place of each character.
fn flow(written: &str, start: usize, style: ScalarStyle, text: &str) -> Option<Vec<usize>> {
    let quoted = style != ScalarStyle::Plain;
    let inner = if quoted { written.get(1..written.len().checked_sub(1)?)? } else { written };
    let start = start + usize::from(quoted);
    let mut decoder = Decoder { chars: inner.char_indices().peekable(), text: inner, style, out: Vec::new() };
    decoder.run()?;
    let same = decoder.out.iter().map(|(c, _)| *c).eq(text.chars());
    same.then(|| decoder.out.iter().map(|(_, at)| start + at).collect())
}

struct Decoder<'a> {
    chars: Peekable<CharIndices<'a>>,
    text: &'a str,
    style: ScalarStyle,
    out: Vec<(char, usize)>,
}

impl Decoder<'_> {
    fn run(&mut self) -> Option<()> {
        while let Some((at, c)) = self.chars.next() {
            match (c, self.style) {
                ('\'', ScalarStyle::SingleQuoted) => {
                    self.chars.next()?;
                    self.out.push(('\'', at));
                }
                ('\\', ScalarStyle::DoubleQuoted) => self.escape(at)?,
                (c, _) if is_space(c) => self.space(at)?,
                _ => self.out.push((c, at)),
            }
        }
        Some(())
    }

    /// Decodes white space: blanks within a line stay; one line break becomes a space; of several line breaks, all
    /// but the first stay.
    fn space(&mut self, at: usize) -> Option<()> {
        let rest = self.text.get(at..)?;
        let run = rest.get(..rest.len() - rest.trim_start_matches(is_space).len())?;
        let breaks: Vec<usize> = run.match_indices('\n').map(|(i, _)| at + i).collect();
        match breaks.as_slice() {
            [] => self.out.extend(run.char_indices().map(|(i, c)| (c, at + i))),
            [one] => self.out.push((' ', *one)),
            [_, more @ ..] => self.out.extend(more.iter().map(|at| ('\n', *at))),
        }
        self.skip_to(at + run.len());
        Some(())
    }

    fn skip_to(&mut self, end: usize) {
        while self.chars.next_if(|(i, _)| *i < end).is_some() {}
    }

    fn escape(&mut self, at: usize) -> Option<()> {
        let (next, c) = self.chars.next()?;
        let plain = match c {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'e' => '\x1b',
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            'U' => self.hex(8)?,
            '\n' | '\r' => return self.joined_line(next),
            other => other,
        };
        self.out.push((plain, at));
        Some(())
    }

    /// Decodes an escaped line break, which vanishes with the indentation after it; empty lines after it stay.
    fn joined_line(&mut self, at: usize) -> Option<()> {
        let rest = self.text.get(at..)?;
        let run = rest.get(..rest.len() - rest.trim_start_matches(is_space).len())?;
        self.out.extend(run.match_indices('\n').skip(1).map(|(i, _)| ('\n', at + i)));
        self.skip_to(at + run.len());
        Some(())
    }

    /// Decodes a character's number. JSON writes a character beyond the first plane as a surrogate pair.
    fn hex(&mut self, digits: usize) -> Option<char> {
        let high = self.number(digits)?;
        if digits != 4 || !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        let (_, '\\') = self.chars.next()? else { return None };
        let (_, 'u') = self.chars.next()? else { return None };
        let low = self.number(4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0_u32, |sum, _| {
            self.chars.next().and_then(|(_, c)| c.to_digit(16)).map(|digit| sum * 16 + digit)
        })
    }
}
