//! Conditionals: `if`, `elif`, `else`, `endif`.

use super::names::Names;
use super::templates;
use super::text::Place;
use classad::Expr;

/// The version of HTCondor whose language this is. `version` in a condition is compared with it.
pub(super) const VERSION: [u32; 3] = [25, 14, 1];

/// The deepest conditionals within conditionals.
const MAX_DEPTH: usize = 63;

/// One `if` without its `endif` so far.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Whether the lines of this branch count, if the conditional itself counts.
    on: bool,
    /// Whether a branch was chosen already.
    chosen: bool,
    /// Whether the `else` was read.
    last: bool,
}

/// The conditionals that are open at a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditionals {
    levels: Vec<Level>,
}

/// A line that belongs to a conditional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    If,
    Elif,
    Else,
    Endif,
}

/// The keyword that a line starts with, and the length of the keyword.
pub(super) fn keyword(line: &[u8]) -> Option<(Keyword, usize)> {
    let words: [(&[u8], Keyword); 4] = [
        (b"if", Keyword::If),
        (b"else", Keyword::Else),
        (b"elif", Keyword::Elif),
        (b"endif", Keyword::Endif),
    ];
    words.into_iter().find_map(|(word, keyword)| {
        let (start, rest) = line.split_at_checked(word.len())?;
        let ends = rest.first().is_none_or(|byte| super::text::is_space(*byte));
        (ends && start.eq_ignore_ascii_case(word)).then_some((keyword, word.len()))
    })
}

impl Conditionals {
    /// Whether lines count at this place.
    pub fn enabled(&self) -> bool {
        self.levels.iter().all(|level| level.on)
    }

    /// Whether a conditional is open at this place.
    pub fn inside(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Reads a line of a conditional. `condition` is asked only if it decides. If it cannot be decided, it counts as
    /// false, and its error is returned.
    pub fn take(
        &mut self,
        keyword: Keyword,
        condition: impl FnOnce() -> Result<bool, String>,
    ) -> Result<(), String> {
        match keyword {
            Keyword::If => {
                let (truth, outcome) = if self.enabled() { split(condition()) } else { (false, Ok(())) };
                if self.levels.len() >= MAX_DEPTH {
                    return Err(format!("if is nested more than {MAX_DEPTH} deep"));
                }
                self.levels.push(Level { on: truth, chosen: truth, last: false });
                outcome
            }
            Keyword::Elif => {
                let outer = self.levels.iter().rev().skip(1).all(|level| level.on);
                let Some(level) = self.levels.last_mut() else { return Err("elif without if".to_owned()) };
                let (truth, outcome) =
                    if outer && !level.chosen { split(condition()) } else { (false, Ok(())) };
                if level.last {
                    return Err("elif is not allowed after else".to_owned());
                }
                level.on = truth;
                level.chosen |= truth;
                outcome
            }
            Keyword::Else => match self.levels.last_mut() {
                None => Err("else without if".to_owned()),
                Some(Level { last: true, .. }) => Err("else is not allowed after else".to_owned()),
                Some(level) => {
                    level.on = !level.chosen;
                    level.last = true;
                    Ok(())
                }
            },
            Keyword::Endif => match self.levels.pop() {
                None => Err("endif without if".to_owned()),
                Some(_) => Ok(()),
            },
        }
    }
}

fn split(truth: Result<bool, String>) -> (bool, Result<(), String>) {
    match truth {
        Ok(truth) => (truth, Ok(())),
        Err(error) => (false, Err(error)),
    }
}

/// Decides a condition, which is one test, perhaps with `!` before it. `written` is what was written of a condition that was expanded.
pub(super) fn decide(names: &dyn Names, condition: &str, written: Option<&str>) -> Result<bool, String> {
    let whole = condition.trim_ascii();
    let (negated, test) = match whole.strip_prefix('!') {
        Some(rest) => (true, rest.trim_ascii_start()),
        None => (false, whole),
    };
    // A condition that expands to nothing is false.
    let truth = if written.is_some() && test.is_empty() { Ok(false) } else { simple(names, test) };
    truth.map(|truth| truth != negated).map_err(|reason| {
        let shown = written.map_or(whole, str::trim_ascii);
        let becomes = if shown == whole { String::new() } else { format!(", which is {whole} here,") };
        format!("{shown}{becomes} is not a valid condition because {reason}")
    })
}

fn simple(names: &dyn Names, test: &str) -> Result<bool, String> {
    let word = |word: &str| test.eq_ignore_ascii_case(word);
    if test.is_empty() {
        return Err("it is empty".to_owned());
    }
    match Shape::of(test) {
        Shape::Number => Ok(leading_real(test) != 0.0),
        Shape::Word if word("true") || word("yes") || word("t") => Ok(true),
        Shape::Word if word("false") || word("no") || word("f") => Ok(false),
        Shape::Word if word("version") => version(""),
        Shape::Word if word("defined") => Ok(false),
        Shape::Comparison if let Some(rest) = after_word(test, "version") => version(rest),
        Shape::Words if let Some(rest) = after_word(test, "defined") => defined(names, rest),
        Shape::Comparison | Shape::Words | Shape::Complex => in_ad(names, test),
        Shape::Word => Err("it is neither true nor false".to_owned()),
    }
}

/// Decides a condition that starts with an expression, by the value of the expression in the ad. As in HTCondor, whatever
/// follows the expression is ignored.
fn in_ad(names: &dyn Names, test: &str) -> Result<bool, String> {
    let Some((ad, env)) = names.ad() else {
        return Err("complex conditionals are not supported".to_owned());
    };
    let expr = Expr::parse_prefix(test).map_err(|error| format!("it is no expression: {}", error.fault()))?;
    let value = names.evaluate_in(&expr, ad, env).value;
    value.as_bool_equiv().ok_or_else(|| format!("it is {value}, which is neither true nor false"))
}

/// The text after a keyword. `None`: the text does not start with the keyword, or a letter or digit follows at once.
fn after_word<'a>(test: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = test.split_at_checked(word.len())?;
    let ends = !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    (ends && start.eq_ignore_ascii_case(word)).then(|| rest.trim_ascii_start())
}

