//! Plots of two values of each of many subjects: before and after, deserved and got.

use plotters::prelude::*;

use super::axis::{self, Scale};
use super::canvas::{self, FINE, failed, font, size, stroke, write};
use super::plan::{LEADER, MARGIN, SIZE, SMALL};
use super::{Axis, PlotError, color, text};
use plotters::style::text_anchor::{HPos, VPos};

/// Two values of each of many subjects, drawn as two points on a line for each subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// The plot's statement, in a sentence.
    pub title: String,
    /// The meaning of the values.
    pub subtitle: String,
    /// The axis of both values.
    pub axis: Axis,
    /// The names of the first and of the second values, written beside the points of the first line that has both.
    pub names: (String, String),
    /// The lines, from above.
    pub rows: Vec<Pair>,
}

/// A line of [`Pairs`].
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The subject whose values these are.
    pub name: String,
    /// The first value, if there is one.
    pub first: Option<f64>,
    /// The second value, if there is one.
    pub second: Option<f64>,
}

/// The most lines that are drawn.
const MOST: usize = 30;
/// The distance between two lines, in pixels.
const ROW: f64 = 22.0;
/// The most width of a name, in pixels.
const NAME_ROOM: f64 = 220.0;
/// The room above the lines, for the names of the points.
const ABOVE: f64 = 44.0;
/// The room below the lines, for the axis.
const BELOW: f64 = 44.0;
/// The radius of a point, in pixels.
const POINT: f64 = 5.0;

impl Pairs {
    /// The plot as an SVG document, 960 pixels wide and as high as its lines need. Only the first 30 lines are drawn;
    /// the subtitle says how many are left out. Fails if there is nothing to draw, or a value cannot be drawn.
    pub fn svg(&self) -> Result<String, PlotError> {
        for row in &self.rows {
            for y in [row.first, row.second].into_iter().flatten() {
                if !super::drawable(y) {
                    return Err(PlotError::OutOfRange { series: row.name.clone(), y });
                }
            }
        }
        if self.rows.iter().all(|row| row.first.is_none() && row.second.is_none()) {
            return Err(PlotError::Empty);
        }
        Sheet::new(self).svg()
    }
}

/// The layout of a plot of pairs.
struct Sheet<'a> {
    pairs: &'a Pairs,
    rows: &'a [Pair],
    values: Scale,
    lines: Scale,
    left: f64,
    heads: canvas::Heads,
    height: f64,
}

impl<'a> Sheet<'a> {
    #[allow(clippy::cast_precision_loss, reason = "at most MOST")]
    fn new(pairs: &'a Pairs) -> Self {
        let rows = pairs.rows.get(..MOST).unwrap_or(&pairs.rows);
        let left_out = pairs.rows.len() - rows.len();
        let subtitle = match left_out {
            0 => pairs.subtitle.clone(),
            count => format!("{}; {count} more are not shown", pairs.subtitle),
        };
        let found = rows.iter().flat_map(|row| [row.first, row.second]).flatten();
        let high = found.clone().fold(0.0, f64::max);
        let low = found.fold(0.0, f64::min);
        let values = axis::quantity(&pairs.axis, (low, high), 8);
        let names: Vec<String> = rows.iter().map(|row| text::fit(&row.name, SMALL, NAME_ROOM)).collect();
        let left = names.iter().map(|name| text::width(name, SMALL)).fold(0.0, f64::max) + LEADER;
        let count = rows.len() as f64;
        let ticks = names.into_iter().enumerate().map(|(row, name)| (-(row as f64) - 0.5, name)).collect();
        let heads = canvas::Heads::new(&pairs.title, &subtitle);
        let height = heads.bottom() + ABOVE + count * ROW + BELOW;
        let lines = Scale { label: String::new(), range: (-count, 0.0), ticks };
        Self { pairs, rows, values, lines, left, heads, height }
    }

    fn svg(&self) -> Result<String, PlotError> {
        let mut drawn = String::new();
        let dimensions = (SIZE.0, self.height);
        {
            let root =
                SVGBackend::with_string(&mut drawn, (size(SIZE.0), size(self.height))).into_drawing_area();
            root.fill(&WHITE).map_err(failed)?;
            self.heads.draw(&root)?;
            let label = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Right, VPos::Bottom));
            write(
                &root,
                &text::clean(&self.values.label),
                label,
                (SIZE.0 - 2.0 * MARGIN, self.height - 6.0),
            )?;
            let mut chart = ChartBuilder::on(&root)
                .margin_left(size(MARGIN))
                .margin_right(size(MARGIN * 2.0))
                .margin_top(size(self.heads.bottom() + ABOVE))
                .margin_bottom(0)
                .x_label_area_size(size(BELOW))
                .y_label_area_size(size(self.left))
                .build_cartesian_2d(self.values.clone(), self.lines.clone())
                .map_err(failed)?;
            canvas::mesh(&mut chart)?;
            self.points(&mut chart)?;
            self.names(&root, &chart)?;
            root.present().map_err(failed)?;
        }
        Ok(canvas::document(&drawn, dimensions, &format!("{}. {}", self.pairs.title, self.pairs.subtitle)))
    }

    fn points(&self, chart: &mut canvas::Canvas) -> Result<(), PlotError> {
        let (first, second) = colors();
        let radius = size(POINT);
        for (row, (y, _)) in self.rows.iter().zip(&self.lines.ticks) {
            if let (Some(one), Some(other)) = (row.first, row.second) {
                let way = PathElement::new(vec![(one, *y), (other, *y)], stroke(color::OTHERS.fill, 3.0));
                chart.draw_series(std::iter::once(way)).map_err(failed)?;
            }
            for (value, color) in [(row.first, first), (row.second, second)] {
                let point = value.map(|value| Circle::new((value, *y), radius, color.fill.filled()));
                chart.draw_series(point).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Writes the names of the points above the first line that has both.
    fn names(&self, root: &canvas::Area, chart: &canvas::Canvas) -> Result<(), PlotError> {
        let mut lines = self.rows.iter().zip(&self.lines.ticks);
        let both = lines.find_map(|(row, (y, _))| Some((row.first?, row.second?, *y)));
        let Some((first, second, y)) = both else { return Ok(()) };
        let pixels = |value: f64| {
            let (x, y) = chart.backend_coord(&(value, y));
            (f64::from(x) / FINE, f64::from(y) / FINE)
        };
        let (colors, names) =
            (colors(), (text::clean(&self.pairs.names.0), text::clean(&self.pairs.names.1)));
        let (one, other) = ((first, names.0, colors.0), (second, names.1, colors.1));
        let (low, high) = if first <= second { (one, other) } else { (other, one) };
        // The names stand on either side of the points if there is room, else one above the other.
        let from_left = pixels(low.0).0 - text::width(&low.1, SMALL) > MARGIN + self.left;
        let to_right = pixels(high.0).0 + text::width(&high.1, SMALL) < SIZE.0 - MARGIN;
        let lift = if from_left && to_right { (10.0, 10.0) } else { (26.0, 10.0) };
        let sides = (
            if from_left { HPos::Right } else { HPos::Left },
            if to_right { HPos::Left } else { HPos::Right },
        );
        for ((value, name, color), side, lift) in [(low, sides.0, lift.0), (high, sides.1, lift.1)] {
            let (x, y) = pixels(value);
            write(root, &name, font(SMALL, FontStyle::Bold, color.ink, (side, VPos::Bottom)), (x, y - lift))?;
        }
        Ok(())
    }
}

/// The colors of the first and of the second values.
fn colors() -> (color::Color, color::Color) {
    let [second, ..] = color::LINES;
    (color::REFERENCE, second)
}
