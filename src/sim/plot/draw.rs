//! The drawing itself, by `plotters`.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Scale;
use super::labels::apart;
use super::parts::{Density, Line};
use super::plan::{BOTTOM, LEADER, Label, MARGIN, Place, Plan, SIZE, SMALL, SUBTITLE, TITLE, lines_high};
use super::{Chart, PlotError, color, text};

/// The crate knows whole units only: so many to a pixel.
const FINE: f64 = 10.0;
/// Between names that stand upon each other.
const GAP: f64 = 16.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Canvas<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// The plan as a document; the chart names it for who cannot see it.
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
    Ok(document(&drawn, chart))
}

fn failed<E: std::fmt::Display>(error: E) -> PlotError {
    PlotError::Drawing(error.to_string())
}

/// Pixels in the crate's units.
#[allow(clippy::cast_possible_truncation, reason = "a plot is small")]
fn units(pixels: f64) -> i32 {
    (pixels * FINE).round() as i32
}

/// The same for sizes.
fn size(pixels: f64) -> u32 {
    u32::try_from(units(pixels)).unwrap_or(0)
}

fn stroke(color: RGBColor, pixels: f64) -> ShapeStyle {
    color.stroke_width(size(pixels))
}

/// Text of a size in pixels, hung up at a corner or a middle.
fn font<'a>(pixels: f64, weight: FontStyle, ink: RGBColor, (h, v): (HPos, VPos)) -> TextStyle<'a> {
    // The crate divides sizes of text by 1.24.
    let font = (FontFamily::Name("Helvetica, Arial, sans-serif"), pixels * FINE * 1.24, weight);
    TextStyle { color: ink.to_backend_color(), pos: Pos::new(h, v), ..TextStyle::from(font.into_font()) }
}

fn write(root: &Area, text: &str, style: TextStyle, (x, y): (f64, f64)) -> Result<(), PlotError> {
    root.draw(&Text::new(text.to_owned(), (units(x), units(y)), style)).map_err(failed)
}

fn headings(plan: &Plan, root: &Area) -> Result<(), PlotError> {
    let corner = (HPos::Left, VPos::Top);
    let mut y = MARGIN;
    for line in &plan.title {
        write(root, line, font(TITLE, FontStyle::Bold, color::INK, corner), (MARGIN, y))?;
        y += lines_high(&[String::new()], TITLE);
    }
    for line in &plan.subtitle {
        write(root, line, font(SUBTITLE, FontStyle::Normal, color::FAINT_INK, corner), (MARGIN, y))?;
        y += lines_high(&[String::new()], SUBTITLE);
    }
    // The axes' names: above the one, under the end of the other.
    let quantity = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Left, VPos::Top));
    write(root, &text::clean(&plan.y.label), quantity, (MARGIN, y + 8.0))?;
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

/// The grid with its numbers, and the line at zero.
fn grid(plan: &Plan, canvas: &mut Canvas) -> Result<(), PlotError> {
    let numbers = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Left, VPos::Top));
    canvas
        .configure_mesh()
        .set_all_tick_mark_size(size(4.0))
        .axis_style(TRANSPARENT)
        .light_line_style(TRANSPARENT)
        .bold_line_style(stroke(color::GRID, 1.0))
        .label_style(numbers)
        .draw()
        .map_err(failed)?;
    let (from, to) = plan.x.range;
    let base = PathElement::new(vec![(from, 0.0), (to, 0.0)], stroke(color::BASE, 1.0));
    canvas.draw_series(std::iter::once(base)).map(drop).map_err(failed)
}

fn series(plan: &Plan, canvas: &mut Canvas) -> Result<(), PlotError> {
    for layer in &plan.layers {
        let upper: Vec<(f64, f64)> = layer.bounds.iter().map(|(x, _, high)| (*x, *high)).collect();
        let lower = layer.bounds.iter().rev().map(|(x, low, _)| (*x, *low));
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
    for line in &plan.lines {
        for piece in solid(line) {
            canvas.draw_series(std::iter::once(piece)).map_err(failed)?;
        }
    }
    for line in &plan.dashed {
        for piece in &line.pieces {
            let dashes =
                DashedLineSeries::new(piece.clone(), size(6.0), size(4.0), stroke(line.color.fill, 1.5));
            canvas.draw_series(dashes).map_err(failed)?;
        }
    }
    Ok(())
}

fn solid(line: &Line) -> impl Iterator<Item = PathElement<(f64, f64)>> {
    line.pieces.iter().map(|piece| PathElement::new(piece.clone(), stroke(line.color.fill, 2.2)))
}

/// Names at the ends of lines, moved apart, with a leader where one is away from its line; and names in areas.
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
                let style = font(SMALL, FontStyle::Bold, color::INK, (HPos::Center, VPos::Center));
                write(root, &label.name, style, pixels(middle))?;
            }
            Place::Near(point) => {
                let style = font(SMALL, FontStyle::Bold, color::INK, (HPos::Left, VPos::Center));
                let (x, y) = pixels(point);
                write(root, &label.name, style, (x + 8.0, y))?;
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

/// The crate's document with a size in pixels, and a title for who cannot see it.
fn document(drawn: &str, chart: &Chart) -> String {
    let body = drawn.split_once(">\n").map_or(drawn, |(_, body)| body);
    let title = text::escaped(&text::clean(&format!("{}. {}", chart.title, chart.subtitle)));
    let (width, height) = SIZE;
    let (wide, high) = (size(width), size(height));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {wide} {high}\" \
         role=\"img\">\n<title>{title}</title>\n{body}"
    )
}
