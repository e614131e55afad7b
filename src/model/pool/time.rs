//! Points in time. The shell hands the time in; the model reads no clock.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time: milliseconds since the Unix epoch.
///
/// The milliseconds are kept moved up by 2⁶³, so that 0 is free and `Option<Time>` takes 8 bytes: a slot and its pod have a dozen of
/// them, and a pool has a hundred thousand slots. The earliest of all milliseconds counts as the one after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

/// The bit by which milliseconds are moved up.
const UP: u64 = 1 << 63;

impl Time {
    /// The time that is `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        match NonZeroU64::new(millis.cast_unsigned() ^ UP) {
            Some(up) => Self(up),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// The time that is `secs` seconds after the Unix epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_millis(secs.saturating_mul(1000))
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        (self.0.get() ^ UP).cast_signed()
    }

    /// Whole seconds since the Unix epoch: the value of `time()` in a `ClassAd`.
    pub const fn secs(self) -> i64 {
        self.millis().div_euclid(1000)
    }

    /// The time that has passed since `earlier`; 0 if the clock went back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.millis().saturating_sub(earlier.millis())).unwrap_or(0))
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::from_millis(0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.millis()).finish()
    }
}

/// A span of whole seconds, in a quarter of the memory of a [`Duration`]. A span of more than 136 years counts as 136 years, and parts of
/// a second are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(u32);

impl From<Duration> for Seconds {
    fn from(span: Duration) -> Self {
        Self(u32::try_from(span.as_secs()).unwrap_or(u32::MAX))
    }
}

impl From<Seconds> for Duration {
    fn from(span: Seconds) -> Self {
        Self::from_secs(span.0.into())
    }
}

/// A span in milliseconds; the greatest number if the span is longer.
fn millis_of(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self::from_millis(self.millis().saturating_add(millis_of(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self::from_millis(self.millis().saturating_sub(millis_of(span)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_and_their_milliseconds() {
        let millis = [i64::MIN + 1, -1001, -1, 0, 1, 999, 1_700_000_000_000, i64::MAX];
        let times = millis.map(Time::from_millis);
        assert_eq!(times.map(Time::millis), millis);
        assert!(times.is_sorted() && Time::default() == Time::from_secs(0));
        assert_eq!(Time::from_millis(i64::MIN), Time::from_millis(i64::MIN + 1));
        assert_eq!([-1001, -1, 0, 999].map(|at| Time::from_millis(at).secs()), [-2, -1, 0, 0]);
        assert_eq!(size_of::<Option<Time>>(), 8);
        assert_eq!(format!("{:?}", Time::from_secs(2)), "Time(2000)");
    }

    #[test]
    fn spans_end_at_the_ends_of_time() {
        let (first, last) = (Time::from_millis(i64::MIN), Time::from_millis(i64::MAX));
        assert_eq!((last + Duration::MAX, first - Duration::MAX), (last, first));
        assert_eq!(
            (first.since(last), last.since(last - Duration::from_secs(1))),
            (Duration::ZERO, Duration::from_secs(1))
        );
    }
}
