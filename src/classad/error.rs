//! Parse errors: where a text stops being ClassAd, what is wrong there, and what the author likely means.

use std::fmt;

/// A text that does not parse: the place where it stops being ClassAd, what stands there and what should.
///
/// The error prints like `line 1, column 14: expected an operand after '&&', found end of input`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    column: usize,
    expected: String,
    found: String,
    hint: Option<String>,
}

impl ParseError {
    /// The fault at a byte offset of the text.
    pub(crate) fn at(text: &str, offset: usize, expected: String, found: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        let hint = hint_at(text, offset);
        Self(Box::new(Fault { line, column, expected, found, hint }))
    }

    /// The same fault as seen in a larger text, in which the parsed text starts after `lines` lines and after
    /// `columns` characters of the next line.
    #[must_use]
    pub fn shifted(mut self, lines: usize, columns: usize) -> Self {
        if self.0.line == 1 {
            self.0.column += columns;
        }
        self.0.line += lines;
        self
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// The text that would have been right at the place, such as `an operand after '&&'`.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// The text at the place, such as `';'` or `end of input`.
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// The fault, and the advice if there is any, for a message that names the place in another way. Prints like
    /// `expected an operator or the end of the expression, found '='; write == to compare`.
    pub fn fault(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            let Fault { expected, found, hint, .. } = &*self.0;
            write!(f, "expected {expected}, found {found}")?;
            hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
        })
    }

    /// The advice for a mistake that people often make, such as `write == to compare`. None: the mistake is another one.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { line, column, .. } = &*self.0;
        write!(f, "line {line}, column {column}: {}", self.fault())
    }
}

/// Returns the advice for a text that stops being an expression at a byte offset. None: the mistake is none that people often make.
///
/// ```
/// assert_eq!(classad::hint_at("Memory => 5", 7).as_deref(), Some("write >= to compare"));
/// ```
pub fn hint_at(text: &str, offset: usize) -> Option<String> {
    let (before, at) = text.split_at_checked(offset)?;
    let left = before.trim_end();
    of_comment(before, at)
        .or_else(|| of_call(left, at))
        .or_else(|| of_comparison(left, at))
        .or_else(|| of_word(left, at))
        .or_else(|| of_unit(left, at))
        .or_else(|| of_semicolon(left, at))
        .or_else(|| at.starts_with(['“', '”', '„', '‘', '’']).then(|| "write straight quotes: \"".to_owned()))
}

fn of_comment(before: &str, at: &str) -> Option<String> {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let advice = if line.trim().is_empty() {
        "a comment begins with // in an expression"
    } else {
        "a comment needs a line of its own"
    };
    at.starts_with('#').then(|| advice.to_owned())
}

/// The advice for operators of other languages that are functions here, and for a string where only a name can be.
fn of_call(left: &str, at: &str) -> Option<String> {
    if at.starts_with("=~") || at.starts_with("!~") {
        return Some("write regexp(\"PATTERN\", NAME) to compare with a pattern".to_owned());
    }
    if first_word(at).eq_ignore_ascii_case("in") {
        return Some("write stringListMember(NAME, \"a,b\") for in".to_owned());
    }
    (at.starts_with('"') && left.ends_with('.'))
        .then(|| "a name with other characters than letters, digits and _ has single quotes".to_owned())
}

/// The advice for `=`, which assigns, and for other comparisons that no ClassAd has.
fn of_comparison(left: &str, at: &str) -> Option<String> {
    let last = left.chars().next_back()?;
    if at.starts_with('>') && last == '<' {
        return Some("write != to compare".to_owned());
    }
    let after = at.strip_prefix('=')?;
    let operator = match after.chars().next() {
        Some('>') => ">=",
        Some('<') => "<=",
        _ if ["=", "?=", "!="].iter().any(|more| after.starts_with(more)) => return None,
        _ if left.ends_with("!=") => "!=",
        _ => match last {
            '<' => "<=",
            '>' => ">=",
            '!' => "!=",
            _ => "==",
        },
    };
    Some(format!("write {operator} to compare"))
}

/// The operator that other languages have a word for: `&&` for `and`.
pub fn operator_for(word: &str) -> Option<&'static str> {
    let operators = [("and", "&&"), ("or", "||"), ("not", "!")];
    operators.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, operator)| operator)
}

/// The advice for a word that is an operator elsewhere: ClassAds take such a word for an attribute, so that the text breaks at the word,
/// or behind it.
fn of_word(left: &str, at: &str) -> Option<String> {
    let advice = |word: &str| operator_for(word).map(|operator| format!("write {operator} for {word}"));
    let (rest, last) = split_word(left);
    let here = || advice(first_word(at));
    let behind = || {
        let is_not =
            last.eq_ignore_ascii_case("not") && split_word(rest.trim_end()).1.eq_ignore_ascii_case("is");
        let is_name = rest.ends_with('.') || at.is_empty();
        if is_not { Some("write isnt for is not".to_owned()) } else { advice(last).filter(|_| !is_name) }
    };
    here().or_else(behind)
}

