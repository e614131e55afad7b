//! Tables for the terminal: columns as wide as their widest cell, two spaces apart.

use std::fmt;

/// Which way a column's cells are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table under construction; its `Display` is the printed form, a line each, without trailing blanks.
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

    /// Adds a row. An empty cell is shown as `-`, so that columns can be cut at blanks.
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

/// Text that a terminal takes for nothing else: what other people wrote into an object must not move the cursor.
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
