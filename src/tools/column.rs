//! A column of a table: which value of an ad it shows, and how.

use classad::{Ad, Env};

use crate::conversion::{Conversion, Source};
use crate::screen::Screen;

/// How a column makes the text of an ad.
#[derive(Clone, Debug)]
pub(crate) enum Show {
    /// A value in a format.
    Value(Source, Conversion),
    /// The text that a function makes of the ad; `None`: the ad lacks an attribute that the function needs.
    Made(fn(&Ad, &Screen, &Env) -> Option<String>),
    /// A number in such a function's words: it stands at the right of its column.
    Number(fn(&Ad, &Screen, &Env) -> Option<String>),
    /// The same text in every row: a format without a conversion.
    Fixed(String),
}

/// The text of a cell whose ad has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing.
    #[default]
    Nothing,
    /// One character.
    Char(char),
    /// `[????]`, as wide as the column.
    Unknown,
}

/// A column of a table.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent: each is one keyword of HTCondor's print formats"
)]
pub(crate) struct Column {
    pub(crate) heading: String,
    pub(crate) show: Show,
    /// The least width; 0: as wide as each text.
    pub(crate) width: usize,
    /// Whether texts stand at the left.
    pub(crate) left: bool,
    /// Whether the column gets as wide as its widest text.
    pub(crate) grows: bool,
    /// Whether texts that are wider than the column are cut.
    pub(crate) cuts: bool,
    /// Whether nothing separates the column from that before it.
    pub(crate) joined: bool,
    pub(crate) hidden: bool,
    pub(crate) absent: Absent,
}

/// A cell: its text and what the table must know of it.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: Option<String>,
    number: bool,
}

impl Column {
    /// A column as wide as its heading at least, whose texts stand at the left and are never cut.
    pub(crate) fn new(heading: &str, show: Show) -> Self {
        Self {
            heading: heading.to_owned(),
            show,
            width: heading.len(),
            left: true,
            grows: true,
            cuts: false,
            joined: false,
            hidden: false,
            absent: Absent::Nothing,
        }
    }

    /// The column with this width for ever, its texts at the right. Wider texts are cut.
    pub(crate) fn right(self, width: usize) -> Self {
        Self { width, left: false, grows: false, cuts: true, ..self }
    }

    /// The column with this width for ever, its texts at the left. Wider texts are cut.
    pub(crate) fn left(self, width: usize) -> Self {
        Self { width, left: true, grows: false, cuts: true, ..self }
    }

    /// The column without a width: nothing fills it up.
    pub(crate) fn last(self) -> Self {
        Self { width: 0, left: false, grows: false, cuts: true, ..self }
    }

    /// The column with nothing between it and the column before it.
    pub(crate) fn joined(self) -> Self {
        Self { joined: true, ..self }
    }

    /// The column, and what stands where an ad has no value.
    pub(crate) fn or(self, absent: Absent) -> Self {
        Self { absent, ..self }
    }

    /// The column whose wider texts are not cut.
    pub(crate) fn whole(self) -> Self {
        Self { cuts: false, ..self }
    }

    /// The cell of an ad. Widens the column as far as HTCondor foresees the width of the text.
    pub(crate) fn cell(&mut self, ad: &Ad, screen: &Screen, env: &Env) -> Cell {
        let (found, number) = match &self.show {
            Show::Value(source, conversion) => {
                let fills = conversion.is_number() && !conversion.is_left();
                (conversion.text(source, ad, screen, env), fills)
            }
            Show::Made(made) => (made(ad, screen, env).map(measured), false),
            Show::Number(made) => (made(ad, screen, env).map(measured), true),
            Show::Fixed(text) => (Some(measured(text.clone())), false),
        };
        if let Some((_, foreseen)) = &found
            && self.grows
        {
            self.width = self.width.max(*foreseen);
        }
        Cell { text: found.map(|(text, _)| text), number }
    }

    /// Appends the cell's text, in the column's width.
    pub(crate) fn print(&mut self, cell: &Cell, out: &mut String) {
        let absent;
        let text = if let Some(text) = &cell.text {
            text.as_str()
        } else {
            absent = self.absent.text(self.width);
            &absent
        };
        let len = text.len();
        if self.grows {
            self.width = self.width.max(len);
        }
        let missing = self.width.saturating_sub(len);
        let left = self.left && !(cell.number && cell.text.is_some());
        if self.width > 0 && len > self.width && self.cuts {
            out.push_str(text.get(..text.floor_char_boundary(self.width)).unwrap_or_default());
        } else if left {
            out.push_str(text);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            out.extend(std::iter::repeat_n(' ', missing));
            out.push_str(text);
        }
    }
}

impl Cell {
    /// A cell that shows this text.
    pub(crate) fn of(text: String) -> Self {
        Self { text: Some(text), number: false }
    }

    /// A cell that shows what stands for no value.
    pub(crate) const fn none() -> Self {
        Self { text: None, number: false }
    }

    /// A cell that shows a number, which stands at the right.
    pub(crate) const fn number(text: String) -> Self {
        Self { text: Some(text), number: true }
    }

    /// A cell that shows a number, or what stands for none if the number is not above 0.
    pub(crate) fn counted(number: i64) -> Self {
        Self { text: (number > 0).then(|| number.to_string()), number: true }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

fn measured(text: String) -> (String, usize) {
    let len = text.len();
    (text, len)
}

impl Absent {
    fn text(self, width: usize) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Char(char) => char.to_string(),
            Self::Unknown if width < 3 => "?".repeat(width.min(1)),
            Self::Unknown => format!("[{}]", "?".repeat(width - 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(column: Column, cell: &Cell) -> String {
        let mut out = String::new();
        let mut column = column;
        column.print(cell, &mut out);
        out
    }

    #[test]
    fn texts_fill_their_columns() {
        let column = || Column::new("HEAD", Show::Fixed(String::new()));
        let text = |text: &str| Cell::of(text.to_owned());
        let none = Cell { text: None, number: true };
        for (column, cell, expected) in [
            (column(), text("ab"), "ab  "),
            (column(), text("abcde"), "abcde"),
            (column(), Cell::counted(7), "   7"),
            (column().or(Absent::Char('_')), Cell::counted(0), "_   "),
            (column().right(3), text("ab"), " ab"),
            (column().right(3), text("abcd"), "abc"),
            (column().left(3).whole(), text("abcd"), "abcd"),
            (column().right(6).or(Absent::Unknown), none.clone(), "[????]"),
            (column().last().or(Absent::Unknown), none.clone(), ""),
            (column().last(), text("abcdefgh"), "abcdefgh"),
            (column().left(2), text("aé"), "a"),
        ] {
            assert_eq!(printed(column, &cell), expected);
        }
    }
}
