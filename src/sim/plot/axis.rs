//! Axes: where the numbers stand, and how they are written.

use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use plotters::coord::ranged1d::{KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use super::{Axis, Unit};

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// An axis as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// The quantity with the unit.
    pub label: String,
    /// The range of values that the axis shows.
    pub range: (f64, f64),
    /// The values of the grid lines, and the text at each.
    pub ticks: Vec<(f64, String)>,
}

/// The coordinates that `plotters` asks for.
impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range()).map(value, limit)
    }

    /// `plotters` asks for grid lines with a number, and for lines between those; there are none between.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.ticks.iter().map(|(value, _)| *value).collect(),
            KeyPointWeight::Any => Vec::new(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.ticks.iter().find(|(tick, _)| tick.total_cmp(value).is_eq());
        found.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// The axis for values of a range, with about `most` numbers. It includes zero, and both of its ends have a number.
pub(super) fn quantity(axis: &Axis, (low, high): (f64, f64), most: usize) -> Scale {
    let (low, high) = (low.min(0.0), if high <= 0.0 && low >= 0.0 { 1.0 } else { high.max(0.0) });
    let unit = Counted::of(axis.unit, high - low);
    let step = step(unit, (high - low) / unit.one(), most) * unit.one();
    let range = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
    Scale { label: labeled(&axis.label, unit.name()), range, ticks: multiples(unit, range, step) }
}

/// The axis for times of a range, with about `most` numbers. It ends where the range ends.
pub(super) fn time(axis: &Axis, (from, to): (f64, f64), most: usize) -> Scale {
    let to = if to > from { to } else { from + 1.0 };
    if let Unit::Date { start } = axis.unit
        && let Some(ticks) = dates(start, (from, to), most)
    {
        return Scale { label: labeled(&axis.label, Some("UTC")), range: (from, to), ticks };
    }
    let unit = Counted::of(axis.unit, to - from);
    let step = step(unit, (to - from) / unit.one(), most) * unit.one();
    Scale {
        label: labeled(&axis.label, unit.name()),
        range: (from, to),
        ticks: multiples(unit, (from, to), step),
    }
}

/// The unit of an axis's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Ones,
    Percent,
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl Counted {
    /// The unit that reads well for values that are `size` apart.
    fn of(unit: Unit, size: f64) -> Self {
        match unit {
            Unit::Number => Self::Ones,
            Unit::Share => Self::Percent,
            Unit::Span | Unit::Date { .. } if size <= 3.0 * MINUTE => Self::Seconds,
            Unit::Span | Unit::Date { .. } if size <= 3.0 * HOUR => Self::Minutes,
            Unit::Span | Unit::Date { .. } if size <= 4.0 * DAY => Self::Hours,
            Unit::Span | Unit::Date { .. } => Self::Days,
        }
    }

    /// One of this unit, in the unit of the values.
    fn one(self) -> f64 {
        match self {
            Self::Ones | Self::Seconds => 1.0,
            Self::Percent => 0.01,
            Self::Minutes => MINUTE,
            Self::Hours => HOUR,
            Self::Days => DAY,
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Ones | Self::Percent => None,
            Self::Seconds => Some("seconds"),
            Self::Minutes => Some("minutes"),
            Self::Hours => Some("hours"),
            Self::Days => Some("days"),
        }
    }

    /// The preferred steps of a unit that is not decimal: they divide a minute, an hour or a day, or make weeks.
    fn steps(self) -> &'static [f64] {
        match self {
            Self::Ones | Self::Percent => &[],
            Self::Seconds | Self::Minutes => &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0],
            Self::Hours => &[1.0, 2.0, 3.0, 6.0, 12.0, 24.0],
            Self::Days => &[1.0, 2.0, 7.0, 14.0, 28.0, 56.0],
        }
    }
}

fn labeled(label: &str, unit: Option<&str>) -> String {
    match unit {
        None => label.to_owned(),
        Some(unit) if label.is_empty() => unit.to_owned(),
        Some(unit) => format!("{label}, {unit}"),
    }
}

/// The least step that reads well and divides a range of this size into no more than `most` parts.
#[allow(clippy::cast_precision_loss, reason = "a few")]
fn step(unit: Counted, size: f64, most: usize) -> f64 {
    let least = size / most.max(1) as f64;
    if let Some(step) = unit.steps().iter().find(|step| **step >= least && least > 0.5) {
        return *step;
    }
    let magnitude = 10f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0 * magnitude)
}

fn multiples(unit: Counted, (from, to): (f64, f64), step: f64) -> Vec<(f64, String)> {
    let mut ticks = Vec::new();
    let mut at = (from / step - 1e-9).ceil();
    while at * step <= to + step * 1e-9 && ticks.len() < 1000 {
        let value = at * step;
        ticks.push((value, number(unit, value / unit.one(), step / unit.one())));
        at += 1.0;
    }
    ticks
}

