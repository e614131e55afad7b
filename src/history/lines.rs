//! Reads a file of any size line by line, in either direction.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// The bytes of the first read, when a file is read backwards.
const BLOCK: u64 = 64 << 10;
/// The most bytes of a line, about. A longer line is read as several lines, of which only the last in the file has an end: no
/// history has such lines.
const LONGEST: u64 = if cfg!(test) { 5000 } else { 16 << 20 };

/// A line without its end, and where it begins in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) begin: u64,
    pub(crate) text: Vec<u8>,
    /// Whether the line has its end in the file.
    pub(crate) ended: bool,
}

/// The lines of a file from the last to the first.
#[derive(Debug)]
pub(crate) struct Backwards<R> {
    file: R,
    /// Where `buffer` begins in the file.
    from: u64,
    /// The bytes that were read and not handed out.
    buffer: Vec<u8>,
    /// Whether the next line to hand out has its end.
    ended: bool,
    over: bool,
    block: u64,
}

impl<R: Read + Seek> Backwards<R> {
    /// The lines of the first `end` bytes of a file.
    pub(crate) fn before(mut file: R, end: u64) -> io::Result<Self> {
        let mut ended = false;
        let mut from = end;
        if let Some(last) = end.checked_sub(1) {
            file.seek(SeekFrom::Start(last))?;
            let mut byte = [0];
            file.read_exact(&mut byte)?;
            ended = byte == *b"\n";
            from = end - u64::from(ended);
        }
        Ok(Self { file, from, buffer: Vec::new(), ended, over: end == 0, block: BLOCK })
    }

    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut searched = 0;
        while !self.over {
            let fresh = self.buffer.get(..self.buffer.len().saturating_sub(searched)).unwrap_or_default();
            if let Some(at) = memchr::memrchr(b'\n', fresh) {
                let text = self.buffer.split_off(at + 1);
                self.buffer.pop();
                let begin = self.from + at as u64 + 1;
                return Ok(Some(Line { begin, text, ended: std::mem::replace(&mut self.ended, true) }));
            }
            if self.from == 0 {
                self.over = true;
                return Ok(Some(Line {
                    begin: 0,
                    text: std::mem::take(&mut self.buffer),
                    ended: self.ended,
                }));
            }
            if self.buffer.len() as u64 > LONGEST {
                let text = std::mem::take(&mut self.buffer);
                let ended = std::mem::replace(&mut self.ended, false);
                return Ok(Some(Line { begin: self.from, text, ended }));
            }
            searched = self.buffer.len();
            self.fill()?;
        }
        Ok(None)
    }

    /// Reads more of the file, before `buffer`. Each read for the same line is twice as long as the last, so that the cost of a
    /// line grows only with its length.
    fn fill(&mut self) -> io::Result<()> {
        self.block = if self.buffer.is_empty() { BLOCK } else { self.block.saturating_mul(2) };
        let length = self.block.min(self.from);
        self.from -= length;
        self.file.seek(SeekFrom::Start(self.from))?;
        let mut read = vec![0; usize::try_from(length).unwrap_or(0)];
        self.file.read_exact(&mut read)?;
        read.append(&mut self.buffer);
        self.buffer = read;
        Ok(())
    }
}

/// The lines of a file from the first to the last.
#[derive(Debug)]
pub(crate) struct Forwards<R> {
    file: R,
    at: u64,
}

impl<R: BufRead> Forwards<R> {
    /// The lines of a file that is read from `at` on.
    pub(crate) fn new(file: R, at: u64) -> Self {
        Self { file, at }
    }

    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        let read = (&mut self.file).take(LONGEST).read_until(b'\n', &mut text)?;
        if read == 0 {
            return Ok(None);
        }
        let begin = self.at;
        self.at += read as u64;
        let ended = text.pop_if(|last| *last == b'\n').is_some();
        Ok(Some(Line { begin, text, ended }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn backwards(text: &[u8]) -> Vec<Line> {
        let mut lines = Backwards::before(Cursor::new(text), text.len() as u64).unwrap();
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    fn forwards(text: &[u8]) -> Vec<Line> {
        let mut lines = Forwards::new(text, 0);
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    #[test]
    fn lines_are_the_same_in_both_directions() {
        for text in ["", "\n", "\n\n", "a", "a\n", "\na", "a\nb", "a\n\nb\n"] {
            let mut back = backwards(text.as_bytes());
            back.reverse();
            assert_eq!(back, forwards(text.as_bytes()), "{text:?}");
        }
        let long = (0..5000).map(|number| "x".repeat(number % 977)).collect::<Vec<_>>().join("\n");
        let mut back = backwards(long.as_bytes());
        back.reverse();
        assert_eq!(back, forwards(long.as_bytes()));
    }

    #[test]
    fn a_line_that_is_too_long_is_read_in_parts() {
        let text = format!("a\n{}\nb\n", "x".repeat(200_000));
        let whole = |lines: &[Line]| lines.iter().map(|line| line.text.len()).sum::<usize>();
        for mut lines in [forwards(text.as_bytes()), backwards(text.as_bytes())] {
            lines.sort_by_key(|line| line.begin);
            assert_eq!(
                (lines[0].text.as_slice(), lines[lines.len() - 1].text.as_slice()),
                (&b"a"[..], &b"b"[..])
            );
            assert_eq!(whole(&lines), 200_002);
            assert_eq!(lines.iter().filter(|line| line.ended).count(), 3);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_read_differently_in_the_two_directions(text in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300)) {
            let mut back = backwards(&text);
            back.reverse();
            prop_assert_eq!(back, forwards(&text));
        }
    }
}
