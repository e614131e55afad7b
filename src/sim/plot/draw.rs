//! Draws a chart by its plan.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Area, Canvas, FINE, document, failed, font, mesh, size, stroke, units, write};
use super::labels::apart;
use super::parts::Density;
use super::plan::{BOTTOM, LEADER, Label, MARGIN, Place, Plan, SIZE, SMALL};
use super::{Chart, PlotError, color, text};

/// The least distance between the middles of two names, in pixels.
const GAP: f64 = 16.0;

/// The room beside a name that has a ground of its own, in pixels.
const ROOM: f64 = 3.0;

/// Draws the chart as a document. The title and subtitle are also its title for screen readers.
pub(super) fn svg(chart: &Chart) -> Result<String, PlotError> {
    let plan = Plan::new(chart);
    let mut drawn = String::new();
    {
        let root = SVGBackend::with_string(&mut drawn, (size(SIZE.0), size(SIZE.1))).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        headings(&plan, &root)?;
        let mut canvas = canvas(&plan, &root)?;
        grid(&plan, &mut canvas)?;
        series(&plan, &mut canvas)?;
        names(&plan, &root, &canvas)?;
        root.present().map_err(failed)?;
    }
    Ok(document(&drawn, SIZE, &format!("{}. {}", chart.title, chart.subtitle)))
}

fn headings(plan: &Plan, root: &Area) -> Result<(), PlotError> {
    plan.heads.draw(root)?;
    // The vertical axis has its name above it, the horizontal one under its end.
    let quantity = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Left, VPos::Top));
    write(root, &text::clean(&plan.y.label), quantity, (MARGIN, plan.heads.bottom() + 8.0))?;
    let time = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Right, VPos::Bottom));
    write(root, &text::clean(&plan.x.label), time, (SIZE.0 - MARGIN - plan.right, SIZE.1 - 14.0))
}

fn canvas<'a, 'b>(plan: &Plan, root: &'a Area<'b>) -> Result<Canvas<'a, 'b>, PlotError> {
    ChartBuilder::on(root)
        .margin_left(size(MARGIN))
        .margin_right(size(MARGIN + plan.right))
        .margin_top(size(plan.top))
        .margin_bottom(0)
        .x_label_area_size(size(BOTTOM))
        .y_label_area_size(size(plan.left))
        .build_cartesian_2d(plan.x.clone(), plan.y.clone())
        .map_err(failed)
}

/// Draws the grid and the line at zero.
fn grid(plan: &Plan, canvas: &mut Canvas) -> Result<(), PlotError> {
    mesh(canvas)?;
    let (from, to) = plan.x.range;
    let base = PathElement::new(vec![(from, 0.0), (to, 0.0)], stroke(color::BASE, 1.0));
    canvas.draw_series(std::iter::once(base)).map(drop).map_err(failed)
}

fn series(plan: &Plan, canvas: &mut Canvas) -> Result<(), PlotError> {
    for layer in &plan.layers {
        let bounds = corners(&layer.bounds);
        let upper: Vec<(f64, f64)> = bounds.iter().map(|(x, _, high)| (*x, *high)).collect();
        let lower = bounds.iter().rev().map(|(x, low, _)| (*x, *low));
        let outline: Vec<(f64, f64)> = upper.iter().copied().chain(lower).collect();
        let fill = match layer.density {
            Density::Full => layer.color.fill.filled(),
            Density::Faint => layer.color.fill.mix(0.2).filled(),
        };
        canvas.draw_series(std::iter::once(Polygon::new(outline, fill))).map_err(failed)?;
        if layer.density == Density::Full {
            let edge = PathElement::new(upper, stroke(WHITE, 0.7));
            canvas.draw_series(std::iter::once(edge)).map_err(failed)?;
        }
    }
    for (lines, width) in [(&plan.lines, 2.2), (&plan.dashed, 1.5)] {
        for (line, piece) in lines.iter().flat_map(|line| line.pieces.iter().map(move |piece| (line, piece)))
        {
            let path = PathElement::new(piece.clone(), stroke(line.color.fill, width));
            canvas.draw_series(std::iter::once(path)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The bounds without those that equal both of their neighbors.
fn corners(bounds: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    let same = |one: &(f64, f64, f64), other: &(f64, f64, f64)| {
        (one.1, one.2).partial_cmp(&(other.1, other.2)).is_some_and(std::cmp::Ordering::is_eq)
    };
    let mut corners: Vec<(f64, f64, f64)> = Vec::new();
    for (at, bound) in bounds.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| bounds.get(before));
        let between =
            before.zip(bounds.get(at + 1)).is_some_and(|(one, other)| same(one, bound) && same(bound, other));
        if !between {
            corners.push(*bound);
        }
    }
    corners
}

/// Writes the name of an area in the area's own ink, on a pale ground, so that it can be read whatever areas are behind it.
/// `at` is the middle of the name's left end.
fn backed(root: &Area, label: &Label, (x, y): (f64, f64)) -> Result<(), PlotError> {
    let (wide, half) = (text::width(&label.name, SMALL), SMALL / 2.0 + 1.0);
    let corner = |x: f64, y: f64| (units(x), units(y));
    let ground = [corner(x - ROOM, y - half), corner(x + wide + ROOM, y + half)];
    root.draw(&Rectangle::new(ground, WHITE.mix(0.85).filled())).map_err(failed)?;
    let style = font(SMALL, FontStyle::Bold, label.color.ink, (HPos::Left, VPos::Center));
    write(root, &label.name, style, (x, y))
}

/// Writes the names: inside or near areas, or beside the ends of lines, moved apart there. A thin line leads to a
/// name that is away from its end.
fn names(plan: &Plan, root: &Area, canvas: &Canvas) -> Result<(), PlotError> {
    let pixels = |at: (f64, f64)| {
        let (x, y) = canvas.backend_coord(&at);
        (f64::from(x) / FINE, f64::from(y) / FINE)
    };
    let mut beside: Vec<(&Label, (f64, f64))> = Vec::new();
    for label in &plan.labels {
        match label.place {
            Place::Beside(end) => beside.push((label, pixels(end))),
            Place::Inside(middle) => {
                let (x, y) = pixels(middle);
                backed(root, label, (x - text::width(&label.name, SMALL) / 2.0, y))?;
            }
            Place::Near(point) => {
                let (x, y) = pixels(point);
                // A name at the right end goes to the left, so that it stays in the plot.
                let wide = text::width(&label.name, SMALL) + 2.0 * ROOM;
                backed(root, label, ((x + 8.0).min(SIZE.0 - MARGIN - plan.right - wide), y))?;
            }
        }
    }
    let wanted: Vec<f64> = beside.iter().map(|(_, (_, y))| *y).collect();
    let placed = apart(&wanted, GAP, (plan.top, SIZE.1 - BOTTOM));
    let edge = SIZE.0 - MARGIN - plan.right;
    for ((label, end), place) in beside.into_iter().zip(placed) {
        if (place - end.1).abs() > 1.0 || edge - end.0 > 2.0 {
            let path = vec![(end.0 + 2.0, end.1), (edge + LEADER - 4.0, place)];
            let path: Vec<(i32, i32)> = path.into_iter().map(|(x, y)| (units(x), units(y))).collect();
            root.draw(&PathElement::new(path, stroke(label.color.fill, 0.8))).map_err(failed)?;
        }
        let style = font(SMALL, FontStyle::Bold, label.color.ink, (HPos::Left, VPos::Center));
        write(root, &label.name, style, (edge + LEADER, place))?;
    }
    Ok(())
}
