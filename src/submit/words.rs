//! The syntaxes of arguments and environments: the old ones (V1), and those in double quotes (V2).

use std::collections::BTreeMap;

use classad::{join_arguments, split_arguments};

/// The words of an argument list, and in which syntax they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) words: Vec<String>,
    pub(crate) is_v1: bool,
}

/// Whether a text is in double quotes, and thus in the new syntax.
pub(crate) fn is_quoted(text: &str) -> bool {
    text.trim_start().starts_with('"')
}

/// Reads the value of `arguments`. The error: the offset in the text, and what is wrong there.
pub(crate) fn arguments(text: &str) -> Result<Words, (usize, String)> {
    if is_quoted(text) {
        return Ok(Words { words: split(&unquoted(text)?).map_err(|message| (0, message))?, is_v1: false });
    }
    let plain = without_backslashes(text)?;
    let words = plain.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
    Ok(Words { words: words.map(str::to_owned).collect(), is_v1: true })
}

/// Reads the value of `arguments2`, which must be in double quotes.
pub(crate) fn arguments_quoted(text: &str) -> Result<Words, (usize, String)> {
    if is_quoted(text) { arguments(text) } else { Err((0, "expected arguments in double quotes".to_owned())) }
}

/// Takes the double quotes off. A doubled quote within stands for one.
fn unquoted(text: &str) -> Result<String, (usize, String)> {
    let open = text.find('"').unwrap_or_default();
    let mut plain = String::new();
    let mut rest = text.get(open + 1..).unwrap_or_default().char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c != '"' {
            plain.push(c);
            continue;
        }
        if rest.next_if(|(_, next)| *next == '"').is_some() {
            plain.push('"');
            continue;
        }
        let behind = open + 1 + at + 1;
        if text.get(behind..).is_some_and(|behind| !behind.trim().is_empty()) {
            return Err((
                behind,
                "expected nothing behind the closing quote: write a quote within as \"\"".to_owned(),
            ));
        }
        return Ok(plain);
    }
    Err((open, "the double quote is not closed".to_owned()))
}

/// Replaces `\"` by `"`. A bare double quote is an error.
fn without_backslashes(text: &str) -> Result<String, (usize, String)> {
    let mut plain = String::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' if rest.next_if(|(_, next)| *next == '"').is_some() => plain.push('"'),
            '"' => {
                let message = "a double quote within arguments is written \\\", or all arguments stand in double quotes";
                return Err((at, message.to_owned()));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}

/// Splits a raw text of the new syntax.
fn split(text: &str) -> Result<Vec<String>, String> {
    split_arguments(text).ok_or_else(|| "a single quote is not closed".to_owned())
}

/// An environment: variables in the order of their names. An entry without a value is an unexpanded `$$()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment(pub(crate) BTreeMap<String, Option<String>>);

impl Environment {
    /// Reads the value of `environment` in either syntax. The error: what is wrong.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut environment = Self::default();
        if is_quoted(text) {
            for entry in split(&unquoted(text).map_err(|(_, message)| message)?)? {
                environment.add(&entry)?;
            }
            return Ok(environment);
        }
        let (delimiter, text) = match text.chars().next() {
            Some(first @ (';' | '|')) => (first, text.get(1..).unwrap_or_default()),
            _ => (';', text),
        };
        for entry in text.split([delimiter, '\n']) {
            let entry = entry.trim_start_matches([' ', '\t', '\n', '\r']);
            if !entry.is_empty() {
                environment.add(entry)?;
            }
        }
        Ok(environment)
    }

    fn add(&mut self, entry: &str) -> Result<(), String> {
        match entry.split_once('=') {
            None if entry.contains("$$") => {
                self.0.insert(entry.to_owned(), None);
            }
            None => return Err(format!("expected NAME=value: there is no = in '{entry}'")),
            Some(("", _)) => return Err(format!("expected NAME=value: there is no name in '{entry}'")),
            Some((name, value)) => {
                self.0.insert(name.to_owned(), Some(value.to_owned()));
            }
        }
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, value)| match value {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        })
    }

    /// The raw text of the new syntax.
    pub(crate) fn to_v2(&self) -> String {
        join_arguments(self.entries())
    }

    /// The raw text of the old syntax. `None`: an entry has a delimiter or a newline in it.
    pub(crate) fn to_v1(&self) -> Option<String> {
        let entries: Vec<String> = self.entries().collect();
        let safe = entries.iter().all(|entry| !entry.contains([';', '\n']));
        safe.then(|| entries.join(";"))
    }
}

