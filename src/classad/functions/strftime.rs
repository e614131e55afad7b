//! C's `strftime` in the C locale.

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

/// Writes the date as the pattern says. What is no directive of C's stays as it is, from the `%` on.
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
        layout.write(out, rest.next(), civil, offset);
    }
}

/// The price of a directive, which may stand for a whole date.
const DIRECTIVE: usize = 40;

/// The text between `%` and the letter: flags, a width and a modifier, in glibc's order.
#[derive(Default)]
struct Layout {
    /// The text itself, which is printed if the directive is none.
    raw: String,
    /// The character with which a field is padded: `0`, `_` (blanks), or `-` (nothing).
    pad: Option<char>,
    /// `^`.
    upper: bool,
    /// `#`: names in capitals, and `AM` and the time zone in small letters.
    swap: bool,
    width: usize,
    /// `E` or `O`. Both change nothing in the C locale, but not every directive takes both.
    modifier: Option<char>,
}

/// The widest field. Nobody reads more, and a pattern from anybody may ask for more.
const WIDEST: usize = 1000;

impl Layout {
    fn take(rest: &mut Chars<'_>) -> Self {
        let mut layout = Self { raw: "%".to_owned(), ..Self::default() };
        while let Some(c) = layout.next_if(rest, |c| matches!(c, '_' | '-' | '0' | '^' | '#')) {
            match c {
                '^' => layout.upper = true,
                '#' => layout.swap = true,
                pad => layout.pad = Some(pad),
            }
        }
        while let Some(c) = layout.next_if(rest, |c| c.is_ascii_digit()) {
            let digit = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0);
            layout.width = (layout.width * 10 + digit).min(WIDEST);
        }
        layout.modifier = layout.next_if(rest, |c| matches!(c, 'E' | 'O'));
        layout
    }

    /// Takes the next character if it is wanted. No text is longer than the widest field: what is beyond is not kept.
    fn next_if(&mut self, rest: &mut Chars<'_>, wanted: impl Fn(char) -> bool) -> Option<char> {
        let mut ahead = rest.clone();
        let c = ahead.next().filter(|c| wanted(*c))?;
        *rest = ahead;
        if self.raw.len() < WIDEST {
            self.raw.push(c);
        }
        Some(c)
    }

    /// Writes the directive. `None`: the pattern ends before the letter.
    fn write(&self, out: &mut String, directive: Option<char>, civil: &Civil, offset: i32) {
        let Some(letter) = directive.filter(|letter| self.allows(*letter)) else {
            let raw = match directive {
                // glibc looks back from here to the nearest `%`, which is this one.
                Some('%') => "%".to_owned(),
                Some(letter) => format!("{}{letter}", self.raw),
                None => self.raw.clone(),
            };
            return self.text(out, &if self.upper { raw.to_ascii_uppercase() } else { raw });
        };
        if let Some((digits, blanks, number)) = number(letter, civil) {
            return self.number(out, digits, blanks, number);
        }
        if letter == 'z' {
            self.text(out, if offset < 0 { "-" } else { "+" });
            let minutes = i64::from(offset.unsigned_abs() / 60);
            return self.number(out, 4, false, minutes / 60 * 100 + minutes % 60);
        }
        let text = text(letter, civil, offset);
        let capitals = self.upper || (self.swap && matches!(letter, 'a' | 'A' | 'b' | 'B' | 'h'));
        self.text(
            out,
            &match letter {
                'P' => text,
                'p' | 'Z' if self.swap => text.to_ascii_lowercase(),
                _ if capitals => text.to_ascii_uppercase(),
                _ => text,
            },
        );
    }

    /// Whether the letter is a directive that takes the modifier.
    fn allows(&self, letter: char) -> bool {
        match letter {
            '%' | 'a' | 'A' | 'D' | 'F' => self.modifier.is_none(),
            'c' | 'x' | 'X' | 'Y' => self.modifier != Some('O'),
            'b' | 'B' | 'd' | 'e' | 'g' | 'G' | 'h' | 'H' | 'I' | 'j' | 'k' | 'l' | 'm' | 'M' | 'S' | 'U'
            | 'V' | 'w' | 'W' => self.modifier != Some('E'),
            'C' | 'n' | 'p' | 'P' | 'r' | 'R' | 's' | 't' | 'T' | 'u' | 'y' | 'z' | 'Z' => true,
            _ => false,
        }
    }

    /// Writes a text, padded to the width.
    fn text(&self, out: &mut String, text: &str) {
        let pad = if self.pad == Some('0') { '0' } else { ' ' };
        out.extend(std::iter::repeat_n(pad, self.width.saturating_sub(text.len())));
        out.push_str(text);
    }

    /// Writes a number of at least so many digits. `blanks`: blanks stand for zeros, unless a flag says otherwise.
    fn number(&self, out: &mut String, digits: usize, blanks: bool, number: i64) {
        let plain = number.to_string();
        let missing = digits.max(self.width).saturating_sub(plain.len());
        match self.pad {
            Some('-') => self.text(out, &plain),
            Some('_') => self.text(out, &(" ".repeat(missing) + &plain)),
            None if blanks => self.text(out, &(" ".repeat(missing) + &plain)),
            _ => {
                let size = number.unsigned_abs().to_string();
                let sign = if number < 0 { "-" } else { "" };
                self.text(out, &format!("{sign}{}{size}", "0".repeat(missing)));
            }
        }
    }
}

