//! C's `strftime` in the C locale.

use std::fmt::Write;

use crate::classad::syntax::time::{Civil, days};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The first second of a day in Greenwich.
pub(super) fn midnight(year: i64, month: i64, day: i64) -> i64 {
    days(year, month, day).saturating_mul(86_400)
}

/// Writes the date by the pattern. Directives that C does not know stay as they are.
pub(super) fn format(out: &mut String, pattern: &str, civil: &Civil, offset: i32) {
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = rest.next();
        // The modifiers change nothing in the C locale.
        while matches!(directive, Some('E' | 'O')) {
            directive = rest.next();
        }
        match directive {
            // Writing to a string does not fail.
            Some(directive) => drop(write_directive(out, directive, civil, offset)),
            None => out.push('%'),
        }
    }
}

fn name<'n>(names: &'n [&str], place: i64) -> &'n str {
    usize::try_from(place).ok().and_then(|place| names.get(place)).unwrap_or(&"?")
}

fn short(name: &str) -> String {
    name.chars().take(3).collect()
}

fn write_directive(out: &mut String, directive: char, civil: &Civil, offset: i32) -> std::fmt::Result {
    let Civil { year, month, day, hour, minute, second, day_of_year, day_of_week } = *civil;
    let mut compose = |pattern: &str| {
        format(out, pattern, civil, offset);
        Ok(())
    };
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    match directive {
        'c' => compose("%a %b %e %H:%M:%S %Y"),
        'D' | 'x' => compose("%m/%d/%y"),
        'F' => compose("%Y-%m-%d"),
        'R' => compose("%H:%M"),
        'r' => compose("%I:%M:%S %p"),
        'T' | 'X' => compose("%H:%M:%S"),
        'a' => out.write_str(&short(name(&DAYS, day_of_week))),
        'A' => out.write_str(name(&DAYS, day_of_week)),
        'b' | 'h' => out.write_str(&short(name(&MONTHS, month - 1))),
        'B' => out.write_str(name(&MONTHS, month - 1)),
        'C' => write!(out, "{:02}", year.div_euclid(100)),
        'd' => write!(out, "{day:02}"),
        'e' => write!(out, "{day:2}"),
        'g' => write!(out, "{:02}", iso_week(civil).0.rem_euclid(100)),
        'G' => write!(out, "{}", iso_week(civil).0),
        'H' => write!(out, "{hour:02}"),
        'I' => write!(out, "{twelve:02}"),
        'j' => write!(out, "{:03}", day_of_year + 1),
        'k' => write!(out, "{hour:2}"),
        'l' => write!(out, "{twelve:2}"),
        'm' => write!(out, "{month:02}"),
        'M' => write!(out, "{minute:02}"),
        'n' => out.write_char('\n'),
        'p' => out.write_str(if hour < 12 { "AM" } else { "PM" }),
        'P' => out.write_str(if hour < 12 { "am" } else { "pm" }),
        's' => {
            let day = midnight(year, month, day);
            write!(out, "{}", day + hour * 3600 + minute * 60 + second - i64::from(offset))
        }
        'S' => write!(out, "{second:02}"),
        't' => out.write_char('\t'),
        'u' => write!(out, "{}", if day_of_week == 0 { 7 } else { day_of_week }),
        'U' => write!(out, "{:02}", (day_of_year + 7 - day_of_week) / 7),
        'V' => write!(out, "{:02}", iso_week(civil).1),
        'w' => write!(out, "{day_of_week}"),
        'W' => write!(out, "{:02}", (day_of_year + 7 - (day_of_week + 6) % 7) / 7),
        'y' => write!(out, "{:02}", year.rem_euclid(100)),
        'Y' => write!(out, "{year}"),
        'Z' if offset == 0 => out.write_str("UTC"),
        'z' | 'Z' => zone(out, offset),
        '%' => out.write_char('%'),
        other => write!(out, "%{other}"),
    }
}

fn zone(out: &mut String, offset: i32) -> std::fmt::Result {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs() / 60;
    write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

/// The year and week by ISO 8601: weeks start on Monday, the first holds the year's first Thursday.
fn iso_week(civil: &Civil) -> (i64, i64) {
    let from_monday = (civil.day_of_week + 6) % 7;
    let thursday = civil.day_of_year - from_monday + 3;
    let length = |year: i64| days(year + 1, 1, 1) - days(year, 1, 1);
    if thursday < 0 {
        (civil.year - 1, (thursday + length(civil.year - 1)) / 7 + 1)
    } else if thursday >= length(civil.year) {
        (civil.year + 1, (thursday - length(civil.year)) / 7 + 1)
    } else {
        (civil.year, thursday / 7 + 1)
    }
}
