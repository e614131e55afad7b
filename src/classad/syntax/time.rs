//! Times to text and back.

use crate::functions::{to_c_int, to_integer, to_real};
use crate::value::AbsTime;

/// A moment in the proleptic Gregorian calendar, as a clock in its time zone shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// From 0 for January 1st.
    pub(crate) day_of_year: i64,
    /// From 0 for Sunday.
    pub(crate) day_of_week: i64,
}

const DAY: i64 = 86_400;
/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// Days from 1970-01-01 to a date; months and days beyond their range carry over.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year.saturating_add((month - 1).div_euclid(12));
    let month = (month - 1).rem_euclid(12) + 1;
    // Years that start in March put the leap day last.
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let in_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    year.div_euclid(400).saturating_mul(ERA).saturating_add(in_era - 719_468)
}

impl Civil {
    /// The date and time that a clock in the moment's time zone shows.
    pub(crate) fn of(time: AbsTime) -> Self {
        let local = time.secs.saturating_add(i64::from(time.offset));
        let (number, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let shifted = number + 719_468;
        let (era, in_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
        let of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
        let of_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
        let march = (5 * of_year + 2) / 153;
        let month = if march < 10 { march + 3 } else { march - 9 };
        let year = of_era + era * 400 + i64::from(month <= 2);
        Self {
            year,
            month,
            day: of_year - (153 * march + 2) / 5 + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            day_of_year: number - days(year, 1, 1),
            day_of_week: (number + 4).rem_euclid(7),
        }
    }
}

/// A moment in ISO 8601, as HTCondor prints it. UTC is `-00:00`.
pub(crate) fn absolute(time: AbsTime) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = Civil::of(time);
    let sign = if time.offset > 0 { '+' } else { '-' };
    let offset = time.offset.unsigned_abs();
    let (zone_hours, zone_minutes) = (offset / 3600, offset / 60 % 60);
    format!(
        "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{zone_hours:02}:{zone_minutes:02}"
    )
}

/// A span like `1+02:03:04`. Leading units of zero and fractions of a second are left out.
pub(crate) fn relative(secs: f64) -> String {
    let secs = to_c_int(secs);
    span(secs < 0, secs.wrapping_abs().into(), |second| format!("{second:02}"))
}

/// A span as HTCondor prints it in an expression: with fractions, and seconds with six digits.
pub(crate) fn relative_literal(secs: f64) -> String {
    let fraction = secs.abs().fract();
    span(secs < 0.0, to_c_int(secs.abs()).into(), |second| {
        if fraction == 0.0 { format!("{second:02}") } else { short(to_real(second) + fraction) }
    })
}

/// A number as C++ streams print it: six digits, without zeros at the end.
fn short(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        return bare(&format!("{number:.*}", usize::try_from(5 - exponent).unwrap_or(0)));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", bare(digits), exponent.abs())
}

/// A text that reads back as the moment: as [`absolute`] prints it if that reads back, else with fields beyond their
/// range (month 0 is the December before). `None`: no text reads as this moment.
pub(crate) fn absolute_exact(time: AbsTime) -> Option<String> {
    let civil = Civil::of(time);
    let year = civil.year.clamp(0, 9999);
    let month = (civil.month + 12 * (civil.year - year)).clamp(0, 99);
    let local = time.secs.saturating_add(i64::from(time.offset));
    let day = (local.div_euclid(DAY) - days(year, month, 0)).clamp(0, 99);
    let left = local.saturating_sub(days(year, month, day) * DAY);
    let hour = (left / 3600).clamp(0, 99);
    let minute = ((left - hour * 3600) / 60).clamp(0, 99);
    let second = (left - hour * 3600 - minute * 60).clamp(0, 99);
    let sign = if time.offset > 0 { '+' } else { '-' };
    let offset = time.offset.unsigned_abs();
    let zone_hours = (offset / 3600).min(99);
    let zone_minutes = (offset / 60).saturating_sub(zone_hours * 60);
    let text = format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{zone_hours:02}:{zone_minutes:02}"
    );
    (parse_absolute(&text) == Some(time)).then_some(text)
}

/// A text that reads back as the span: as [`relative`] prints it with fractions, else all of it in seconds. `None`: no
/// text reads as this span.
pub(crate) fn relative_exact(secs: f64) -> Option<String> {
    let fraction = secs.abs().fract();
    let text = span(secs < 0.0, to_integer(secs.abs()), |second| {
        if fraction == 0.0 { format!("{second:02}") } else { format!("{}", to_real(second) + fraction) }
    });
    // Neither form keeps the sign of a zero, which this comparison ignores.
    let reads_back = |text: &String| parse_relative(text) == Some(secs);
    Some(text).filter(reads_back).or_else(|| Some(format!("{secs}")).filter(reads_back))
}

fn span(negative: bool, whole: i64, print_seconds: impl Fn(i64) -> String) -> String {
    let sign = if negative { "-" } else { "" };
    let (days, hours, minutes) = (whole / DAY, whole / 3600 % 24, whole / 60 % 60);
    let seconds = print_seconds(whole % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{sign}{seconds}"),
        (0, 0, _) => format!("{sign}{minutes:02}:{seconds}"),
        (0, _, _) => format!("{sign}{hours:02}:{minutes:02}:{seconds}"),
        _ => format!("{sign}{days}+{hours:02}:{minutes:02}:{seconds}"),
    }
}

