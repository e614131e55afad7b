//! The layout of a chart: what the axes show, how much room there is, where names stand. Sizes are in pixels.

use super::axis::{self, Scale};
use super::canvas::Heads;
use super::labels;
use super::parts::{Layer, Line, Parts};
use super::thin::Columns;
use super::{Axis, Chart, Unit, color::Color, text};

/// The size of the plot.
pub(super) const SIZE: (f64, f64) = (960.0, 540.0);
/// The margin around the plot.
pub(super) const MARGIN: f64 = 24.0;
/// The size of the title's text.
pub(super) const TITLE: f64 = 19.0;
/// The size of the subtitle's text.
pub(super) const SUBTITLE: f64 = 13.5;
/// The size of all other text.
pub(super) const SMALL: f64 = 12.5;
/// The room under the horizontal axis for its numbers and its name.
pub(super) const BOTTOM: f64 = 62.0;
/// The distance from the end of a line to its name.
pub(super) const LEADER: f64 = 16.0;
/// The most width of a name.
const LABEL_ROOM: f64 = 190.0;
/// The number of columns into which points are grouped: about the pixels of the plot's inside.
const COLUMNS: usize = 720;
/// An area that is at least this high at its end has its name beside it.
const ENOUGH: f64 = 5.0;

/// A name, and where it stands.
pub(super) struct Label {
    pub name: String,
    pub color: Color,
    pub place: Place,
}

/// Where a name stands, in coordinates of the chart's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// To the right of the end of a line, or of the middle of an area's end.
    Beside((f64, f64)),
    /// Inside its area, around this point.
    Inside((f64, f64)),
    /// To the right of this point of its area, which is too small for the name.
    Near((f64, f64)),
}

/// Everything that is drawn, and where.
pub(super) struct Plan {
    pub heads: Heads,
    pub x: Scale,
    pub y: Scale,
    /// The areas, from back to front.
    pub layers: Vec<Layer>,
    pub lines: Vec<Line>,
    pub dashed: Vec<Line>,
    pub labels: Vec<Label>,
    /// The room on the left, for the numbers of the axis.
    pub left: f64,
    /// The room on the right, for names.
    pub right: f64,
    /// The room above, for the headings.
    pub top: f64,
}

impl Plan {
    pub fn new(chart: &Chart) -> Self {
        let heads = Heads::new(&chart.title, &chart.subtitle);
        let top = heads.bottom() + 30.0;

        let times = chart.series.iter().flat_map(|series| series.points.iter().map(|(x, _)| *x));
        let most = if matches!(chart.x.unit, Unit::Date { .. }) { 7 } else { 10 };
        let x = axis::time(&chart.x, range(times.chain(ends(&chart.x))), most);
        let parts = Parts::new(chart, &Columns::new(x.range, COLUMNS));
        let y = axis::quantity(&chart.y, range(parts.heights().chain(ends(&chart.y))), 6);

        let high = (SIZE.1 - BOTTOM - top) / (y.range.1 - y.range.0);
        let labels: Vec<Label> = names(&parts, high);
        let numbers = y.ticks.iter().map(|(_, number)| text::width(number, SMALL));
        let beside = labels.iter().filter(|label| matches!(label.place, Place::Beside(_)));
        let room = beside.map(|label| text::width(&label.name, SMALL));
        Self {
            left: numbers.fold(0.0, f64::max) + 10.0,
            right: room.fold(0.0, f64::max) + LEADER,
            top,
            heads,
            x,
            y,
            layers: parts.layers,
            lines: parts.lines,
            dashed: parts.dashed,
            labels,
        }
    }
}

/// The names of areas and lines. A value of 1 is `high` pixels high.
fn names(parts: &Parts, high: f64) -> Vec<Label> {
    let label = |name: &str, color, place| Label { name: text::fit(name, SMALL, LABEL_ROOM), color, place };
    let areas = parts.layers.iter().filter_map(|layer| {
        let name = layer.name.as_deref()?;
        let (x, low, upper) = layer.bounds.last().copied()?;
        let beside = Place::Beside((x, f64::midpoint(low, upper)));
        if (upper - low) * high >= ENOUGH {
            return Some(label(name, layer.color, beside));
        }
        // An area that has ended, or nearly so, has its name where it was.
        let inside = labels::inside(&layer.bounds, text::width(name, SMALL) + 8.0, (SMALL + 4.0) / high);
        let near = || labels::highest(&layer.bounds).map(Place::Near);
        Some(label(name, layer.color, inside.map(Place::Inside).or_else(near).unwrap_or(beside)))
    });
    let lines = parts.lines.iter().chain(&parts.dashed).filter_map(|line| {
        let end = line.pieces.last()?.last().copied()?;
        Some(label(line.name.as_deref()?, line.color, Place::Beside(end)))
    });
    areas.chain(lines).collect()
}

/// The ends of the range that an axis always includes.
fn ends(axis: &Axis) -> impl Iterator<Item = f64> {
    axis.least.into_iter().flat_map(|(from, to)| [from, to]).filter(|end| super::drawable(*end))
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let range = finite.fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    range.unwrap_or((0.0, 1.0))
}