/// A number with as many decimals as the step needs.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits")]
fn number(unit: Counted, value: f64, step: f64) -> String {
    let digits = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
    // -0 is written as 0.
    let value = if value == 0.0 { 0.0 } else { value };
    let text = grouped(&format!("{value:.digits$}"));
    if unit == Counted::Percent { format!("{text} %") } else { text }
}

/// Separates thousands by a thin space: `12 000`.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("−", digits));
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && whole.len() > 4 && (whole.len() - at) % 3 == 0 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    if let Some(rest) = rest {
        text.push('.');
        text.push_str(rest);
    }
    text
}

/// A step between two times of a calendar.
#[derive(Clone, Copy, Debug)]
enum Stride {
    Seconds(i64),
    Days(i64),
    Months(i64),
}

impl Stride {
    const ALL: [Self; 22] = [
        Self::Seconds(60),
        Self::Seconds(300),
        Self::Seconds(600),
        Self::Seconds(900),
        Self::Seconds(1800),
        Self::Seconds(3600),
        Self::Seconds(2 * 3600),
        Self::Seconds(3 * 3600),
        Self::Seconds(6 * 3600),
        Self::Seconds(12 * 3600),
        Self::Days(1),
        Self::Days(2),
        Self::Days(7),
        Self::Days(14),
        Self::Months(1),
        Self::Months(2),
        Self::Months(3),
        Self::Months(6),
        Self::Months(12),
        Self::Months(24),
        Self::Months(60),
        Self::Months(120),
    ];

    #[allow(clippy::cast_precision_loss, reason = "a few years")]
    fn seconds(self) -> f64 {
        match self {
            Self::Seconds(seconds) => seconds as f64,
            Self::Days(days) => days as f64 * DAY,
            Self::Months(months) => months as f64 * 30.4 * DAY,
        }
    }
}

/// The grid lines of a time axis with dates; `None` if the times are beyond the calendar.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "seconds of a few years")]
fn dates(start: i64, (from, to): (f64, f64), most: usize) -> Option<Vec<(f64, String)>> {
    let stride = Stride::ALL.into_iter().find(|stride| (to - from) / stride.seconds() <= most as f64)?;
    let (first, last) = (start.checked_add(from.floor() as i64)?, start.checked_add(to.ceil() as i64)?);
    let (first, last) = (Timestamp::from_second(first).ok()?, Timestamp::from_second(last).ok()?);
    let moments = match stride {
        Stride::Seconds(seconds) => {
            let begin = first.as_second().div_euclid(seconds).checked_mul(seconds)?;
            (0..1000).map_while(|step| Timestamp::from_second(begin + step * seconds).ok()).collect()
        }
        Stride::Days(days) => {
            // Weeks begin on Monday: day -3 of the epoch was a Monday.
            let phase = if days % 7 == 0 { -3 } else { 0 };
            let day = first.as_second().div_euclid(86_400) - phase;
            let begin = day.div_euclid(days) * days + phase;
            (0..1000).map_while(|step| Timestamp::from_second((begin + step * days) * 86_400).ok()).collect()
        }
        Stride::Months(months) => month_starts(first, months),
    };
    let within = moments.into_iter().filter(|moment| (first..=last).contains(moment));
    Some(
        within
            .take(1000)
            .enumerate()
            .map(|(at, moment)| {
                ((moment.as_second().saturating_sub(start)) as f64, told(moment, stride, at == 0))
            })
            .collect(),
    )
}

fn month_starts(first: Timestamp, months: i64) -> Vec<Timestamp> {
    let date = Offset::UTC.to_datetime(first).date();
    let begin = (i64::from(date.year()) * 12 + i64::from(date.month()) - 1).div_euclid(months) * months;
    (0..1000)
        .map_while(|step| {
            let month = begin + step * months;
            let year = i16::try_from(month.div_euclid(12)).ok()?;
            let date = Date::new(year, i8::try_from(month.rem_euclid(12) + 1).ok()?, 1).ok()?;
            Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
        })
        .collect()
}

/// The text at a grid line: with the day at midnight, and with the year in January and at the first line.
fn told(moment: Timestamp, stride: Stride, first: bool) -> String {
    let moment = Offset::UTC.to_datetime(moment);
    let format = match stride {
        Stride::Seconds(_) if first || (moment.hour() == 0 && moment.minute() == 0) => "%a %-d %b %H:%M",
        Stride::Seconds(_) => "%H:%M",
        Stride::Days(_) if first => "%a %-d %b %Y",
        Stride::Days(_) => "%a %-d %b",
        Stride::Months(months) if months % 12 == 0 => "%Y",
        Stride::Months(_) if first || moment.month() == 1 => "%b %Y",
        Stride::Months(_) => "%b",
    };
    moment.strftime(format).to_string()
}
