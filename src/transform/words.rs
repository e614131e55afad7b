//! The words of a command.

/// A word of a line, by the offsets of its bytes. Quotes around a word do not belong to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'l> {
    pub(crate) text: &'l str,
    /// Where the word starts, with its quote.
    pub(crate) start: usize,
    /// Where the rest of the line starts.
    end: usize,
}

/// A line that is read word by word. Words end at blanks; a word in quotes ends at the closing quote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'l> {
    line: &'l str,
    at: usize,
}

impl<'l> Words<'l> {
    pub(crate) fn of(line: &'l str) -> Self {
        Self { line, at: 0 }
    }

    /// Where the next word starts, or the end of the line.
    pub(crate) fn place(&self) -> usize {
        let rest = self.line.get(self.at..).unwrap_or_default();
        rest.find(|c| !is_blank(c)).map_or(self.line.len(), |blanks| self.at + blanks)
    }

    /// Reads the next word. `None`: the line ends.
    pub(crate) fn next(&mut self) -> Option<Word<'l>> {
        let start = self.place();
        let rest = self.line.get(start..)?;
        let first = rest.chars().next()?;
        let (text, end) = if matches!(first, '"' | '\'') {
            let inner = rest.get(1..).unwrap_or_default();
            let length = inner.find(first);
            let text = inner.get(..length.unwrap_or(inner.len())).unwrap_or_default();
            (text, length.map_or(self.line.len(), |length| start + length + 2))
        } else {
            let length = rest.find(is_blank).unwrap_or(rest.len());
            (rest.get(..length).unwrap_or_default(), start + length)
        };
        self.at = end;
        Some(Word { text, start, end })
    }

    /// Reads on behind a pattern that starts with the word: the text between two slashes, and the option letters behind it.
    /// There is no escape for a slash. `None`: the second slash is missing.
    pub(crate) fn pattern(&mut self, word: Word<'l>) -> Option<(&'l str, &'l str)> {
        let open = word.start + usize::from(!self.line.get(word.start..)?.starts_with('/')) + 1;
        let (pattern, rest) = self.line.get(open..)?.split_once('/')?;
        let letters = rest.find(is_blank).map_or(rest, |blank| rest.get(..blank).unwrap_or_default());
        self.at = open + pattern.len() + 1 + letters.len();
        Some((pattern, letters))
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        let mut words = Words::of(line);
        std::iter::from_fn(|| words.next()).map(|word| word.text).collect()
    }

    #[test]
    fn words_end_at_blanks_or_quotes() {
        assert_eq!(words("SET  a\t1 + 2"), ["SET", "a", "1", "+", "2"]);
        assert_eq!(words("SET 'a b'c \"d"), ["SET", "a b", "c", "d"]);
        assert_eq!(words("SET \""), ["SET", ""]);
        assert_eq!(words("  "), Vec::<&str>::new());
    }

    #[test]
    fn patterns_stand_between_slashes() {
        let read = |line: &'static str| {
            let mut words = Words::of(line);
            let word = words.next()?;
            let pattern = words.pattern(word)?;
            Some((pattern, words.next().map(|word| word.text)))
        };
        assert_eq!(read("/a b/iU c"), Some((("a b", "iU"), Some("c"))));
        assert_eq!(read("/a/"), Some((("a", ""), None)));
        assert_eq!(read("/a b"), None);
    }
}
