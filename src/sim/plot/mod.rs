//! Plots as SVG. Every line and area has its name beside it, in its color, so that no legend is needed.
//!
//! [`Chart::svg`] draws values over time, [`Pairs::svg`] two values of each of many subjects, both with the
//! `plotters` crate. The same chart always gives the same bytes. The number of points does not change a plot's size:
//! the points of one pixel column are drawn as their lowest and highest (lines) or as their mean (areas). If a chart
//! has many series, only the largest are named; the others become one gray band or area.

mod axis;
mod canvas;
mod color;
mod draw;
mod error;
mod labels;
mod many;
mod pairs;
mod parts;
mod plan;
#[cfg(test)]
mod tests;
mod text;
mod thin;

pub use error::PlotError;
pub use pairs::{Pair, Pairs};

/// A chart of values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The chart's statement, in a sentence: `The pool is half empty at night`.
    pub title: String,
    /// The meaning of the values: quantity, scenario, policy, and the meaning of dashes.
    pub subtitle: String,
    /// The horizontal axis: time.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How the series are drawn.
    pub kind: Kind,
    /// The series, in the order in which they are drawn; areas are stacked from below.
    pub series: Vec<Series>,
}

/// The quantity of an axis, and a range that the axis must show.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, such as `cores` or `wait`. For spans the unit is added when the axis is drawn.
    pub label: String,
    /// The form of the numbers.
    pub unit: Unit,
    /// A range that the axis always includes.
    pub least: Option<(f64, f64)>,
}

/// The form of the numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers: cores, jobs, a priority.
    Number,
    /// Shares from 0 to 1, shown in percent.
    Share,
    /// Seconds, shown in minutes, hours or days.
    Span,
    /// Seconds from a moment, shown as dates and times of day in UTC.
    Date {
        /// The moment, in seconds since 1970.
        start: i64,
    },
}

/// How series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Straight lines from point to point, for values that change steadily.
    Lines,
    /// Each value holds until the next point, for values that jump, such as counts.
    Steps,
    /// Areas stacked on each other, for parts of a whole. Each value holds until the next point. No value may be
    /// negative.
    Stacked,
}

/// The role of a series in the chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A measurement.
    #[default]
    Measured,
    /// A target to compare with. Drawn dashed, in the color of the measured series of the same name; in gray and with
    /// its own name if there is no such series.
    Reference,
    /// A measurement in the background, such as idle slots. Drawn pale.
    Quiet,
}

/// A series of values over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The series' name, printed beside it.
    pub name: String,
    /// The series' role in the chart.
    pub role: Role,
    /// The points `(x, y)`, in the order of x. A y that is not finite is a missing value: a line breaks there, an
    /// area is empty.
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// An axis of a quantity.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, least: None }
    }

    /// The same axis, always showing the range from `from` to `to`.
    #[must_use]
    pub fn over(self, from: f64, to: f64) -> Self {
        Self { least: Some((from, to)), ..self }
    }
}

impl Series {
    /// A measured series.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), role: Role::Measured, points }
    }

    /// The same series in another role.
    #[must_use]
    pub fn in_role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Chart {
    /// The chart as an SVG document of 960 by 540 pixels. Fails if there is nothing to draw, or a value cannot be
    /// drawn.
    pub fn svg(&self) -> Result<String, PlotError> {
        self.check()?;
        draw::svg(self)
    }

    fn check(&self) -> Result<(), PlotError> {
        let mut any = false;
        for series in &self.series {
            let name = || series.name.clone();
            if let Some((x, _)) = series.points.iter().find(|(x, _)| !drawable(*x)) {
                return Err(PlotError::Time { series: name(), x: *x });
            }
            let backwards =
                series.points.iter().zip(series.points.iter().skip(1)).find(|(one, next)| next.0 < one.0);
            if let Some((one, next)) = backwards {
                return Err(PlotError::Backwards { series: name(), from: one.0, to: next.0 });
            }
            let values = series.points.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
            for y in values {
                any = true;
                if !drawable(y) {
                    return Err(PlotError::OutOfRange { series: name(), y });
                }
                if self.kind == Kind::Stacked && y < 0.0 {
                    return Err(PlotError::Negative { series: name(), y });
                }
            }
        }
        if any { Ok(()) } else { Err(PlotError::Empty) }
    }
}

/// Whether axes can show a number exactly. The limit is far above the seconds of history and the bytes of a machine.
fn drawable(number: f64) -> bool {
    number.abs() <= 1e15
}
