//! C's `strftime` in the C locale.

use std::fmt::Write;
use std::str::Chars;

use crate::syntax::time::{Civil, days};

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

/// The first second of a day in UTC.
pub(super) fn midnight(year: i64, month: i64, day: i64) -> i64 {
    days(year, month, day).saturating_mul(86_400)
}

/// Writes the date as the pattern says. Directives that C does not know stay as they are.
///
/// Writing stops at the directive with which the text exceeds `room` bytes: one directive may write two hundred times
/// what it takes in the pattern. Each character and each directive is paid for by `pay`; writing stops where that
/// returns `false`.
pub(super) fn format(
    out: &mut String,
    room: usize,
    pattern: &str,
    civil: &Civil,
    offset: i32,
    pay: &dyn Fn(usize) -> bool,
) {
    let mut rest = pattern.chars();
    while out.len() <= room
        && let Some(c) = rest.next()
        && pay(1)
    {
        if c != '%' {
            out.push(c);
            continue;
        }
        let layout = Layout::take(&mut rest);
        if !pay(DIRECTIVE + layout.width / 8) {
            return;
        }
        match rest.next() {
            Some(directive) => {
                let mut text = String::new();
                // Writing to a string does not fail.
                let _ = write_directive(&mut text, directive, civil, offset);
                layout.write(out, directive, text);
            }
            None => out.push('%'),
        }
    }
}

/// The price of a directive, which may stand for a whole date.
const DIRECTIVE: usize = 40;

/// The text between `%` and the letter: glibc's flags and a width.
#[derive(Default)]
struct Layout {
    /// The character with which a number is padded: `0`, `_` (blanks), or `-` (nothing).
    pad: Option<char>,
    upper: bool,
    width: usize,
}

/// The widest field. Nobody reads more, and a pattern from anybody may ask for more.
const WIDEST: usize = 1000;

impl Layout {
    fn take(rest: &mut Chars<'_>) -> Self {
        let mut layout = Self::default();
        let mut ahead = rest.clone();
        while let Some(c) = ahead.next() {
            match c {
                '_' | '-' | '0' if layout.width == 0 => layout.pad = Some(c),
                '^' => layout.upper = true,
                '0'..='9' => {
                    let digit = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0);
                    layout.width = (layout.width * 10 + digit).min(WIDEST);
                }
                // These flags change nothing in the C locale.
                'E' | 'O' | '#' => {}
                _ => break,
            }
            *rest = ahead.clone();
        }
        layout
    }

    fn write(&self, out: &mut String, directive: char, mut text: String) {
        let number = "CdegGHIjklmMsSuUVwWyY".contains(directive);
        if number && self.pad.is_some() {
            let digits = text.trim_start_matches(['0', ' ']);
            let digits = if digits.is_empty() { "0" } else { digits };
            let pad = if self.pad == Some('0') { '0' } else { ' ' };
            let missing = if self.pad == Some('-') { 0 } else { text.len().saturating_sub(digits.len()) };
            text = std::iter::repeat_n(pad, missing).collect::<String>() + digits;
        }
        let zeros = self.pad == Some('0') || (number && self.pad.is_none() && !"ekl".contains(directive));
        let missing = self.width.saturating_sub(text.len());
        out.extend(std::iter::repeat_n(if zeros { '0' } else { ' ' }, missing));
        out.push_str(&if self.upper { text.to_ascii_uppercase() } else { text });
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
        // These patterns are short, so they need no bound.
        format(out, usize::MAX, pattern, civil, offset, &|_| true);
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

/// The year and the week by ISO 8601: weeks start on Monday, and the first week has the year's first Thursday.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AbsTime;

    #[test]
    fn the_text_stops_a_directive_beyond_its_room() {
        let civil = Civil::of(AbsTime { secs: 0, offset: 0 });
        for (pattern, room, written) in [
            ("%Y", 4, 4),
            ("%Y-%m-%d", 10, 10),
            ("%Y-%m-%d", 9, 10),
            ("%Y-%m-%d", 4, 5),
            ("%c%c%c", 24, 48),
            ("%999n", 999, 999),
            (&"%999n".repeat(100_000), 1000, 1998),
            (&"%999c".repeat(100_000), 1000, 1998),
            (&"x".repeat(100_000), 1000, 1001),
        ] {
            let mut out = String::new();
            format(&mut out, room, pattern, &civil, 0, &|_| true);
            assert_eq!(out.len(), written, "{} in {room}", pattern.get(..8).unwrap_or(pattern));
        }
    }
}
