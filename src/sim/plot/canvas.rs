//! Drawing primitives that all plots share: sizes in pixels, text, headings, the grid, and the document around them.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Scale;
use super::plan::{MARGIN, SIZE, SMALL, SUBTITLE, TITLE};
use super::{PlotError, color, text};

/// The units of `plotters` in a pixel: the crate has only whole units.
pub(super) const FINE: f64 = 10.0;
/// The distance between two lines of text, as a multiple of the text's size.
const LEADING: f64 = 1.3;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Canvas<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

pub(super) fn failed<E: std::fmt::Display>(error: E) -> PlotError {
    PlotError::Drawing(error.to_string())
}

/// Converts pixels to the crate's units.
#[allow(clippy::cast_possible_truncation, reason = "a plot is small")]
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * FINE).round() as i32
}

/// Converts a size in pixels to the crate's units; a negative size becomes 0.
pub(super) fn size(pixels: f64) -> u32 {
    u32::try_from(units(pixels)).unwrap_or(0)
}

pub(super) fn stroke(color: RGBColor, pixels: f64) -> ShapeStyle {
    color.stroke_width(size(pixels))
}

/// A style of text of a size in pixels, anchored at a corner or a middle.
pub(super) fn font<'a>(pixels: f64, weight: FontStyle, ink: RGBColor, (h, v): (HPos, VPos)) -> TextStyle<'a> {
    // `plotters` divides sizes of text by 1.24.
    let font = (FontFamily::Name("Helvetica, Arial, sans-serif"), pixels * FINE * 1.24, weight);
    TextStyle { color: ink.to_backend_color(), pos: Pos::new(h, v), ..TextStyle::from(font.into_font()) }
}

/// Writes text at a point in pixels.
pub(super) fn write(root: &Area, text: &str, style: TextStyle, (x, y): (f64, f64)) -> Result<(), PlotError> {
    root.draw(&Text::new(text.to_owned(), (units(x), units(y)), style)).map_err(failed)
}

/// Draws the grid with its numbers.
pub(super) fn mesh(canvas: &mut Canvas) -> Result<(), PlotError> {
    let numbers = font(SMALL, FontStyle::Normal, color::FAINT_INK, (HPos::Left, VPos::Top));
    canvas
        .configure_mesh()
        .set_all_tick_mark_size(size(4.0))
        .axis_style(TRANSPARENT)
        .light_line_style(TRANSPARENT)
        .bold_line_style(stroke(color::GRID, 1.0))
        .label_style(numbers)
        .draw()
        .map_err(failed)
}

/// The lines of the title and the subtitle.
pub(super) struct Heads {
    title: Vec<String>,
    subtitle: Vec<String>,
}

impl Heads {
    pub fn new(title: &str, subtitle: &str) -> Self {
        let wide = SIZE.0 - 2.0 * MARGIN;
        Self { title: text::wrap(title, TITLE, wide, 2), subtitle: text::wrap(subtitle, SUBTITLE, wide, 2) }
    }

    /// Each line with its size, style and color.
    fn lines(&self) -> impl Iterator<Item = (&String, f64, FontStyle, RGBColor)> {
        let title = self.title.iter().map(|line| (line, TITLE, FontStyle::Bold, color::INK));
        title.chain(self.subtitle.iter().map(|line| (line, SUBTITLE, FontStyle::Normal, color::FAINT_INK)))
    }

    /// The lower end of the last line.
    pub fn bottom(&self) -> f64 {
        MARGIN + self.lines().map(|(_, size, ..)| size * LEADING).sum::<f64>()
    }

    pub fn draw(&self, root: &Area) -> Result<(), PlotError> {
        let mut y = MARGIN;
        for (line, size, weight, ink) in self.lines() {
            write(root, line, font(size, weight, ink, (HPos::Left, VPos::Top)), (MARGIN, y))?;
            y += size * LEADING;
        }
        Ok(())
    }
}

/// Wraps what `plotters` drew into a document with a size in pixels, and a title for screen readers.
pub(super) fn document(drawn: &str, (width, height): (f64, f64), title: &str) -> String {
    let body = drawn.split_once(">\n").map_or(drawn, |(_, body)| body);
    let title = text::escaped(&text::clean(title));
    let (wide, high) = (size(width), size(height));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {wide} {high}\" role=\"img\">\n<title>{title}</title>\n{body}"
    )
}
