//! Plots as SVG, to be read without looking anything up: every line and area has its name beside it, in its color.
//!
//! [`Chart::svg`] draws values over time with the `plotters` crate. The same chart gives the same bytes, and how many
//! they are does not depend on how many points there are: what is finer than a pixel is drawn as its lowest and highest
//! (lines) or its mean (areas). Of many series the largest are named; the others are one gray band or area.

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

/// Values over time, with what is needed to read them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What is seen, in a sentence: `The pool is half empty at night`.
    pub title: String,
    /// Of what it is: quantity, scenario, policy, what dashes mean.
    pub subtitle: String,
    /// The horizontal axis: time.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How the series are drawn.
    pub kind: Kind,
    /// What is drawn, in this order; stacked from below.
    pub series: Vec<Series>,
}

/// What an axis measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, as `cores`; for spans without the unit, which is chosen to read well: `wait`.
    pub label: String,
    /// What the numbers are.
    pub unit: Unit,
    /// What it shows in any case.
    pub least: Option<(f64, f64)>,
}

/// What the numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Just numbers: cores, jobs, a priority.
    Number,
    /// Shares from 0 to 1, told in percent.
    Share,
    /// Seconds, told in minutes, hours or days.
    Span,
    /// Seconds from a moment, told as days and times of day in UTC.
    Date {
        /// The moment, in seconds since 1970.
        start: i64,
    },
}

/// How series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Straight from point to point: what changes steadily.
    Lines,
    /// A value holds until the next one: what changes at once, such as counts.
    Steps,
    /// Areas upon each other, each value held until the next one: parts of a whole. None may be negative.
    Stacked,
}

/// What a series is to the chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// What was measured.
    #[default]
    Measured,
    /// What would be right: dashed, in the color of the measured series of the same name; gray and with its name where
    /// there is none.
    Reference,
    /// What is not in the foreground, such as idle slots: pale.
    Quiet,
}

/// Values over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name, printed beside it.
    pub name: String,
    /// What it is to the chart.
    pub role: Role,
    /// `(x, y)`, by x, which must not go back. Where y is not finite there is no value: a line is broken there, an area
    /// is empty.
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// An axis.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, least: None }
    }

    /// The same, showing these values in any case.
    #[must_use]
    pub fn over(self, from: f64, to: f64) -> Self {
        Self { least: Some((from, to)), ..self }
    }
}

impl Series {
    /// What was measured.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), role: Role::Measured, points }
    }

    /// The same in another role.
    #[must_use]
    pub fn as_role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Chart {
    /// The chart as an SVG document, 960 by 540 pixels. Fails where there is nothing to draw, or no way to.
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

/// Whether a number is one that axes tell exactly: far more than seconds of history or bytes of memory.
fn drawable(number: f64) -> bool {
    number.abs() <= 1e15
}