/// The advice for a number with a unit, such as `5GB`.
fn of_unit(left: &str, at: &str) -> Option<String> {
    let word = first_word(at);
    let (what, factor) = match word.to_ascii_lowercase().as_str() {
        "k" | "kb" | "ki" | "kib" => ("Disk is in KiB", 1.0),
        "m" | "mb" | "mi" | "mib" => ("Memory is in MiB", 1.0),
        "g" | "gb" | "gi" | "gib" => ("Memory is in MiB", 1024.0),
        "t" | "tb" | "ti" | "tib" => ("Memory is in MiB", 1_048_576.0),
        _ => return None,
    };
    let start = left.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let number = left.get(start..)?;
    let is_name = split_word(left).1.starts_with(|c: char| !c.is_ascii_digit());
    let amount: f64 = number.parse().ok().filter(|_| !is_name && number.len() < 16)?;
    let amount = (amount * factor).ceil();
    Some(format!("numbers have no units here: {what}, so {number}{word} is {amount}"))
}

/// The advice for a semicolon that is in no brackets.
fn of_semicolon(left: &str, at: &str) -> Option<String> {
    let after = at.strip_prefix(';')?;
    let advice = if after.trim().is_empty() {
        "leave out the semicolon"
    } else {
        "give what follows the semicolon a line of its own"
    };
    (!left.contains(['(', '[', '{'])).then(|| advice.to_owned())
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The word that a text begins with.
fn first_word(text: &str) -> &str {
    text.split(|c: char| !is_of_word(c)).next().unwrap_or_default()
}

/// A text without the word that the text ends with, and this word.
fn split_word(text: &str) -> (&str, &str) {
    text.split_at_checked(text.trim_end_matches(is_of_word).len()).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use crate::Expr;

    #[test]
    fn mistakes_that_people_often_make_have_advice() {
        for (text, expected) in [
            ("OpSys = \"LINUX\"", Some("write == to compare")),
            ("a === b", Some("write == to compare")),
            ("a !== b", Some("write != to compare")),
            ("a <> b", Some("write != to compare")),
            ("Memory => 5", Some("write >= to compare")),
            ("Memory =< 5", Some("write <= to compare")),
            ("Memory > = 5", Some("write >= to compare")),
            ("A and Memory > 1000", Some("write && for and")),
            ("A OR B", Some("write || for OR")),
            ("not HasDocker", Some("write ! for not")),
            ("A && not HasDocker", Some("write ! for not")),
            ("A is not undefined", Some("write isnt for is not")),
            ("Memory >= 5GB", Some("numbers have no units here: Memory is in MiB, so 5GB is 5120")),
            ("Memory >= 1.5 g", Some("numbers have no units here: Memory is in MiB, so 1.5g is 1536")),
            ("Disk > 10K", Some("numbers have no units here: Disk is in KiB, so 10K is 10")),
            ("2 # two", Some("a comment needs a line of its own")),
            ("A &&\n  # two\n B", Some("a comment begins with // in an expression")),
            ("\"x\"; +Bar = 3", Some("give what follows the semicolon a line of its own")),
            ("A > 1;", Some("leave out the semicolon")),
            ("Owner =~ \"a.*\"", Some("write regexp(\"PATTERN\", NAME) to compare with a pattern")),
            ("A && Owner !~ \"a.*\"", Some("write regexp(\"PATTERN\", NAME) to compare with a pattern")),
            ("Machine in (\"a\", \"b\")", Some("write stringListMember(NAME, \"a,b\") for in")),
            (
                "TARGET.NodeLabels.\"kubernetes.io/arch\" == 1",
                Some("a name with other characters than letters, digits and _ has single quotes"),
            ),
            ("Owner == “bob”", Some("write straight quotes: \"")),
            ("{1; 2}", None),
            ("= 5", None),
            ("a && == b", None),
            ("x1 GB", None),
            ("too long", None),
            ("A &&", None),
            ("", None),
        ] {
            let error = Expr::parse(text).unwrap_err();
            assert_eq!(error.hint(), expected, "{text}");
            assert_eq!(error.to_string().split_once("; ").map(|(_, hint)| hint), expected, "{text}");
        }
    }

    #[test]
    fn an_offset_that_is_none_has_no_advice() {
        assert_eq!(super::hint_at("é = 1", 1), None);
        assert_eq!(super::hint_at("a = 1", 9), None);
    }
}
