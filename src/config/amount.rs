//! Amounts of memory and disk with units, such as `2 GB`.

/// An amount, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount<'t> {
    /// In units of the base, rounded up.
    pub units: i64,
    /// Whether the text names a unit.
    pub has_unit: bool,
    /// The text behind the comma that ended the amount. `None`: the amount is the whole text.
    pub rest: Option<&'t str>,
}

/// Reads an amount, which may have a fraction and a unit (K, M, G or T, perhaps with B). An amount without a unit counts units
/// of `base` bytes. With `list`, a comma may end the amount. `None`: the text is something else, such as an expression.
pub fn amount(text: &str, base: i64, list: bool) -> Option<Amount<'_>> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with(['-', '+']) && digits > 0);
    let (whole, rest) = text.split_at_checked(sign + digits)?;
    let fraction =
        rest.strip_prefix('.').map_or(0, |rest| 1 + rest.bytes().take_while(u8::is_ascii_digit).count());
    if digits == 0 && fraction == 0 {
        return None;
    }
    let (decimals, rest) = rest.split_at_checked(fraction)?;
    let decimals: String = decimals.chars().take(4).collect();
    let fraction: f64 = if decimals.len() > 1 { format!("0{decimals}").parse().ok()? } else { 0.0 };
    let rest = rest.trim_start();
    let ends = |rest: &str| rest.is_empty() || (list && rest.starts_with(','));
    let (multiplier, has_unit, rest) = if ends(rest) {
        (base, false, rest)
    } else {
        let mut letters = rest.chars();
        let power = match letters.next()?.to_ascii_lowercase() {
            'k' => 1,
            'm' => 2,
            'g' => 3,
            't' => 4,
            _ => return None,
        };
        let rest = letters.as_str();
        (1_i64 << (10 * power), true, rest.strip_prefix(['b', 'B']).unwrap_or(rest))
    };
    let rest = rest.trim_start();
    if !ends(rest) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let units = scaled(whole, fraction, multiplier, base)?;
    Some(Amount { units, has_unit, rest: rest.strip_prefix(',') })
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "as HTCondor does; a bound keeps amounts within what a real holds"
)]
fn scaled(whole: i64, fraction: f64, multiplier: i64, base: i64) -> Option<i64> {
    let bytes = (whole as f64 + fraction) * multiplier as f64 + (base - 1) as f64;
    (bytes.abs() < 9e18).then(|| bytes as i64 / base)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    #[test]
    fn amounts_are_rounded_up_to_the_base() {
        for (text, expected) in [
            ("1024", Some((1024, false))),
            (" 2 GB ", Some((2048, true))),
            ("2.5G", Some((2560, true))),
            ("1k", Some((1, true))),
            ("0.5 M", Some((1, true))),
            (".5", Some((1, false))),
            ("1 TB", Some((MIB, true))),
            ("7m", Some((7, true))),
            ("2 * 1024", None),
            ("RequestCpus", None),
            ("3 parsecs", None),
            ("", None),
            ("-1", Some((0, false))),
            ("1 GiB", None),
            ("99999999999999999 T", None),
        ] {
            let found = amount(text, MIB, false).map(|found| (found.units, found.has_unit));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_comma_ends_an_amount_of_a_list() {
        let first = amount("1 GB, 2 GB", MIB, true);
        assert_eq!(first, Some(Amount { units: 1024, has_unit: true, rest: Some(" 2 GB") }));
        assert_eq!(amount("1 GB, 2 GB", MIB, false), None);
        assert_eq!(amount("5,", MIB, true), Some(Amount { units: 5, has_unit: false, rest: Some("") }));
    }
}
