//! How functions read their arguments: as numbers, strings, lists.

use crate::eval::{Ctx, List, Val};
use crate::syntax::lexer::is_space;

/// Converts a double to an integer as the processor does: a number that does not fit becomes the smallest integer.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn to_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// An integer as a double.
#[allow(clippy::cast_precision_loss, reason = "the language mixes integers and doubles")]
pub(crate) fn to_real(number: i64) -> f64 {
    number as f64
}

/// A length as an integer.
pub(crate) fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The number that a text starts with, as C's `strtod` reads it, and how many bytes the number takes. `None`: the text
/// starts with no number.
pub(crate) fn leading_number(text: &str) -> Option<(f64, usize)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let blanks = text.len() - rest.len();
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let sign_bytes = rest.len() - unsigned.len();
    let (value, bytes) = special(unsigned).or_else(|| hexadecimal(unsigned)).or_else(|| decimal(unsigned))?;
    let value = if rest.starts_with('-') { -value } else { value };
    Some((value, blanks + sign_bytes + bytes))
}

fn special(text: &str) -> Option<(f64, usize)> {
    let starts = |word: &str| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    match () {
        () if starts("infinity") => Some((f64::INFINITY, 8)),
        () if starts("inf") => Some((f64::INFINITY, 3)),
        () if starts("nan") => Some((f64::NAN, 3)),
        () => None,
    }
}

/// Reads `0x1.8p3`, as C does.
fn hexadecimal(text: &str) -> Option<(f64, usize)> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let (mut value, mut count, mut used, mut scale) = (0.0, 0, 2, 0_i32);
    let mut point = false;
    for c in digits.chars() {
        match c.to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                count += 1;
                scale -= if point { 4 } else { 0 };
            }
            None if c == '.' && !point => point = true,
            None => break,
        }
        used += 1;
    }
    if count == 0 {
        return None;
    }
    let exponent = text.get(used..).and_then(|rest| rest.strip_prefix(['p', 'P'])).unwrap_or_default();
    let sign = usize::from(exponent.starts_with(['+', '-']));
    let width = exponent.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    if width > 0 {
        let power: i32 = exponent.get(..sign + width)?.parse().unwrap_or(if exponent.starts_with('-') {
            -9999
        } else {
            9999
        });
        scale = scale.saturating_add(power);
        used += 1 + sign + width;
    }
    Some((value * 2_f64.powi(scale), used))
}

fn decimal(text: &str) -> Option<(f64, usize)> {
    let digits =
        |from: usize| text.get(from..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
    let byte = |at: usize| text.as_bytes().get(at).copied().unwrap_or(0);
    let whole = digits(0);
    let mut end = whole;
    if byte(end) == b'.' {
        let fraction = digits(end + 1);
        if whole + fraction == 0 {
            return None;
        }
        end += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if matches!(byte(end), b'e' | b'E') {
        let sign = usize::from(matches!(byte(end + 1), b'+' | b'-'));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((text.get(..end)?.parse().ok()?, end))
}

/// The value as a number, for functions that take numbers, booleans, times, and strings that start with a number.
/// `None`: the value is no number, or the evaluation is out of steps.
pub(crate) fn lenient_number(ctx: &Ctx<'_>, value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Str(text) if !ctx.scan(text.len()) => None,
        Val::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Val::Int(number) => Some(to_real(*number)),
        Val::Real(number) => Some(*number),
        Val::RelTime(secs) => Some(to_c_int(*secs).into()),
        Val::AbsTime(time) => Some(to_real(time.secs)),
        Val::Str(text) => leading_number(text).map(|(number, _)| number),
        _ => None,
    }
}

/// A list argument. `Err` is what a function returns if the argument is no list.
pub(crate) fn list(value: Val<'_>) -> Result<List<'_>, Val<'_>> {
    match value {
        Val::List(list) => Ok(list),
        Val::Undefined => Err(Val::Undefined),
        _ => Err(Val::Error),
    }
}

/// The characters that end an item, prepared so that one look-up costs little.
///
/// A function looks each character of a text up, and both the text and the delimiters come from users: a search
/// through all delimiters each time would cost the product of their lengths.
pub(crate) struct Delimiters {
    /// The ASCII characters, a bit each.
    ascii: u128,
    /// The other characters, sorted.
    others: Vec<char>,
}

impl Delimiters {
    /// Prepares delimiters and pays for the work. `None`: the evaluation is out of steps.
    pub(crate) fn of(ctx: &Ctx<'_>, text: &str) -> Option<Self> {
        ctx.pay(text.len()).then(|| Self::new(text))
    }

    fn new(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).fold(0, |set, byte| set | (1_u128 << byte));
        let mut others: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        others.sort_unstable();
        others.dedup();
        Self { ascii, others }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ascii == 0 && self.others.is_empty()
    }

    pub(crate) fn contains(&self, c: char) -> bool {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => (self.ascii >> byte) & 1 == 1,
            _ => self.others.binary_search(&c).is_ok(),
        }
    }
}

/// The items of a string list: the text between delimiters, trimmed. Empty items are left out.
pub(crate) fn items<'t>(text: &'t str, delimiters: &'t Delimiters) -> impl Iterator<Item = &'t str> {
    items_as_they_are(text, delimiters)
        .map(|item| item.trim_matches(is_space))
        .filter(|item| !item.is_empty())
}

/// The same items with the white space around them.
pub(crate) fn items_as_they_are<'t>(
    text: &'t str,
    delimiters: &'t Delimiters,
) -> impl Iterator<Item = &'t str> {
    text.split(move |c: char| delimiters.contains(c)).filter(|part| !part.is_empty())
}

/// Converts a double to a C `int`, in which HTCondor counts seconds: a number that does not fit becomes the smallest
/// integer.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn to_c_int(number: f64) -> i32 {
    let whole = number.trunc();
    if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&whole) { whole as i32 } else { i32::MIN }
}

/// Converts an integer to a C `int`: the upper half is lost.
#[allow(clippy::cast_possible_truncation, reason = "that is the point")]
pub(crate) fn wrap_c_int(number: i64) -> i32 {
    number as i32
}

/// The value of `outcome`, whether the outcome is `Ok` or `Err`: a function that ends early returns `Err`.
pub(crate) fn answer<'a>(outcome: Result<Val<'a>, Val<'a>>) -> Val<'a> {
    outcome.unwrap_or_else(|early| early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_the_characters_of_their_text() {
        for text in ["", ", ", "\0\x7f~", "aa,,a", "é", "ée,É€é", "\u{80}\u{ff}", "🙂,🙁"] {
            let delimiters = Delimiters::new(text);
            assert_eq!(delimiters.is_empty(), text.is_empty(), "{text:?}");
            for c in ('\0'..='\u{fff}').chain(['€', '₭', '🙂', '🙁', '🙃', char::MAX]) {
                assert_eq!(delimiters.contains(c), text.contains(c), "{c:?} in {text:?}");
            }
        }
    }
}
