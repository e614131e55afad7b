//! Between whole numbers, spans and the reals of measurements.

use std::time::Duration;

/// The longest span that is drawn: a thousand years.
const LONGEST: f64 = 1000.0 * 365.25 * 86_400.0;

/// Seconds as a span, to the millisecond. What is no number or negative is no time at all.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and LONGEST")]
pub fn span(seconds: f64) -> Duration {
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, LONGEST) } else { 0.0 };
    Duration::from_millis((seconds * 1000.0).round() as u64)
}

/// A count as a real.
#[allow(clippy::cast_precision_loss, reason = "nothing here is counted to 2^53")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// An amount of a resource as a real; less than nothing is none.
pub fn amount(amount: i64) -> f64 {
    real(u64::try_from(amount).unwrap_or(0))
}

/// A real as a whole amount, rounded, of at least `least`.
#[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
pub fn whole(value: f64, least: i64) -> i64 {
    (value.round() as i64).max(least)
}