/// The variables that `getenv` lets through, if its value is a list of names: `*` stands for anything, `!` excludes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    wanted: Vec<String>,
    excluded: Vec<String>,
}

impl Filter {
    pub(crate) fn read(list: &str) -> Self {
        let mut filter = Self::default();
        for word in list.split([',', ';', ' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()) {
            match word.strip_prefix('!').map(str::trim) {
                Some("") => {}
                Some(name) => filter.excluded.push(name.to_ascii_lowercase()),
                None => filter.wanted.push(word.to_ascii_lowercase()),
            }
        }
        filter
    }

    pub(crate) fn lets(&self, name: &str, value: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches_stars(pattern, &name));
        !value.contains('\n') && !any(&self.excluded) && (self.wanted.is_empty() || any(&self.wanted))
    }
}

/// Whether a name matches a pattern in which one `*` stands for anything.
fn matches_stars(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        arguments(text).unwrap_or_else(|(at, message)| panic!("{text}: {at}: {message}")).words
    }

    #[test]
    fn arguments_in_both_syntaxes() {
        for (text, expected) in [
            ("one two", &["one", "two"] as &[&str]),
            ("one 'two three'", &["one", "'two", "three'"]),
            (r#"say \"hi\""#, &["say", "\"hi\""]),
            (r#""one 'two three' ''""#, &["one", "two three", ""]),
            (r#""it''s 'it''s'""#, &["its", "it's"]),
            (r#" "a ""b"" c" "#, &["a", "\"b\"", "c"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_have_a_place() {
        for (text, at) in [(r#"a "b""#, 2), (r#""a" b"#, 3), (r#""a"#, 0), (r#""a 'b""#, 0)] {
            assert_eq!(arguments(text).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }

    #[test]
    fn words_are_quoted_as_in_ads() {
        let words = ["a", "", "b  c", "it's", "'"].map(str::to_owned);
        assert_eq!(join_arguments(&words), "a '' b'  'c it''''s ''''");
        assert_eq!(split(&join_arguments(&words)), Ok(words.to_vec()));
    }

    #[test]
    fn environments_in_both_syntaxes() {
        for (text, v2) in [
            ("A=1;B=two words", Ok("A=1 B=two' 'words")),
            ("|A=1;2|B=2", Ok("A=1;2 B=2")),
            (r#""B=2 A='x y' C=""q""""#, Ok("A=x' 'y B=2 C=\"q\"")),
            ("A", Err("expected NAME=value: there is no = in 'A'")),
            ("=1", Err("expected NAME=value: there is no name in '=1'")),
            ("$$(X)", Ok("$$(X)")),
        ] {
            let read = Environment::read(text).map(|environment| environment.to_v2());
            assert_eq!(read, v2.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
        assert_eq!(
            Environment::read("A=1;B=2").ok().and_then(|read| read.to_v1()),
            Some("A=1;B=2".to_owned())
        );
    }

    #[test]
    fn a_filter_wants_and_excludes() {
        let filter = Filter::read("PATH, CONDA_*, !CONDA_EXE");
        for (name, lets) in [("path", true), ("CONDA_PREFIX", true), ("CONDA_EXE", false), ("HOME", false)] {
            assert_eq!(filter.lets(name, "x"), lets, "{name}");
        }
        assert!(Filter::read("!SECRET").lets("HOME", "/"));
    }
}