/// The form of a condition, by the kinds of characters in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Number,
    /// A name or a keyword.
    Word,
    /// Perhaps `defined` and its argument.
    Words,
    /// Perhaps `version` and its argument.
    Comparison,
    Complex,
}

/// The kinds of characters, as bits.
mod kind {
    pub const DIGIT: u8 = 1;
    /// A point or an `e` of a number.
    pub const FLOAT: u8 = 2;
    pub const ALPHA: u8 = 4;
    pub const NAME: u8 = 8;
    pub const COMPARE: u8 = 16;
    pub const SPACE: u8 = 32;
    pub const COLON: u8 = 64;
    pub const OTHER: u8 = 128;
}

/// The kinds of characters in a condition. The kind of a point, an `e` or a sign depends on the characters before it.
fn kinds(text: &str) -> u8 {
    use kind::{ALPHA, COLON, COMPARE, DIGIT, FLOAT, NAME, OTHER, SPACE};
    let text = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let mut kinds = 0;
    for (at, byte) in text.iter().enumerate() {
        let next = text.get(at + 1).copied();
        kinds |= match byte {
            b'0'..=b'9' => DIGIT,
            b'.' if kinds == DIGIT || next.is_none_or(|next| next.is_ascii_digit()) => FLOAT,
            b'e' | b'E' if kinds & !FLOAT == DIGIT => FLOAT,
            b'-' | b'+' if kinds == DIGIT | FLOAT => FLOAT,
            b'a'..=b'z' | b'A'..=b'Z' => ALPHA,
            b'_' | b'/' | b'.' => NAME,
            b'<'..=b'>' => COMPARE,
            b'!' if next == Some(b'=') => COMPARE,
            b':' => COLON,
            byte if super::text::is_space(*byte) => SPACE,
            _ => OTHER,
        };
    }
    kinds
}

