//! Resource quantities (`100m`, `1.5Gi`, `2e3`) as integers that count thousandths.

use std::str::FromStr;

/// A quantity in thousandths of its unit. Smaller fractions are rounded away from zero, as in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity(i128);

/// The error for a text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub struct QuantityError;

impl Quantity {
    /// The number in thousandths: `100m` is 100, `2` is 2000.
    pub fn milli(self) -> i128 {
        self.0
    }

    /// The number in whole units, rounded up: `1500m` is 2.
    pub fn units(self) -> i128 {
        self.0.div_euclid(1000) + i128::from(self.0.rem_euclid(1000) != 0)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (number, scale) = split(text).ok_or(QuantityError)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let negative = digits.starts_with('-');
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(QuantityError);
        }
        let value: i128 = digits.parse().map_err(|_| QuantityError)?;
        let places = i32::try_from(fraction.len()).map_err(|_| QuantityError)?;
        let milli = scale.apply(value, places).ok_or(QuantityError)?;
        Ok(Self(if negative { -milli } else { milli }))
    }
}

/// The factor that a suffix stands for: a power of ten or of two.
#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

impl Scale {
    /// Returns `value * scale / 10^places` in thousandths, rounded up; `None` if this does not fit. `value` must not be
    /// negative.
    fn apply(self, value: i128, places: i32) -> Option<i128> {
        let (factor, ten) = match self {
            Self::Ten(e) => (1_i128, e.checked_add(3)?.checked_sub(places)?),
            Self::Two(shift) => (1_i128.checked_shl(shift)?, 3_i32.checked_sub(places)?),
        };
        let scaled = value.checked_mul(factor)?;
        let Some(power) = 10_i128.checked_pow(ten.unsigned_abs()) else {
            // The power of ten does not fit: the result is too large, or smaller than a thousandth.
            return if ten > 0 && scaled != 0 { None } else { Some(i128::from(scaled != 0)) };
        };
        if ten >= 0 {
            scaled.checked_mul(power)
        } else {
            Some(scaled / power + i128::from(scaled % power != 0))
        }
    }
}

fn split(text: &str) -> Option<(&str, Scale)> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let scale = match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?;
            Scale::Ten(exponent.parse().ok().filter(|e: &i32| e.abs() <= 30)?)
        }
    };
    Some((number, scale))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_thousandths() {
        let cases = [
            ("0", 0),
            ("100m", 100),
            ("2", 2_000),
            ("1.5", 1_500),
            (".5", 500),
            ("+3", 3_000),
            ("-1.5", -1_500),
            ("1k", 1_000_000),
            ("1Ki", 1_024_000),
            ("1.5Gi", 1_610_612_736_000),
            ("2e3", 2_000_000),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1E2", 100_000),
            ("1n", 1),
            ("0.0001", 1),
            ("1500u", 2),
        ];
        for (text, milli) in cases {
            assert_eq!(text.parse::<Quantity>().map(Quantity::milli), Ok(milli), "{text}");
        }
        assert_eq!("1500m".parse::<Quantity>().unwrap().units(), 2);
        assert_eq!("-1500m".parse::<Quantity>().unwrap().units(), -1);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            ".",
            "m",
            "1x",
            "1.2.3",
            "--1",
            "1 ",
            "1e",
            "1e99",
            "Ki",
            "99999999999999999999999999999999999999Ei",
        ] {
            assert_eq!(text.parse::<Quantity>(), Err(QuantityError), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[0-9.+eEinumkKMGTP-]{0,45}") {
            let _ = text.parse::<Quantity>().map(Quantity::units);
        }
    }
}
