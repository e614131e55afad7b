//! Formats amounts in the units that people write.

use std::fmt::Write;

/// An amount in KiB, written in the largest unit in which it is at least one, rounded down to a tenth: `15.9Gi`. 0 has
/// no unit.
pub fn bytes(kib: i64) -> String {
    if kib == 0 {
        return "0".to_owned();
    }
    let (mut tenths, mut unit) = (i128::from(kib) * 10, "Ki");
    for larger in ["Mi", "Gi", "Ti", "Pi"] {
        if tenths.abs() < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, larger);
    }
    match tenths % 10 {
        0 => format!("{}{unit}", tenths / 10),
        tenth => format!("{}.{}{unit}", tenths / 10, tenth.abs()),
    }
}

/// A number with its noun: `1 proc`, `3 procs`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A weight or a number of units, with at most two digits behind the point.
pub fn plain(amount: f64) -> String {
    let rounded = (amount * 100.0).round() / 100.0;
    format!("{rounded}")
}

/// An expression's text for people: real numbers as people write them, `8.6` and not `8.600000000000000E+00`, and no parentheses
/// around the whole.
pub fn readable(expression: &str) -> String {
    let mut text = String::new();
    let mut rest = unwrapped(expression);
    while let Some(first) = rest.chars().next() {
        // A digit after a letter is part of a name.
        let in_name = text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = if in_name || !first.is_ascii_digit() { 0 } else { real(rest) };
        let (token, after) = rest.split_at(if length > 0 { length } else { first.len_utf8() });
        match token.parse::<f64>() {
            // Writing to a string does not fail.
            Ok(number) if length > 0 => drop(write!(text, "{number:?}")),
            _ => text.push_str(token),
        }
        rest = after;
    }
    text
}

/// The length of the real number in scientific notation that a text begins with; 0 if it begins with none.
fn real(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    let whole = digits(text);
    if !rest(whole).starts_with('.') {
        return 0;
    }
    let mantissa = whole + 1 + digits(rest(whole + 1));
    if !rest(mantissa).starts_with(['E', 'e']) {
        return 0;
    }
    let exponent = mantissa + 1 + usize::from(rest(mantissa + 1).starts_with(['+', '-']));
    exponent + digits(rest(exponent))
}

/// The text without parentheses around the whole of it.
fn unwrapped(text: &str) -> &str {
    let Some(inside) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let (mut open, mut quoted, mut escaped) = (0_i64, false, false);
    let closes_early = inside.chars().any(|c| {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '(' if !quoted => open += 1,
            ')' if !quoted => open -= 1,
            _ => {}
        }
        open < 0
    });
    if closes_early || open != 0 { text } else { unwrapped(inside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_written_as_people_do() {
        for (text, readable_text) in [
            ("(Capability >= 9.000000000000000E+00)", "Capability >= 9.0"),
            ("8.600000000000000E+00", "8.6"),
            ("(a) && (b)", "(a) && (b)"),
            (r#"(a == "(") && (b == ")")"#, r#"(a == "(") && (b == ")")"#),
            (r#"(a == "x\")y")"#, r#"a == "x\")y""#),
            ("((x1.5E))", "x1.5E"),
            ("Owner == \"é\"", "Owner == \"é\""),
        ] {
            assert_eq!(readable(text), readable_text);
        }
    }

    #[test]
    fn amounts() {
        for (kib, text) in [
            (0, "0"),
            (-3, "-3Ki"),
            (1023, "1023Ki"),
            (1024, "1Mi"),
            (16 << 20, "16Gi"),
            ((16 << 20) - 1, "15.9Gi"),
            (3 << 29, "1.5Ti"),
            (5 << 30, "5Ti"),
            (i64::MAX, "8388607.9Pi"),
        ] {
            assert_eq!(bytes(kib), text);
        }
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(
            [counted(0, "proc"), counted(1, "proc"), counted(2, "proc")],
            ["0 procs", "1 proc", "2 procs"]
        );
        assert_eq!([plain(8.0), plain(2.5), plain(1.0 / 3.0)], ["8", "2.5", "0.33"]);
    }
}
