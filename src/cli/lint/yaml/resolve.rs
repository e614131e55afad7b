//! Resolves scalars to JSON by the rules of kubectl's YAML library (go-yaml 2): words and numbers of YAML 1.1.

use granit_parser::ScalarStyle;
use serde_json::{Number, Value};

/// The JSON value of a scalar. `tag` is the suffix of a tag of YAML's core schema, such as `str`.
pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&str>) -> Value {
    let string = || Value::from(text);
    match tag {
        Some("str" | "binary" | "timestamp") => return string(),
        None if style != ScalarStyle::Plain => return string(),
        Some(_) | None => {}
    }
    word(text).or_else(|| integer(text)).or_else(|| real(text)).unwrap_or_else(string)
}

fn word(text: &str) -> Option<Value> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => true.into(),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => false.into(),
        _ => return None,
    })
}

fn integer(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..)?),
        Some("0o" | "0O") => (8, digits.get(2..)?),
        Some("0b" | "0B") => (2, digits.get(2..)?),
        Some(_) if digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let value = i64::try_from(-i128::from(magnitude)).ok()?;
        return Some(value.into());
    }
    Some(magnitude.into())
}

fn real(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    let digits = plain.trim_start_matches(['-', '+']);
    let shape = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().any(|c| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+'))
        && plain.len() - digits.len() <= 1;
    // JSON has neither infinity nor NaN. kubectl refuses them; here they stay text, which the schema of a number
    // refuses.
    shape.then(|| plain.parse::<f64>().ok().and_then(number).map(Value::Number)).flatten()
}

/// A real as a number of JSON. A whole one is an integer, for which the API server takes it: kubectl sends `10.0` and `1e1` as 10.
#[allow(clippy::cast_possible_truncation, reason = "the real is whole and fits")]
fn number(real: f64) -> Option<Number> {
    // All whole numbers below 2^53 are exact in a real.
    let is_whole = real.fract() == 0.0 && real.abs() < 9_007_199_254_740_992.0;
    if is_whole { Some(Number::from(real as i64)) } else { Number::from_f64(real) }
}
