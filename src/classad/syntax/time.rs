//! Times to text and back.

use crate::classad::functions::{to_c_int, to_integer, to_real};
use crate::classad::value::AbsTime;

/// A moment in the proleptic Gregorian calendar, told in its own time zone.
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
    /// From 0 for January 1.
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
    /// The date and time of day that a clock with the time's offset shows.
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

/// A moment in ISO 8601, as HTCondor prints it (Greenwich is `-00:00`).
pub(crate) fn absolute(time: AbsTime) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = Civil::of(time);
    let sign = if time.offset > 0 { '+' } else { '-' };
    let offset = time.offset.unsigned_abs();
    let (zone_hours, zone_minutes) = (offset / 3600, offset / 60 % 60);
    format!(
        "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{zone_hours:02}:{zone_minutes:02}"
    )
}

/// A span like `1+02:03:04`, leading units of zero and any fraction of a second left out.
pub(crate) fn relative(secs: f64) -> String {
    let secs = to_c_int(secs);
    span(secs < 0, secs.wrapping_abs().into(), |second| format!("{second:02}"))
}

/// A span as [`relative`] prints it, with the fraction, for text that reads back as the same.
pub(crate) fn relative_exact(secs: f64) -> String {
    let fraction = secs.abs().fract();
    span(secs < 0.0, to_integer(secs.abs()), |second| {
        if fraction == 0.0 { format!("{second:02}") } else { format!("{}", to_real(second) + fraction) }
    })
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

/// Reads a moment. Date and time are numbers of four and two digits with anything but digits between; what
/// is missing at the end is 0. A zone is `Z`, `+hhmm` or `+hh:mm`; without one it is Greenwich.
pub(crate) fn parse_absolute(text: &str) -> Option<AbsTime> {
    let text = text.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_end();
    let (body, offset) = zone(text)?;
    let (year, mut rest) = number(body, 4)?;
    let mut fields = [1, 0, 0, 0, 0];
    for field in &mut fields {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        if rest.is_empty() {
            break;
        }
        (*field, rest) = number(rest, 2)?;
    }
    if !rest.is_empty() {
        return None;
    }
    let [month, day, hour, minute, second] = fields;
    let local = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    // C's mktime answers -1 for failure, so HTCondor cannot read that moment.
    (local != -1).then(|| AbsTime { secs: local - i64::from(offset), offset })
}

/// Splits a zone off the end.
fn zone(text: &str) -> Option<(&str, i32)> {
    if let Some(body) = text.strip_suffix(['Z', 'z']) {
        return Some((body, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (body, zone) = text.split_at_checked(at)?;
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let has_shape = matches!((zone.len(), zone.find(':')), (5, None) | (6, Some(3)));
    if !has_shape || digits.len() != 4 {
        return Some((text, 0));
    }
    let number: i32 = digits.parse().ok()?;
    let secs = number / 100 * 3600 + number % 100 * 60;
    Some((body, if zone.starts_with('-') { -secs } else { secs }))
}

/// A number of exactly so many digits, and what follows it.
fn number(text: &str, digits: usize) -> Option<(i64, &str)> {
    let (head, rest) = text.split_at_checked(digits)?;
    let all = head.bytes().all(|byte| byte.is_ascii_digit());
    if all { Some((head.parse().ok()?, rest)) } else { None }
}

/// Reads a span: `D+HH:MM:SS.s` or `DdHhMmSs`, units optional from the left, a minus for all of it.
pub(crate) fn parse_relative(text: &str) -> Option<f64> {
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let (negative, mut rest) = match compact.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, compact.as_str()),
    };
    // From the right, as HTCondor does: seconds need no unit, the others are known by theirs.
    let seconds = match rest.strip_suffix(['s', 'S']) {
        Some(before) => take_number(before, &mut rest)?,
        None if rest.ends_with(|c: char| c.is_ascii_digit()) => take_number(rest, &mut rest)?,
        None => 0.0,
    };
    let mut total = seconds;
    for (units, worth) in [(['m', 'M', ':'], 60.0), (['h', 'H', ':'], 3600.0), (['d', 'D', '+'], 86_400.0)] {
        if let Some(before) = rest.strip_suffix(units) {
            total += take_number(before, &mut rest)? * worth;
        }
    }
    rest.is_empty().then_some(if negative { -total } else { total })
}

/// Takes the number a text ends with; what is before it goes to `rest`.
fn take_number<'t>(text: &'t str, rest: &mut &'t str) -> Option<f64> {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    *rest = before;
    text.get(before.len()..)?.parse().ok()
}