impl Shape {
    fn of(text: &str) -> Self {
        use kind::{ALPHA, COLON, COMPARE, DIGIT, FLOAT, NAME, SPACE};
        let kinds = kinds(text);
        // A point belongs to a number only if there are digits.
        if kinds & (DIGIT | FLOAT) == FLOAT {
            return Self::Complex;
        }
        match kinds & !FLOAT {
            DIGIT => Self::Number,
            all if all & ALPHA == 0 => Self::Complex,
            all if all & !(ALPHA | DIGIT | NAME) == 0 => Self::Word,
            all if all & !(ALPHA | DIGIT | NAME | SPACE) == 0 => Self::Words,
            all if all & !(ALPHA | NAME | SPACE | COLON) == 0 && all & SPACE != 0 => Self::Words,
            all if all == ALPHA | SPACE | COMPARE | DIGIT => Self::Comparison,
            _ => Self::Complex,
        }
    }
}

/// The number that a text starts with; 0 if the text starts with none.
fn leading_real(text: &str) -> f64 {
    (1..=text.len()).rev().find_map(|end| text.get(..end)?.parse().ok()).unwrap_or(0.0)
}

/// Decides `defined NAME`, `defined use CATEGORY` and `defined use CATEGORY:NAME`.
fn defined(names: &dyn Names, what: &str) -> Result<bool, String> {
    if what.is_empty() {
        return Ok(false);
    }
    let crufty = ["yes", "t", "no", "f"].iter().any(|word| what.eq_ignore_ascii_case(word));
    match Shape::of(what) {
        Shape::Number => Ok(true),
        Shape::Word if what.eq_ignore_ascii_case("true") || what.eq_ignore_ascii_case("false") => Ok(true),
        Shape::Word => Ok(names.find(what, Place::DEFAULT).map_or(crufty, |value| !value.is_empty())),
        _ => match what.split_at_checked(4) {
            Some((start, rest)) if start.eq_ignore_ascii_case("use ") => defined_use(rest.trim_ascii_start()),
            _ => Err("the argument of defined must be a name, a boolean or a number".to_owned()),
        },
    }
}

fn defined_use(what: &str) -> Result<bool, String> {
    if what.contains([' ', '\t', '\r']) {
        return Err("a template within defined use must have no blanks".to_owned());
    }
    Ok(match what.split_once(':') {
        Some((category, name)) if !name.is_empty() => templates::find(category, name).is_some(),
        Some((category, _)) => templates::is_category(category),
        None => templates::is_category(what),
    })
}

/// Decides `version OPERATOR x.y[.z]`, a comparison with [`VERSION`].
fn version(test: &str) -> Result<bool, String> {
    let (negated, rest) = test.strip_prefix('!').map_or((false, test), |rest| (true, rest));
    let wanted = match rest.bytes().next() {
        Some(b'<') => std::cmp::Ordering::Less,
        Some(b'>') => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    };
    let rest = rest.strip_prefix(['<', '=', '>']).unwrap_or(rest);
    let (or_equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
    let literal = rest.trim_ascii_start();
    let literal = literal.strip_prefix(['v', 'V']).unwrap_or(literal);
    let Some(other) = version_literal(literal) else {
        return Err("the version literal is invalid: it must be x.y or x.y.z, from 6.0 on".to_owned());
    };
    let order = VERSION.cmp(&other);
    Ok((order == wanted || (or_equal && order.is_eq())) != negated)
}

/// Reads two or three numbers with points between them. If the third is missing, it is that of [`VERSION`].
fn version_literal(text: &str) -> Option<[u32; 3]> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let number = |text: &str| text.get(..digits(text))?.parse::<u32>().ok();
    let (major, rest) = text.split_once('.')?;
    let major = major.parse().ok().filter(|major| *major >= 6)?;
    let minor = number(rest)?;
    let patch = rest.get(digits(rest)..).and_then(|rest| rest.strip_prefix('.')).and_then(number);
    Some([major, minor, patch.unwrap_or(VERSION[2])])
}
