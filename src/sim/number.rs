//! Conversions between whole numbers, spans of time and floating-point measurements.

use std::time::Duration;

/// The longest span: a thousand years, in seconds.
const LONGEST: f64 = 1000.0 * 365.25 * 86_400.0;

/// Converts seconds to a span, rounded to the millisecond. NaN, infinities and negative numbers give 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and LONGEST")]
pub fn span(seconds: f64) -> Duration {
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, LONGEST) } else { 0.0 };
    Duration::from_millis((seconds * 1000.0).round() as u64)
}

/// Converts a count to a float.
#[allow(clippy::cast_precision_loss, reason = "nothing here is counted to 2^53")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// Converts an amount of a resource to a float; a negative amount gives 0.
pub fn amount(amount: i64) -> f64 {
    real(u64::try_from(amount).unwrap_or(0))
}

/// Rounds a float to a whole amount of at least `least`.
#[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
pub fn whole(value: f64, least: i64) -> i64 {
    (value.round() as i64).max(least)
}
