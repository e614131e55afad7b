//! Arguments and environment variables as condor_submit and cron jobs write them: plain, or in double quotes.
//!
//! White space separates plain arguments, and semicolons separate plain variables; a plain value has no way to quote
//! them. A value that begins with a double quote must end with a double quote, and `""` inside the value means one
//! double quote. White space separates the words of such a value; white space between single quotes belongs to a word,
//! and `''` between single quotes means one single quote.
//!
//! Source: the manual, condor_submit, "arguments" and "environment".

use std::collections::BTreeMap;

/// Reads arguments.
///
/// # Errors
/// The mistake in the quotes.
pub(super) fn arguments(text: &str) -> Result<Vec<String>, &'static str> {
    match unquoted(text)? {
        Some(inner) => words(&inner),
        None => Ok(text.split_ascii_whitespace().map(str::to_owned).collect()),
    }
}

/// Reads environment variables. If two have the same name, the last counts.
///
/// # Errors
/// The mistake in the quotes, or that a word is no `NAME=VALUE`.
pub(super) fn environment(text: &str) -> Result<BTreeMap<String, String>, &'static str> {
    let plain = || text.split(';').map(str::trim_ascii).filter(|variable| !variable.is_empty());
    let all = match unquoted(text)? {
        Some(inner) => words(&inner)?,
        None => plain().map(str::to_owned).collect(),
    };
    let variable = |word: String| {
        let (name, value) = word.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    };
    all.into_iter().map(variable).collect::<Option<_>>().ok_or("each variable is NAME=VALUE")
}

/// The text between double quotes; none if the text does not begin with one.
fn unquoted(text: &str) -> Result<Option<String>, &'static str> {
    const OPEN: &str = "it begins with a double quote and does not end with one; inside, \"\" stands for one";
    let Some(rest) = text.trim_ascii().strip_prefix('"') else { return Ok(None) };
    let inner = rest.strip_suffix('"').ok_or(OPEN)?;
    let pairs = inner.replace("\"\"", "");
    if pairs.contains('"') { Err(OPEN) } else { Ok(Some(inner.replace("\"\"", "\""))) }
}

fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' if quoted && characters.next_if_eq(&'\'').is_some() => {
                word.get_or_insert_default().push('\'');
            }
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            space if space.is_ascii_whitespace() && !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if quoted { Err("a single quote is not closed") } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_read_as_the_manual_says() {
        for (text, expected) in [
            ("", &[][..]),
            ("abc 123", &["abc", "123"]),
            ("  a   'b c' ", &["a", "'b", "c'"]),
            (r#""""#, &[]),
            (r#""one ""two"" 'spacey arg'""#, &["one", "\"two\"", "spacey arg"]),
            (r#""'it''s' x''y ''""#, &["it's", "xy", ""]),
        ] {
            assert_eq!(
                arguments(text),
                Ok(expected.iter().map(|word| (*word).to_owned()).collect()),
                "{text}"
            );
        }
        for text in [r#""one"#, r#""one" two"#, r#""one "two" three""#, r#"""#, r#""'one""#] {
            assert!(arguments(text).is_err(), "{text}");
        }
    }

    #[test]
    fn environments_are_read_as_the_manual_says() {
        for (text, expected) in [
            ("", &[][..]),
            ("A=1;B=x y", &[("A", "1"), ("B", "x y")]),
            (r#""A=1 B='x y' C=""q"" D=""#, &[("A", "1"), ("B", "x y"), ("C", "\"q\""), ("D", "")]),
            ("A=1; A=2=3;", &[("A", "2=3")]),
        ] {
            let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            assert_eq!(environment(text), Ok(expected.collect()), "{text}");
        }
        for text in ["A", "=1", "A=1;B", r#""A=1 B""#, r#""A=1"#] {
            assert!(environment(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)([\"'=; aä\n]{0,12})") {
            let _ = (arguments(&text), environment(&text));
        }
    }
}
