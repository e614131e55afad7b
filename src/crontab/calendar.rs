//! Days of months and of weeks, in the Gregorian calendar and UTC.

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// The month: 1 to 12.
    pub(crate) month: i64,
    /// The day of the month, from 1.
    pub(crate) day: i64,
    /// The day of the week: Sunday is 0.
    pub(crate) weekday: i64,
}

/// The days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// The days from March 1 of the year 0 to 1970.
const EPOCH: i64 = 719_468;

impl Date {
    /// The date so many days after January 1, 1970. The year is taken to begin in March, so that the leap day is its last.
    pub(crate) fn of(day: i64) -> Self {
        let of_era = day.saturating_add(EPOCH).rem_euclid(ERA);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        Self {
            month: if from_march < 10 { from_march + 3 } else { from_march - 9 },
            day: of_year - (153 * from_march + 2) / 5 + 1,
            // January 1, 1970 was a Thursday.
            weekday: day.rem_euclid(7).saturating_add(4).rem_euclid(7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    fn length(year: i64, month: i64) -> i64 {
        match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn days_follow_one_another_through_500_years() {
        let (mut year, mut month, mut day, mut weekday) = (1970, 1, 1, 4);
        for number in 0..500 * 365 {
            assert_eq!(Date::of(number), Date { month, day, weekday }, "day {number}, year {year}");
            weekday = (weekday + 1) % 7;
            day += 1;
            if day > length(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn the_day_before_1970_is_a_wednesday_in_december() {
        assert_eq!(Date::of(-1), Date { month: 12, day: 31, weekday: 3 });
    }
}
