//! Finds an option by the beginning of its name, as HTCondor's tools do.

/// An option of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolOption<T: 'static> {
    /// The whole name, without a dash.
    pub name: &'static str,
    /// How many letters of the name suffice.
    pub least: usize,
    /// The effect of the option.
    pub does: T,
}

/// A row of a tool's table of options.
pub const fn known<T>(name: &'static str, least: usize, does: T) -> ToolOption<T> {
    ToolOption { name, least, does }
}

/// An option that a user typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<'w, T> {
    /// The option's whole name.
    pub name: &'static str,
    /// The effect of the option.
    pub does: T,
    /// The text behind a colon, as in `-af:h`.
    pub more: Option<&'w str>,
}

/// The option that a word means: a dash and enough letters of the name, or two dashes and the whole name; then perhaps a colon
/// and more. The first option of the table wins. `None`: the word is no option of the table.
pub fn find<'w, T: Copy>(word: &'w str, table: &[ToolOption<T>]) -> Option<Given<'w, T>> {
    let letters = word.strip_prefix('-')?;
    let (letters, whole) = letters.strip_prefix('-').map_or((letters, false), |letters| (letters, true));
    let (letters, more) = match letters.split_once(':') {
        Some((letters, more)) => (letters, Some(more)),
        None => (letters, None),
    };
    let means = |known: &&ToolOption<T>| {
        let enough = if whole { letters == known.name } else { letters.len() >= known.least };
        !letters.is_empty() && enough && known.name.starts_with(letters)
    };
    table.iter().find(means).map(|known| Given { name: known.name, does: known.does, more })
}

/// The words of a command line, one after the other.
#[derive(Clone, Debug)]
pub struct Words<'w> {
    rest: &'w [String],
}

impl<'w> Words<'w> {
    /// The words behind the name of the program.
    pub fn new(words: &'w [String]) -> Self {
        Self { rest: words }
    }

    /// The next word if that is no option, nor a lone dash.
    pub fn next_plain(&mut self) -> Option<&'w str> {
        self.rest.first().filter(|word| !word.starts_with('-'))?;
        self.next()
    }

    /// The words up to the next option. A lone dash ends them too, and is skipped.
    pub fn plain(&mut self) -> Vec<&'w str> {
        let mut words = Vec::new();
        while let Some(word) = self.next_plain() {
            words.push(word);
        }
        if self.rest.first().is_some_and(|word| word == "-") {
            self.next();
        }
        words
    }

    /// The word that an option needs.
    ///
    /// # Errors
    /// When there is no more word: a message that says what the option needs.
    pub fn needed(&mut self, option: &str, what: &str) -> Result<&'w str, String> {
        self.next().ok_or_else(|| format!("Error: -{option} requires {what}"))
    }
}

impl<'w> Iterator for Words<'w> {
    type Item = &'w str;

    fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[ToolOption<u8>] =
        &[ToolOption { name: "long", least: 1, does: 1 }, ToolOption { name: "limit", least: 3, does: 2 }];

    #[test]
    fn options_are_found_by_their_beginning() {
        let found = |word| find(word, TABLE).map(|given| (given.does, given.more));
        assert_eq!(found("-l"), Some((1, None)));
        assert_eq!(found("-long:json"), Some((1, Some("json"))));
        assert_eq!(found("-lim"), Some((2, None)));
        assert_eq!(found("--limit"), Some((2, None)));
        for word in ["-li", "--l", "-longer", "-", "long", "-:", ""] {
            assert_eq!(found(word), None, "{word}");
        }
    }

    #[test]
    fn words_end_at_an_option_or_a_dash() {
        let words: Vec<String> = ["a", "b", "-", "c", "-x"].map(str::to_owned).to_vec();
        let mut words = Words::new(&words);
        assert_eq!(words.plain(), ["a", "b"]);
        assert_eq!(words.plain(), ["c"]);
        assert_eq!(words.next(), Some("-x"));
        assert_eq!(words.needed("limit", "a number"), Err("Error: -limit requires a number".to_owned()));
    }
}
