//! Text in which each byte knows its place in a source, through joins, cuts and expansions.

use std::borrow::Cow;

/// A place in a source. The source is an index into the configuration's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub source: u32,
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// The place of compiled-in defaults.
    pub const DEFAULT: Self = Self { source: 0, line: 0, column: 0 };
    /// The place of what the host predefines.
    pub const DETECTED: Self = Self { source: 1, line: 0, column: 0 };
}

/// A text, and the place in a source that each of its bytes comes from.
/// [`Config::position_in`](super::Config::position_in) looks a place up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Text {
    /// A text that comes from one place as a whole.
    pub(super) fn at(text: &str, place: Place) -> Self {
        Self { bytes: text.as_bytes().to_vec(), places: vec![place; text.len()] }
    }

    /// A line of a source, without its newline.
    pub(super) fn line(text: &str, source: u32, line: u32) -> Self {
        let mut column = 0;
        let mut places = Vec::with_capacity(text.len());
        for byte in text.bytes() {
            // The bytes of one character share a column.
            column += u32::from(byte & 0xC0 != 0x80);
            places.push(Place { source, line, column });
        }
        Self { bytes: text.as_bytes().to_vec(), places }
    }

    /// The text. If a function cut a character in two, the text has a replacement character there.
    pub fn as_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The byte at an offset.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The place of the byte at an offset; past the end, the place of the last byte.
    pub(super) fn place(&self, at: usize) -> Option<Place> {
        self.places.get(at).or(self.places.last()).copied()
    }

    /// The place of a character, by its line and column, both from 1.
    pub(super) fn place_at(&self, line: usize, column: usize) -> Option<Place> {
        let text = self.as_str();
        let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let rest = text.get(start..)?;
        let within: usize = rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        self.place(start + within)
    }

    pub(super) fn push(&mut self, byte: u8, place: Place) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.places.extend_from_slice(&other.places);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.places.truncate(len);
    }

    /// A copy of the bytes from `from` up to `to`.
    ///
    /// A range beyond the text is cut off.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let to = to.min(self.len());
        let from = from.min(to);
        Self {
            bytes: self.bytes.get(from..to).unwrap_or_default().to_vec(),
            places: self.places.get(from..to).unwrap_or_default().to_vec(),
        }
    }

    /// Removes the bytes from `from` up to `to`.
    pub(super) fn cut(&mut self, from: usize, to: usize) {
        let to = to.min(self.len());
        if from < to {
            self.bytes.drain(from..to);
            self.places.drain(from..to);
        }
    }

    /// A copy without white space at both ends.
    #[must_use]
    pub fn trimmed(&self) -> Self {
        let blank = |byte: &u8| is_space(*byte);
        let start = self.bytes.iter().take_while(|byte| blank(byte)).count();
        let tail = self.bytes.iter().rev().take_while(|byte| blank(byte)).count();
        self.slice(start, self.len() - tail.min(self.len()))
    }
}

/// Whether C's `isspace` is true of a byte.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

/// Whether a byte may stand in a name.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_know_their_columns_in_characters() {
        let text = Text::line("é = ü x", 2, 7);
        assert_eq!(text.place(2), Some(Place { source: 2, line: 7, column: 2 }));
        assert_eq!(text.place(100), Some(Place { source: 2, line: 7, column: 7 }));
        assert_eq!(text.place_at(1, 5), Some(Place { source: 2, line: 7, column: 5 }));
        assert_eq!(text.trimmed().slice(0, 2).as_str(), "é");
        assert_eq!(text.slice(1, 2).as_str(), "\u{FFFD}");
    }

    #[test]
    fn blanks_are_trimmed_on_both_sides() {
        assert_eq!(Text::at(" \t a b\r\n", Place::DEFAULT).trimmed().as_str(), "a b");
        assert_eq!(Text::at(" \t ", Place::DEFAULT).trimmed().as_str(), "");
    }
}
