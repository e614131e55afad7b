//! Columns beside each other: how rows and headings print.

use classad::{Ad, Env};

use crate::column::{Cell, Column};
use crate::screen::Screen;

/// The texts around rows and between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) row_begin: &'static str,
    /// Before each column but the first.
    pub(crate) before: &'static str,
    /// Behind each column but the last.
    pub(crate) after: &'static str,
    pub(crate) row_end: &'static str,
}

impl Apart {
    /// A space between columns, and a row a line.
    pub(crate) const SPACES: Self = Self { row_begin: "", before: " ", after: "", row_end: "\n" };
    /// Nothing: the formats of the columns say it all.
    pub(crate) const NOTHING: Self = Self { row_begin: "", before: "", after: "", row_end: "" };
}

/// A table whose columns get wider with each ad that becomes a row, before the first row is printed.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) apart: Apart,
    /// No line is longer; `None`: any length.
    pub(crate) longest: Option<usize>,
}

/// The cells of one row.
pub(crate) type Row = Vec<Cell>;

impl Table {
    /// A table with a space between columns.
    pub(crate) fn new(columns: Vec<Column>, longest: Option<usize>) -> Self {
        Self { columns, apart: Apart::SPACES, longest }
    }

    /// The row of an ad.
    pub(crate) fn row(&mut self, ad: &Ad, screen: &Screen, env: &Env) -> Row {
        self.columns.iter_mut().map(|column| column.cell(ad, screen, env)).collect()
    }

    /// The line of headings.
    pub(crate) fn headings(&self) -> String {
        let mut line = self.apart.row_begin.to_owned();
        let last = self.columns.len().saturating_sub(1);
        for (number, column) in self.columns.iter().enumerate().filter(|(_, column)| !column.hidden) {
            if number > 0 && !column.joined {
                line.push_str(self.apart.before);
            }
            line.push_str(&column.heading);
            line.extend(std::iter::repeat_n(' ', column.width.saturating_sub(column.heading.len())));
            if number < last {
                line.push_str(self.apart.after);
            }
        }
        self.shorten(&mut line, 0);
        line.push_str(self.apart.row_end);
        line
    }

    /// Appends a row to the text.
    pub(crate) fn print(&mut self, row: &Row, out: &mut String) {
        let begin = out.len();
        out.push_str(self.apart.row_begin);
        let last = self.columns.len().saturating_sub(1);
        for (number, (column, cell)) in self.columns.iter_mut().zip(row).enumerate() {
            if column.hidden {
                continue;
            }
            if number > 0 && !column.joined {
                out.push_str(self.apart.before);
            }
            column.print(cell, out);
            if number < last {
                out.push_str(self.apart.after);
            }
        }
        self.shorten(out, begin);
        out.push_str(self.apart.row_end);
    }

    fn shorten(&self, text: &mut String, begin: usize) {
        if let Some(longest) = self.longest.filter(|longest| text.len() - begin > *longest) {
            text.truncate(text.floor_char_boundary(begin + longest));
        }
    }
}

/// Removes the spaces before the end of the last line.
pub(crate) fn trim_line(out: &mut String) {
    if out.ends_with('\n') {
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}
