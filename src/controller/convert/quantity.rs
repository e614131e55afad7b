//! Kubernetes quantities as whole numbers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use thiserror::Error;

/// A text that is not a quantity.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a quantity; {hint}", hint = hint(.0))]
pub struct BadQuantity(String);

/// How to write what a person meant by `512MB`, `512 MiB` or `2g`, or else what quantities look like.
fn hint(text: &str) -> String {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    let unit = unit.trim().to_ascii_lowercase();
    let meant = ["k", "m", "g", "t", "p", "e"].into_iter().zip(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
    let mut meant = meant.filter(|(letter, _)| {
        unit.strip_prefix(letter).is_some_and(|rest| matches!(rest, "" | "b" | "i" | "ib" | "byte" | "bytes"))
    });
    match meant.next() {
        Some((_, unit)) if number.parse::<f64>().is_ok() => format!("write {number}{unit}"),
        _ => "quantities read 500m, 2, 1.5Gi or 1e3".to_owned(),
    }
}

/// A quantity in thousandths, rounded up as in Kubernetes. A quantity beyond 64 bits becomes the largest or the smallest number
/// of 64 bits.
///
/// # Errors
/// When the text is not a quantity.
pub fn millis(quantity: &Quantity) -> Result<i64, BadQuantity> {
    Ok(saturated(read(quantity)?.milli()))
}

/// A quantity in units of `unit` bytes, rounded up.
///
/// # Errors
/// When the text is not a quantity.
pub fn ceil_units(quantity: &Quantity, unit: i64) -> Result<i64, BadQuantity> {
    let bytes = saturated(read(quantity)?.units());
    Ok(bytes.div_euclid(unit).saturating_add(i64::from(bytes.rem_euclid(unit) != 0)))
}

fn read(quantity: &Quantity) -> Result<kube_schema::Quantity, BadQuantity> {
    quantity.0.trim().parse().map_err(|_| BadQuantity(quantity.0.clone()))
}

fn saturated(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_other_systems_are_translated() {
        for (text, hint) in [
            ("512MB", "write 512Mi"),
            ("512 MiB", "write 512Mi"),
            ("1.5gb", "write 1.5Gi"),
            ("2g", "write 2Gi"),
            ("lots", "quantities read 500m, 2, 1.5Gi or 1e3"),
        ] {
            let error = ceil_units(&Quantity(text.to_owned()), 1).unwrap_err();
            assert_eq!(error.to_string(), format!("{text:?} is not a quantity; {hint}"));
        }
    }

    #[test]
    fn quantities_mean_what_kubernetes_says() {
        for (text, thousandths) in [
            ("1", 1000),
            ("500m", 500),
            ("0.5", 500),
            ("1.5", 1500),
            ("100u", 1),
            ("1e3", 1_000_000),
            ("2k", 2_000_000),
            ("1Ki", 1_024_000),
            ("-1", -1000),
            ("+2", 2000),
            (".5", 500),
            ("1e-3", 1),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(millis(&Quantity(text.into())), Ok(thousandths), "{text}");
        }
        for text in ["", "x", "1x", "1 Gi", "--1", "1.2.3", "Gi", "1e", "1ee3"] {
            assert!(millis(&Quantity(text.into())).is_err(), "{text}");
        }
    }

    #[test]
    fn units_are_rounded_up() {
        for (text, mib) in [("1Mi", 1), ("1Gi", 1024), ("1", 1), ("1048577", 2), ("0", 0), ("1G", 954)] {
            assert_eq!(ceil_units(&Quantity(text.into()), 1 << 20), Ok(mib), "{text}");
        }
    }
}
