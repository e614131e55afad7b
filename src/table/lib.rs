//! Prints tables to a terminal as kubectl does: each column is as wide as its widest cell, and two blanks separate
//! columns. The command line and the kubectl plugin use this crate.
//!
//! [`Table`] collects rows and prints them; [`printable`] makes one text safe to print.
//!
//! Invariant: a table never prints control characters, whatever its rows contain. It does not know the terminal's width,
//! and does not shorten or color cells.

use std::fmt;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// A table. Its `Display` prints the titles and each row on a line of its own, without trailing blanks.
#[derive(Clone, Debug)]
pub struct Table {
    align: Vec<Align>,
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            align: columns.iter().map(|(_, align)| *align).collect(),
            lines: vec![columns.iter().map(|(title, _)| (*title).to_owned()).collect()],
        }
    }

    /// Adds a row. An empty cell is printed as `-`, so that programs can split the line at blanks.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { printable(&cell) };
        self.lines.push(cells.into_iter().map(shown).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.align.len()).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for line in &self.lines {
            let cells = line.iter().zip(&self.align).zip(&widths).map(|((cell, align), width)| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// The text with blanks in place of control characters. Texts that other people wrote into an object must not move the
/// cursor or change the terminal's settings.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_cells_are_harmless() {
        let mut table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("WHY", Align::Left)]);
        table.row(["é".into(), "10".into(), String::new()]);
        table.row(["longer".into(), "7".into(), "a\u{1b}[2Jb\nc".into()]);
        assert_eq!(table.to_string(), "NAME     N  WHY\né       10  -\nlonger   7  a [2Jb c\n");
    }
}
