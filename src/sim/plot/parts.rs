//! Turns the series of a chart into areas and lines, each with its color and its name.

use super::color::{self, Color};
use super::many::{Choice, band};
use super::thin::{Columns, pieces, steps};
use super::{Chart, Kind, Role, Series};

/// A line in one or more pieces.
pub(super) struct Line {
    /// The name beside the line's end.
    pub name: Option<String>,
    pub color: Color,
    pub pieces: Vec<Vec<(f64, f64)>>,
}

/// An area between two heights at each time.
pub(super) struct Layer {
    pub name: Option<String>,
    pub color: Color,
    pub density: Density,
    /// The lower and upper height at each time: `(x, lower, upper)`.
    pub bounds: Vec<(f64, f64, f64)>,
}

/// How an area is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Density {
    /// In full color: a part of a whole.
    Full,
    /// In a pale color: the range of a line that goes up and down faster than pixels can show.
    Faint,
}

/// All areas and lines of a chart.
#[derive(Default)]
pub(super) struct Parts {
    /// The areas, from back to front.
    pub layers: Vec<Layer>,
    pub lines: Vec<Line>,
    pub dashed: Vec<Line>,
    /// The color of each named series, for the reference line of the same name.
    colors: Vec<(String, Color)>,
}

impl Parts {
    pub fn new(chart: &Chart, columns: &Columns) -> Self {
        let mut parts = Self::default();
        match chart.kind {
            Kind::Stacked => parts.stack(chart, columns),
            Kind::Lines | Kind::Steps => parts.lines(chart, columns),
        }
        parts.references(chart, columns);
        parts
    }

    /// Every value that the vertical axis must show.
    pub fn heights(&self) -> impl Iterator<Item = f64> {
        let layers =
            self.layers.iter().flat_map(|layer| &layer.bounds).flat_map(|(_, low, high)| [*low, *high]);
        let lines = self.lines.iter().chain(&self.dashed).flat_map(|line| line.pieces.iter().flatten());
        layers.chain(lines.map(|(_, y)| *y))
    }

    fn lines(&mut self, chart: &Chart, columns: &Columns) {
        let choice = Choice::new(chart, columns, color::LINES.len());
        if !choice.others.is_empty() {
            self.layers.push(Layer {
                name: Some(choice.others_name()),
                color: Color { fill: color::QUIET.fill, ..color::OTHERS },
                density: Density::Full,
                bounds: band(&choice.others, columns),
            });
        }
        let mut palette = color::LINES.into_iter();
        for series in choice.named {
            let color = color_of(series, &mut palette, color::OTHERS);
            self.colors.push((series.name.clone(), color));
            self.line(series, color, chart.kind, columns);
        }
        // The first series is the most important, so it is drawn last, in front of the others.
        self.lines.reverse();
    }

    fn line(&mut self, series: &Series, color: Color, kind: Kind, columns: &Columns) {
        let name = Some(series.name.clone());
        if columns.are_crowded(&series.points) {
            let bounds = columns.extremes(&series.points);
            self.layers.push(Layer { name: None, color, density: Density::Faint, bounds });
            self.lines.push(Line { name, color, pieces: pieces(&columns.averages(&series.points)) });
        } else {
            self.lines.push(Line { name, color, pieces: thinned(series, kind, columns) });
        }
    }

    /// Stacks areas: the named measured series, then all others as one, and the quiet series on top.
    fn stack(&mut self, chart: &Chart, columns: &Columns) {
        let choice = Choice::new(chart, columns, color::AREAS.len());
        let mut palette = color::AREAS.into_iter();
        let mut lower = columns.zeros();
        let (quiet, measured): (Vec<&Series>, Vec<&Series>) =
            choice.named.iter().partition(|series| series.role == Role::Quiet);
        for series in measured {
            let color = color_of(series, &mut palette, color::OTHERS);
            self.layer(&series.name, color, columns.means(&series.points), &mut lower, columns);
        }
        let mut sum = columns.zeros();
        for series in &choice.others {
            for (sum, mean) in sum.iter_mut().zip(columns.means(&series.points)) {
                *sum += mean;
            }
        }
        self.layer(&choice.others_name(), color::OTHERS, sum, &mut lower, columns);
        for series in quiet {
            self.layer(&series.name, color::QUIET, columns.means(&series.points), &mut lower, columns);
        }
    }

    /// Adds an area on top of the areas so far, whose upper end is `lower`. An area without height is left out.
    fn layer(&mut self, name: &str, color: Color, heights: Vec<f64>, lower: &mut [f64], columns: &Columns) {
        if heights.iter().all(|height| *height <= 0.0) {
            return;
        }
        let mut bounds = Vec::with_capacity(heights.len() + 1);
        for ((x, low), height) in columns.middles().into_iter().zip(lower.iter_mut()).zip(heights) {
            bounds.push((x, *low, *low + height));
            *low += height;
        }
        // The area reaches from edge to edge of the plot.
        if let Some(first) = bounds.first_mut() {
            first.0 = columns.from();
        }
        bounds.extend(bounds.last().map(|(_, low, high)| (columns.to(), *low, *high)));
        self.layers.push(Layer { name: Some(name.to_owned()), color, density: Density::Full, bounds });
    }

    fn references(&mut self, chart: &Chart, columns: &Columns) {
        for series in chart.series.iter().filter(|series| series.role == Role::Reference) {
            let measured =
                chart.series.iter().any(|other| other.role == Role::Measured && other.name == series.name);
            let known = self.colors.iter().find(|(name, _)| *name == series.name).map(|(_, color)| *color);
            // The reference of a series without a name is not drawn.
            if measured && known.is_none() {
                continue;
            }
            let kind = if chart.kind == Kind::Lines { Kind::Lines } else { Kind::Steps };
            let pieces = thinned(series, kind, columns);
            self.dashed.push(Line {
                name: known.is_none().then(|| series.name.clone()),
                color: known.unwrap_or(color::REFERENCE),
                pieces: pieces.iter().flat_map(|piece| columns.dashes(piece)).collect(),
            });
        }
    }
}

fn color_of(series: &Series, palette: &mut impl Iterator<Item = Color>, quiet: Color) -> Color {
    match series.role {
        Role::Quiet => quiet,
        Role::Measured | Role::Reference => palette.next().unwrap_or(quiet),
    }
}

/// A series as pieces of a line, with no more points than pixels can show.
fn thinned(series: &Series, kind: Kind, columns: &Columns) -> Vec<Vec<(f64, f64)>> {
    let shaped =
        |piece: Vec<(f64, f64)>| if kind == Kind::Lines { columns.seen(piece) } else { steps(&piece) };
    pieces(&series.points).into_iter().map(|piece| columns.line(&shaped(piece))).collect()
}
