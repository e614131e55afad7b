//! Statements: the meaning of one line.

use super::text::{Text, is_space};

/// A line that is neither blank, nor comment, nor part of a conditional, nor within a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// `NAME = value`, and the other assignments.
    Assign { name: Text, how: Assignment, value: Text },
    /// `use CATEGORY : names`
    Use { category: Text, names: Text },
    /// `include OPTIONS : path`
    Include { options: Text, path: Text },
    /// `error : message` and `warning : message`
    Message { fatal: bool, text: Text },
    /// `[section]`
    Section,
}

/// How an assignment changes its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// `=`
    Set,
    /// `:`, which is obsolete
    Colon,
    /// `+=`, and `+,=` or `+&&=` with what separates the values
    Append(&'static str),
    /// `@=`, which is followed by the tag that ends the block
    Block,
}

/// Parses a line that is neither blank nor a comment, a conditional or a part of a block.
pub(super) fn parse(line: &Text) -> Result<Statement, &'static str> {
    let bytes = line.bytes();
    let name_end = bytes.iter().position(|byte| is_space(*byte) || is_plain_operator(*byte));
    let Some(name_end) = name_end else {
        return match bytes.first() {
            Some(b'[') => Ok(Statement::Section),
            _ => Err("expected NAME = value: there is no operator"),
        };
    };
    let (at, end, how) = operator(line, name_end)?;
    let name = line.slice(0, name_end);
    let words = line.slice(name_end, at).trimmed();
    let value = line.slice(skip_blanks(line, end), line.len());
    if how == Assignment::Colon {
        let keyword = name.bytes().strip_prefix(b"@").unwrap_or(name.bytes());
        if keyword.eq_ignore_ascii_case(b"use") {
            return Ok(Statement::Use { category: words, names: value });
        }
        if keyword.eq_ignore_ascii_case(b"include") {
            return Ok(Statement::Include { options: words, path: value });
        }
        let fatal = keyword.eq_ignore_ascii_case(b"error");
        if fatal || keyword.eq_ignore_ascii_case(b"warning") {
            return Ok(Statement::Message { fatal, text: value });
        }
    }
    Ok(Statement::Assign { name, how, value })
}

fn is_plain_operator(byte: u8) -> bool {
    matches!(byte, b'=' | b':')
}

fn skip_blanks(line: &Text, mut at: usize) -> usize {
    while line.byte(at).is_some_and(is_space) {
        at += 1;
    }
    at
}

/// Where the operator starts and ends, and which operator it is. Words between the name and the operator are ignored
/// unless the statement has a keyword.
fn operator(line: &Text, name_end: usize) -> Result<(usize, usize, Assignment), &'static str> {
    let is_operator = |byte: u8| is_plain_operator(byte) || matches!(byte, b'@' | b'+');
    let mut at = name_end;
    while let Some(byte) = line.byte(at) {
        if is_operator(byte) {
            break;
        }
        at += 1;
    }
    match (line.byte(at), line.byte(at + 1)) {
        (Some(b'='), _) => Ok((at, at + 1, Assignment::Set)),
        (Some(b':'), _) => Ok((at, at + 1, Assignment::Colon)),
        (Some(b'@'), Some(b'=')) => Ok((at, at + 2, Assignment::Block)),
        (Some(b'+'), _) if let Some((end, separator)) = append(line, at) => {
            Ok((at, end, Assignment::Append(separator)))
        }
        (Some(b'@'), _) => Err("expected = after @"),
        (Some(b'+'), _) => Err("expected = after +"),
        _ => Err("expected NAME = value: there is no operator"),
    }
}

/// Where an operator that starts with `+` ends, and what it puts between the values. `None`: it is no operator.
fn append(line: &Text, at: usize) -> Option<(usize, &'static str)> {
    let sign = line.byte(at + 1)?;
    if sign == b'=' {
        return Some((at + 2, " "));
    }
    let (_, one, two) = SEPARATORS.iter().find(|(separator, ..)| *separator == sign)?;
    let doubled = line.byte(at + 2) == Some(sign);
    let end = at + 2 + usize::from(doubled);
    (line.byte(end) == Some(b'=')).then_some((end + 1, if doubled { *two } else { *one }))
}

/// The characters that may stand between `+` and `=`, and what they put between the values if they stand there once or
/// twice.
const SEPARATORS: [(u8, &str, &str); 5] =
    [(b',', ",", " ,, "), (b';', ";", " ;; "), (b'|', "|", " || "), (b'&', "&", " && "), (b'*', "*", " ** ")];

#[cfg(test)]
mod tests {
    use super::super::text::Place;
    use super::*;

    fn text(text: &str) -> Text {
        Text::at(text, Place::DEFAULT)
    }

    #[track_caller]
    fn assigns(line: &str, expected: (&str, Assignment, &str)) {
        let (name, how, value) = expected;
        let expected = Statement::Assign { name: text(name), how, value: text(value) };
        assert_eq!(parse(&text(line)), Ok(expected), "{line}");
    }

    #[test]
    fn assignments() {
        assigns("A = 1 ", ("A", Assignment::Set, "1 "));
        assigns("A=", ("A", Assignment::Set, ""));
        assigns("A : 1", ("A", Assignment::Colon, "1"));
        assigns("A += 1", ("A", Assignment::Append(" "), "1"));
        assigns("A +=+1", ("A", Assignment::Append(" "), "+1"));
        assigns("A +,= 1", ("A", Assignment::Append(","), "1"));
        assigns("A +&&= 1", ("A", Assignment::Append(" && "), "1"));
        assigns("A @=end", ("A", Assignment::Block, "end"));
        assigns("A some words = 1", ("A", Assignment::Set, "1"));
        assigns("A+=1", ("A+", Assignment::Set, "1"));
        assigns("use = 1", ("use", Assignment::Set, "1"));
        assigns("= 1", ("", Assignment::Set, "1"));
    }

    #[test]
    fn keywords() {
        let names = text("a, b(c)");
        assert_eq!(parse(&text("@Use ROLE : a, b(c)")), Ok(Statement::Use { category: text("ROLE"), names }));
        let include = Statement::Include { options: text("ifexist"), path: text("/a b") };
        assert_eq!(parse(&text("include  ifexist : /a b")), Ok(include));
        let message = Statement::Message { fatal: true, text: text("no") };
        assert_eq!(parse(&text("error:no")), Ok(message));
        assert_eq!(parse(&text("[section]")), Ok(Statement::Section));
    }

    #[test]
    fn lines_without_an_operator_are_errors() {
        for line in ["word", "two words", "A + = 1", "A ++= 1", "A @ = 1", "[two words]", "A +: 1"] {
            assert!(parse(&text(line)).is_err(), "{line}");
        }
    }
}