/// Reads a moment: year (four characters), month, day, hour, minute and second (two each), with anything but digits
/// before each. A field that is missing at the end is 0; a missing month is January. The zone is `Z`, `+hhmm` or
/// `+hh:mm`, else UTC.
pub(crate) fn parse_absolute(text: &str) -> Option<AbsTime> {
    let mut bytes = text.as_bytes().to_vec();
    let offset = take_zone(&mut bytes);
    let mut rest = digits_on(&bytes);
    let year = take_field(&mut rest, 4)?;
    let mut fields = [1, 0, 0, 0, 0];
    for field in &mut fields {
        rest = digits_on(rest);
        if let Some(number) = take_field(&mut rest, 2) {
            *field = number;
        }
    }
    if !digits_on(rest).is_empty() {
        return None;
    }
    let [month, day, hour, minute, second] = fields;
    let local = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    // C's mktime returns -1 for failure, so HTCondor cannot read this moment.
    (local != -1).then(|| AbsTime { secs: local - i64::from(offset), offset })
}

fn digits_on(text: &[u8]) -> &[u8] {
    let start = text.iter().position(u8::is_ascii_digit).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// The number in the next `width` characters, as C's `atoi` reads it; `None` if there are fewer characters.
fn take_field(rest: &mut &[u8], width: usize) -> Option<i64> {
    let (field, after) = rest.split_at_checked(width)?;
    *rest = after;
    Some(
        field
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')),
    )
}

/// Takes the time zone off the end of a text: seconds east of Greenwich, 0 if there is none.
fn take_zone(text: &mut Vec<u8>) -> i32 {
    let from_end =
        |text: &[u8], place: usize| text.len().checked_sub(place).and_then(|at| text.get(at)).copied();
    let sign = |byte: Option<u8>| matches!(byte, Some(b'+' | b'-'));
    let last = text.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b'\x0b').unwrap_or(0);
    if last > 0 && matches!(text.get(last), Some(b'z' | b'Z')) {
        text.remove(last);
        return 0;
    }
    if text.len() > 6
        && !sign(from_end(text, 5))
        && sign(from_end(text, 6))
        && from_end(text, 3) == Some(b':')
    {
        text.remove(text.len() - 3);
    } else if text.len() <= 5 || !sign(from_end(text, 5)) {
        return 0;
    }
    let start = text.len().saturating_sub(5);
    let Some([sign, digits @ ..]) = text.get(start..) else { return 0 };
    if !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let number = digits.iter().fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0'));
    let secs = number / 100 * 3600 + number % 100 * 60;
    let secs = if *sign == b'-' { -secs } else { secs };
    text.truncate(start);
    secs
}

/// Reads a span: `D+HH:MM:SS.s` or `DdHhMmSs`. Any unit may be left out, spaces may stand between the parts, and a
/// minus in front is for the whole. A number that is left out, or does not fit, is 0.
pub(crate) fn parse_relative(text: &str) -> Option<f64> {
    // HTCondor reads from the right: the last number is the seconds, and the others are known by their units.
    let mut rest = trimmed(text.as_bytes());
    let mut seconds = 0.0;
    let unit = rest.split_last().filter(|(last, _)| matches!(last, b's' | b'S'));
    if unit.is_some() || rest.last().is_some_and(u8::is_ascii_digit) {
        rest = trimmed(unit.map_or(rest, |(_, before)| before));
        let fraction = take_digits(&mut rest);
        let mut number = fraction.to_owned();
        if let Some((b'.', before)) = rest.split_last() {
            rest = before;
            number = format!("{}.{fraction}", take_digits(&mut rest));
        }
        // C's strtod decides what "", ".", ".5" and "5." are.
        seconds =
            if number.contains('.') { format!("0{number}0") } else { format!("0{number}") }.parse().ok()?;
    }
    let mut whole = 0_i32;
    for (units, worth) in [(b"mM:", 60), (b"hH:", 3600), (b"dD+", 86_400)] {
        rest = trimmed(rest);
        if let Some((_, before)) = rest.split_last().filter(|(last, _)| units.contains(last)) {
            rest = trimmed(before);
            let number: i32 = take_digits(&mut rest).parse().unwrap_or(0);
            // HTCondor adds in C's `int`.
            whole = whole.wrapping_add(number.wrapping_mul(worth));
        }
    }
    rest = trimmed(rest);
    let negative = rest.split_last().filter(|(last, _)| **last == b'-');
    rest = trimmed(negative.map_or(rest, |(_, before)| before));
    let total = f64::from(whole) + seconds;
    rest.is_empty().then_some(if negative.is_some() { -total } else { total })
}

/// The text without white space at its end.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let Some((b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c', before)) = text.split_last() {
        text = before;
    }
    text
}

/// Takes the digits that a text ends with.
fn take_digits<'t>(rest: &mut &'t [u8]) -> &'t str {
    let count = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = rest.split_at_checked(rest.len() - count).unwrap_or((rest, &[]));
    *rest = before;
    std::str::from_utf8(digits).unwrap_or_default()
}