fn name<'n>(names: &'n [&str], place: i64) -> &'n str {
    usize::try_from(place).ok().and_then(|place| names.get(place)).unwrap_or(&"?")
}

fn short(name: &str) -> String {
    name.chars().take(3).collect()
}

/// The number that a directive stands for: its digits at least, whether blanks stand for zeros, and its value. `None`: the
/// directive stands for something else.
fn number(letter: char, civil: &Civil) -> Option<(usize, bool, i64)> {
    let Civil { year, month, day, hour, minute, second, day_of_year, day_of_week } = *civil;
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let zeros = |digits, value| Some((digits, false, value));
    match letter {
        'C' => zeros(2, year.div_euclid(100)),
        'd' => zeros(2, day),
        'e' => Some((2, true, day)),
        'g' => zeros(2, iso_week(civil).0.rem_euclid(100)),
        'G' => zeros(1, iso_week(civil).0),
        'H' => zeros(2, hour),
        'I' => zeros(2, twelve),
        'j' => zeros(3, day_of_year + 1),
        'k' => Some((2, true, hour)),
        'l' => Some((2, true, twelve)),
        'm' => zeros(2, month),
        'M' => zeros(2, minute),
        'S' => zeros(2, second),
        'u' => zeros(1, if day_of_week == 0 { 7 } else { day_of_week }),
        'U' => zeros(2, (day_of_year + 7 - day_of_week) / 7),
        'V' => zeros(2, iso_week(civil).1),
        'w' => zeros(1, day_of_week),
        'W' => zeros(2, (day_of_year + 7 - (day_of_week + 6) % 7) / 7),
        'y' => zeros(2, year.rem_euclid(100)),
        'Y' => zeros(1, year),
        _ => None,
    }
}

