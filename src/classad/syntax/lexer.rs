//! Splits ClassAd text into tokens.
//!
//! Text that is no token becomes [`Tok::Bad`], which no grammar rule accepts. An error would come too early: where the
//! long form stops reading a value, the rest of the line is ignored, broken or not.

use super::literal::{Escapes, quoted};
use crate::functions::leading_number;

/// How a text spells strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The new syntax: C escapes, and adjacent strings join.
    New,
    /// The long form: a backslash stands for itself, except in `\"`.
    Old,
}

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tok<'t> {
    /// An integer literal, with a minus directly before it.
    Int(i64),
    /// A real literal.
    Real(f64),
    /// A string literal, its escapes replaced.
    Str(String),
    /// A bare word that is not reserved.
    Ident(&'t str),
    /// A name in single quotes.
    Quoted(String),
    /// A reserved word, in lower case.
    Word(&'static str),
    /// An operator or other punctuation.
    Sym(&'static str),
    /// Text that is no token. The message says what would have been right there.
    Bad(&'static str),
    /// The end of the text.
    End,
}

const WORDS: [&str; 6] = ["true", "false", "undefined", "error", "is", "isnt"];

/// The longest punctuation that the text starts with, except `?`, which may have white space in it.
fn symbol(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        [b'=', b'?', b'=', ..] => "=?=",
        [b'=', b'!', b'=', ..] => "=!=",
        [b'=', b'=', ..] => "==",
        [b'=', ..] => "=",
        [b'>', b'>', b'>', ..] => ">>>",
        [b'>', b'>', ..] => ">>",
        [b'>', b'=', ..] => ">=",
        [b'>', ..] => ">",
        [b'<', b'<', ..] => "<<",
        [b'<', b'=', ..] => "<=",
        [b'<', ..] => "<",
        [b'!', b'=', ..] => "!=",
        [b'!', ..] => "!",
        [b'&', b'&', ..] => "&&",
        [b'&', ..] => "&",
        [b'|', b'|', ..] => "||",
        [b'|', ..] => "|",
        [b'+', ..] => "+",
        [b'-', ..] => "-",
        [b'*', ..] => "*",
        [b'/', ..] => "/",
        [b'%', ..] => "%",
        [b'~', ..] => "~",
        [b'^', ..] => "^",
        [b':', ..] => ":",
        [b'.', ..] => ".",
        [b',', ..] => ",",
        [b';', ..] => ";",
        [b'(', ..] => "(",
        [b')', ..] => ")",
        [b'[', ..] => "[",
        [b']', ..] => "]",
        [b'{', ..] => "{",
        [b'}', ..] => "}",
        _ => return None,
    })
}

/// A token, and where it starts and ends, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<'t> {
    pub(crate) tok: Tok<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads tokens one after another.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    pos: usize,
    dialect: Dialect,
    /// Whether the last token ends an operand, so that a minus after it is an operator.
    after_operand: bool,
    /// The last token, if it is a closing bracket.
    closed: Option<&'static str>,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, dialect: Dialect) -> Self {
        Self { text, pos: 0, dialect, after_operand: false, closed: None }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// The next token; [`Tok::End`] again and again at the end.
    pub(crate) fn next(&mut self) -> Spanned<'t> {
        if let Some(bad) = self.skip_blanks() {
            return bad;
        }
        let start = self.pos;
        let tok = self.token();
        self.closed = match tok {
            Tok::Sym(bracket @ (")" | "]" | "}")) => Some(bracket),
            _ => None,
        };
        self.after_operand = match &tok {
            Tok::Int(_) | Tok::Real(_) | Tok::Str(_) | Tok::Ident(_) | Tok::Quoted(_) => true,
            Tok::Word(word) => !word.starts_with("is"),
            Tok::Sym(_) => self.closed.is_some(),
            Tok::Bad(_) | Tok::End => false,
        };
        Spanned { tok, start, end: self.pos }
    }

    /// Skips white space and comments. A comment without an end is returned as a bad token.
    fn skip_blanks(&mut self) -> Option<Spanned<'t>> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_space);
            self.pos += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.pos += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Some(self.open_comment());
                };
                self.pos += end + 4;
            } else {
                return None;
            }
        }
    }

    /// The token for a comment without an end. After a closing bracket, HTCondor reads such a comment as another of
    /// these brackets.
    fn open_comment(&mut self) -> Spanned<'t> {
        let start = self.pos;
        self.pos = self.text.len();
        let tok = self.closed.take().map_or(Tok::Bad("'*/' to end the comment"), Tok::Sym);
        Spanned { tok, start, end: self.pos }
    }

    fn token(&mut self) -> Tok<'t> {
        let rest = self.rest();
        let mut bytes = rest.bytes();
        let (Some(first), second) = (bytes.next(), bytes.next().unwrap_or(0)) else { return Tok::End };
        match first {
            b'0'..=b'9' => self.number(rest, false),
            b'.' if second.is_ascii_digit() => self.number(rest, false),
            b'-' if !self.after_operand && starts_number(rest) => self.number(rest, true),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(rest),
            b'"' => self.quoted('"').map_or_else(Tok::Bad, Tok::Str),
            b'\'' => self.quoted('\'').map_or_else(Tok::Bad, Tok::Quoted),
            b'?' => self.question(rest),
            // HTCondor reads `..` as one point.
            b'.' if second == b'.' => {
                if rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit) {
                    return self.two_points(rest);
                }
                self.pos += 1;
                self.take(".")
            }
            _ => {
                if let Some(symbol) = symbol(rest.as_bytes()) {
                    return self.take(symbol);
                }
                self.pos += rest.chars().next().map_or(1, char::len_utf8);
                Tok::Bad("a ClassAd token")
            }
        }
    }

    fn take(&mut self, symbol: &'static str) -> Tok<'t> {
        self.pos += symbol.len();
        Tok::Sym(symbol)
    }

    /// `?`, or `?:` with or without white space in it.
    fn question(&mut self, rest: &str) -> Tok<'t> {
        let after = rest.get(1..).unwrap_or_default().trim_start_matches(is_space);
        if after.starts_with(':') {
            self.pos += rest.len() - after.len() + 1;
            return Tok::Sym("?:");
        }
        self.take("?")
    }

    fn word(&mut self, rest: &'t str) -> Tok<'t> {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        self.pos += end;
        match WORDS.iter().find(|reserved| reserved.eq_ignore_ascii_case(word)) {
            Some(reserved) => Tok::Word(reserved),
            None => Tok::Ident(word),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, &'static str> {
        let escapes = match self.dialect {
            Dialect::New => Escapes::C,
            Dialect::Old => Escapes::QuoteOnly,
        };
        let (text, length) = match quoted(self.rest(), quote, escapes) {
            Ok(read) => read,
            Err(fault) => {
                self.pos = self.text.len();
                return Err(fault);
            }
        };
        self.pos += length;
        Ok(text)
    }

    /// Two points and digits. HTCondor takes the text for a number, fails to read it, and gets 0.
    fn two_points(&mut self, rest: &str) -> Tok<'t> {
        let digits = rest.trim_start_matches('.');
        let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let exponent = after.strip_prefix(['e', 'E']).unwrap_or_default();
        let number = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let end = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let left = if end.len() < number.len() { end } else { after };
        self.pos += rest.len() - left.len();
        Tok::Real(0.0)
    }

    /// The number whose `0x` was read. HTCondor has no hexadecimal integers, but reads `0x1.8` as C does if decimal
    /// digits, and perhaps an exponent, follow the point. With a minus in front, HTCondor reads a hexadecimal integer
    /// as 0.
    fn hexadecimal(&mut self, rest: &str, negative: bool) -> Tok<'t> {
        let digits = |from: usize, is_digit: fn(&u8) -> bool| {
            rest.get(from..).unwrap_or_default().bytes().take_while(is_digit).count()
        };
        let whole = digits(0, u8::is_ascii_hexdigit);
        let point = rest.as_bytes().get(whole) == Some(&b'.');
        let fraction = if point { digits(whole + 1, u8::is_ascii_digit) } else { 0 };
        if whole > 0 && fraction > 0 {
            let end = exponent(rest, whole + 1 + fraction);
            self.pos += 1 + end.unwrap_or(rest.len());
            let Some(text) = end.and_then(|end| rest.get(..end)) else { return Tok::Bad("an exponent") };
            let text = format!("{}0x{text}", if negative { "-" } else { "" });
            return leading_number(&text).map_or(Tok::Bad("a number"), |(number, _)| Tok::Real(number));
        }
        if negative && whole > 0 && !point {
            self.pos += 1 + whole;
            return Tok::Int(0);
        }
        Tok::Bad("a decimal integer (there is no hexadecimal)")
    }

    /// An integer or a real, with the minus in front if there is one.
    fn number(&mut self, rest: &str, negative: bool) -> Tok<'t> {
        let digits =
            |from: usize| rest.get(from..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
        let byte = |at: usize| rest.as_bytes().get(at).copied().unwrap_or(0);
        let start = usize::from(negative);
        let whole = digits(start);
        let mut end = start + whole;
        let mut real = false;
        if byte(end) == b'.' {
            let fraction = digits(end + 1);
            if fraction == 0 {
                self.pos += end + 1;
                return Tok::Bad("a digit after the decimal point");
            }
            end += 1 + fraction;
            real = true;
        }
        let Some(after) = exponent(rest, end) else {
            self.pos += end + 1;
            return Tok::Bad("an exponent");
        };
        real |= after > end;
        end = after;
        let text = rest.get(..end).unwrap_or_default();
        self.pos += end;
        if real {
            return text.parse().map_or(Tok::Bad("a number"), Tok::Real);
        }
        if matches!(byte(end), b'x' | b'X') && text.ends_with('0') && whole == 1 {
            return self.hexadecimal(rest.get(end + 1..).unwrap_or_default(), negative);
        }
        if whole > 1 && byte(start) == b'0' && !(negative && octal(text)) {
            // After a minus, leading zeros are allowed if all digits are octal; the number is decimal all the same.
            return Tok::Bad("a decimal integer without leading zeros");
        }
        // HTCondor reads an integer that does not fit as 0.
        Tok::Int(text.parse().unwrap_or(0))
    }
}

/// Where an exponent that may start at `at` ends; `at` if there is none. `None`: an exponent without digits.
fn exponent(rest: &str, at: usize) -> Option<usize> {
    let byte = |at: usize| rest.as_bytes().get(at).copied().unwrap_or(0);
    if !matches!(byte(at), b'e' | b'E') {
        return Some(at);
    }
    let start = at + 1 + usize::from(matches!(byte(at + 1), b'+' | b'-'));
    let digits = rest.get(start..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(start + digits)
}

fn octal(text: &str) -> bool {
    text.bytes().skip(1).all(|digit| matches!(digit, b'0'..=b'7'))
}

/// Whether C's `isspace` is true of a character.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn starts_number(rest: &str) -> bool {
    let mut bytes = rest.bytes().skip(1);
    match (bytes.next(), bytes.next()) {
        (Some(b'.'), Some(second)) => second.is_ascii_digit(),
        (Some(first), _) => first.is_ascii_digit(),
        _ => false,
    }
}
