//! HTCondor's crontabs of jobs: the texts of `cron_minute` and its companions, and the times at which they match.
//!
//! Sources: the manual, "CronTab Scheduling", and `condor_crontab.cpp`. All times are in UTC.
//!
//! | module | holds |
//! | --- | --- |
//! | `field` | the five fields, and the syntax of their texts |
//!
//! # What is guaranteed
//!
//! - **No panics, and bounds.** No text panics the caller, and a search looks at nine years at the most.
//! - **A crontab has a next time.** A crontab that never matches, such as February 30, is refused when it is made.
//! - **Errors have a place.** An error names the field and the byte of its text, and what to write instead.

mod field;

#[cfg(test)]
mod tests;

pub use field::{Fault, Field};

use jiff::Span;
use jiff::civil::Date;

/// The minutes of a day.
const DAY: i64 = 24 * 60;
/// The days of nine years: February 29 comes again after eight years at the most.
const HORIZON: i64 = 9 * 366;

/// When a job runs: minutes of certain hours of certain days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crontab {
    /// A bit for each minute of the hour. At least one is set, as in `hours`, `days` and `months`.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// A bit for each day of the week, from Sunday. None is set if the field is `*`.
    weekdays: u64,
}

impl Crontab {
    /// The crontab of the texts of its fields, in the order of [`Field::ALL`]. A field without a text is `*`.
    ///
    /// # Errors
    /// The first fault of a text, or that the crontab never matches.
    pub fn new(texts: [Option<&str>; 5]) -> Result<Self, Fault> {
        let [minutes, hours, days, months, weekdays] = texts;
        let read = |field: Field, text: Option<&str>| field.values(text.unwrap_or("*"));
        let crontab = Self {
            minutes: read(Field::Minute, minutes)?,
            hours: read(Field::Hour, hours)?,
            days: read(Field::DayOfMonth, days)?,
            months: read(Field::Month, months)?,
            weekdays: weekdays.map_or(Ok(0), |text| {
                if Field::is_wildcard(text) { Ok(0) } else { Field::DayOfWeek.values(text) }
            })?,
        };
        // The nine years from 1970 have every day that ever comes.
        if crontab.next(0).is_none() {
            return Err(Fault::never());
        }
        Ok(crontab)
    }

    /// The first time of the crontab after `time`, both in seconds since 1970.
    pub fn next(&self, time: i64) -> Option<i64> {
        let from = time.div_euclid(60).checked_add(1)?;
        let (first, minute) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        let today = self.has_day(first).then(|| self.first_minute(minute)).flatten();
        let later = || {
            let day =
                (1..=HORIZON).filter_map(|days| first.checked_add(days)).find(|day| self.has_day(*day))?;
            Some((day, self.first_minute(0)?))
        };
        let (day, minute) = today.map(|minute| (first, minute)).or_else(later)?;
        day.checked_mul(DAY)?.checked_add(minute)?.checked_mul(60)
    }

    /// The last time of the crontab that is not after `time`, both in seconds since 1970.
    pub fn last(&self, time: i64) -> Option<i64> {
        let until = time.div_euclid(60);
        let (first, minute) = (until.div_euclid(DAY), until.rem_euclid(DAY));
        let today = self.has_day(first).then(|| self.last_minute(minute)).flatten();
        let before = || {
            let day =
                (1..=HORIZON).filter_map(|days| first.checked_sub(days)).find(|day| self.has_day(*day))?;
            Some((day, self.last_minute(DAY - 1)?))
        };
        let (day, minute) = today.map(|minute| (first, minute)).or_else(before)?;
        day.checked_mul(DAY)?.checked_add(minute)?.checked_mul(60)
    }

    /// Whether the crontab matches on a day, in days since 1970.
    fn has_day(&self, day: i64) -> bool {
        let Some(date) = date(day).filter(|date| has(self.months, date.month().into())) else { return false };
        let by_month = has(self.days, date.day().into());
        let by_week = has(self.weekdays, date.weekday().to_sunday_zero_offset().into());
        match (self.days == Field::DayOfMonth.all(), self.weekdays == 0) {
            // "The day will be the logical or of both." A field that is not restricted restricts nothing.
            (false, false) => by_month || by_week,
            (true, false) => by_week,
            (_, true) => by_month,
        }
    }

    /// The first minute of a day on which the crontab matches that is not before `minute`.
    fn first_minute(&self, minute: i64) -> Option<i64> {
        let (hour, rest) = (minute / 60, minute % 60);
        let same =
            has(self.hours, hour).then(|| lowest(self.minutes, rest)).flatten().map(|rest| (hour, rest));
        let (hour, rest) =
            same.or_else(|| Some((lowest(self.hours, hour + 1)?, lowest(self.minutes, 0)?)))?;
        Some(hour * 60 + rest)
    }

    /// The last minute of a day on which the crontab matches that is not after `minute`.
    fn last_minute(&self, minute: i64) -> Option<i64> {
        let (hour, rest) = (minute / 60, minute % 60);
        let same =
            has(self.hours, hour).then(|| highest(self.minutes, rest)).flatten().map(|rest| (hour, rest));
        let (hour, rest) =
            same.or_else(|| Some((highest(self.hours, hour - 1)?, highest(self.minutes, 59)?)))?;
        Some(hour * 60 + rest)
    }
}

/// The date so many days after January 1, 1970, in UTC; `None` beyond the years that jiff knows.
fn date(day: i64) -> Option<Date> {
    Date::constant(1970, 1, 1).checked_add(Span::new().try_days(day).ok()?).ok()
}

/// Whether a number is in a set.
fn has(set: u64, number: i64) -> bool {
    u32::try_from(number).ok().and_then(|number| set.checked_shr(number)).is_some_and(|rest| rest & 1 == 1)
}

/// The least number of a set that is not less than `from`.
fn lowest(set: u64, from: i64) -> Option<i64> {
    (from..64).find(|number| has(set, *number))
}

/// The greatest number of a set that is not greater than `to`.
fn highest(set: u64, to: i64) -> Option<i64> {
    (0..=to).rev().find(|number| has(set, *number))
}