/// The text that any other directive stands for.
fn text(letter: char, civil: &Civil, offset: i32) -> String {
    let Civil { year, month, day, hour, minute, second, day_of_week, .. } = *civil;
    let compose = |pattern: &str| {
        let mut out = String::new();
        // These patterns are short, so they need no bound.
        format(&mut out, usize::MAX, pattern, civil, offset, &|_| true);
        out
    };
    match letter {
        'c' => compose("%a %b %e %H:%M:%S %Y"),
        'D' | 'x' => compose("%m/%d/%y"),
        'F' => compose("%Y-%m-%d"),
        'R' => compose("%H:%M"),
        'r' => compose("%I:%M:%S %p"),
        'T' | 'X' => compose("%H:%M:%S"),
        'a' => short(name(&DAYS, day_of_week)),
        'A' => name(&DAYS, day_of_week).to_owned(),
        'b' | 'h' => short(name(&MONTHS, month - 1)),
        'B' => name(&MONTHS, month - 1).to_owned(),
        'n' => "\n".to_owned(),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'P' => if hour < 12 { "am" } else { "pm" }.to_owned(),
        's' => {
            let day = midnight(year, month, day);
            (day + hour * 3600 + minute * 60 + second - i64::from(offset)).to_string()
        }
        't' => "\t".to_owned(),
        'Z' if offset == 0 => "UTC".to_owned(),
        'Z' => compose("%z"),
        other => other.to_string(),
    }
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

    /// The answers of glibc 2.36, whose zone was called GMT.
    #[test]
    fn flags_widths_and_modifiers_are_glibcs() {
        let civil = Civil::of(AbsTime { secs: 981_173_106, offset: 0 });
        for (pattern, expected) in [
            ("%12s", "   981173106"),
            ("%012s", "000981173106"),
            ("%_12s", "   981173106"),
            ("%-12s", "   981173106"),
            ("%Es", "981173106"),
            ("%C", "20"),
            ("%5C", "00020"),
            ("%_C", "20"),
            ("%-C", "20"),
            ("%G", "2001"),
            ("%5G", "02001"),
            ("%u", "6"),
            ("%Eu", "6"),
            ("%_u", "6"),
            ("%5u", "00006"),
            ("%5z", "    +00000"),
            ("%_z", "+   0"),
            ("%-z", "+0"),
            ("%-5z", "    +    0"),
            ("%05z", "0000+00000"),
            ("%_7z", "      +      0"),
            ("%E", "%E"),
            ("%5E", "  %5E"),
            ("%5", "   %5"),
            ("%", "%"),
            ("%-v", "%-v"),
            ("%5v", "  %5v"),
            ("%-3L", "%-3L"),
            ("%EQ", "%EQ"),
            ("%^v", "%^V"),
            ("%#a", "SAT"),
            ("%#A", "SATURDAY"),
            ("%#b", "FEB"),
            ("%#B", "FEBRUARY"),
            ("%#p", "am"),
            ("%#P", "am"),
            ("%^P", "am"),
            ("%#Z", "utc"),
            ("%^Z", "UTC"),
            ("%#^p", "am"),
            ("%E5Y", "%E5Y"),
            ("%5EY", "02001"),
            ("%OY", "%OY"),
            ("%EY", "2001"),
            ("%E%", "%"),
            ("%5%", "    %"),
            ("%05%", "0000%"),
            ("%-5%", "    %"),
            ("%Ed", "%Ed"),
            ("%5Ed", " %5Ed"),
            ("%Od", "03"),
            ("%020c", "Sat Feb  3 04:05:06 2001"),
            ("%^c", "SAT FEB  3 04:05:06 2001"),
            ("%#c", "Sat Feb  3 04:05:06 2001"),
            ("%OD", "%OD"),
            ("%EF", "%EF"),
            ("%-5d", "    3"),
            ("%_5d", "    3"),
            ("%05e", "00003"),
            ("%5e", "    3"),
            ("%-e", "3"),
            ("%0e", "03"),
            ("%5k", "    4"),
            ("%^5a", "  SAT"),
            ("%_a", "Sat"),
            ("%010A", "00Saturday"),
            ("%-10A", "  Saturday"),
            ("%5j", "00034"),
            ("%-j", "34"),
            ("%3j", "034"),
            ("%ER", "04:05"),
            ("%7R", "  04:05"),
            ("%O7R", "%O7R"),
            ("%5p", "   AM"),
            ("%Er", "04:05:06 AM"),
            ("%0-d", "3"),
            ("%-0d", "03"),
            ("%5n", "    \n"),
            ("%26c", "  Sat Feb  3 04:05:06 2001"),
            ("%026c", "00Sat Feb  3 04:05:06 2001"),
            ("%+5d", "%+5d"),
            ("%é", "%é"),
        ] {
            let mut out = String::new();
            format(&mut out, 1000, pattern, &civil, 0, &|_| true);
            assert_eq!(out, expected, "{pattern}");
        }
    }
}
