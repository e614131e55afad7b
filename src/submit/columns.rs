//! The columns of an item: how an item is split among the variables of a queue statement, and the options of `table`.

use crate::queue::Reading;

/// How the lines of `from table` are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The line that names the variables, from 0. `None`: no line does.
    pub(crate) header: Option<usize>,
    /// How many lines behind the header are left out.
    pub(crate) skip: usize,
    /// Whether blanks separate columns, too.
    pub(crate) blanks: bool,
    /// Whether blanks around a column are left out.
    pub(crate) trim: bool,
    /// The separator of columns.
    pub(crate) separator: Option<char>,
}

/// A table as `table` without options reads it.
const TABLE: Table = Table { header: Some(0), skip: 0, blanks: false, trim: true, separator: Some(',') };

/// A table that is split as a list without a table is.
const STANDARD: Table = Table { header: None, blanks: true, ..TABLE };

/// Reads the options in parentheses behind `table`, if there are any. Returns also what follows, and the options that are
/// none: as HTCondor does, the table is read without them.
pub(crate) fn table_options<'t>(
    text: &'t str,
    reading: &Reading<'_>,
) -> Result<(Table, &'t str, Vec<String>), String> {
    let mut ignored = Vec::new();
    let Some(open) = text.strip_prefix('(') else { return Ok((TABLE, text, ignored)) };
    let (options, rest) = open.split_once(')').ok_or("the options of table are not closed: expected )")?;
    let mut table = TABLE;
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        if table.set(option, reading).is_none() {
            ignored.push(option.to_owned());
        }
    }
    Ok((table, rest, ignored))
}

impl Table {
    /// Reads an option. `None`: the option or its value is none.
    fn set(&mut self, option: &str, reading: &Reading<'_>) -> Option<()> {
        if option.eq_ignore_ascii_case("standard") {
            *self = STANDARD;
            return Some(());
        }
        if option.eq_ignore_ascii_case("csv") {
            *self = Self { header: None, ..TABLE };
            return Some(());
        }
        let (key, value) = option.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
        match key.to_ascii_lowercase().as_str() {
            "header" if value.eq_ignore_ascii_case("none") => self.header = None,
            "header" => self.header = usize::try_from((reading.integer)(value)?).ok(),
            "skip" => self.skip = usize::try_from((reading.integer)(value)?).unwrap_or(0),
            "trim" => self.trim = (reading.boolean)(value)?,
            "comma_sep" => self.separator = (reading.boolean)(value)?.then_some(','),
            "sep" => self.separator = value.chars().next(),
            _ => return None,
        }
        Some(())
    }

    /// Whether a character separates columns. Without a separator of its own, a table has those of a list.
    fn separates(self, c: char) -> bool {
        match self.separator {
            Some(separator) => c == separator || (self.blanks && matches!(c, ' ' | '\t')),
            None => matches!(c, ',' | ' ' | '\t'),
        }
    }
}

/// Splits an item into the values of so many variables. Without a table, commas and blanks separate the values, and the last
/// variable gets the rest.
pub(crate) fn fields(item: &str, count: usize, table: Option<Table>) -> Vec<String> {
    let mut fields = split(item, count, table);
    fields.resize(count, String::new());
    fields
}

/// The columns of the line that names the variables of a table.
pub(crate) fn columns(header: &str, table: Table) -> Vec<String> {
    split(header, usize::MAX, Some(table)).iter().map(|name| name.trim().to_owned()).collect()
}

/// The first columns of an item, at most so many. The last has the rest.
fn split(item: &str, count: usize, table: Option<Table>) -> Vec<String> {
    let item = item.strip_suffix('\r').unwrap_or(item);
    let table = table.unwrap_or(STANDARD);
    let unit_separated = table == STANDARD && item.contains('\x1f');
    let separates = |c: char| if unit_separated { c == '\x1f' } else { table.separates(c) };
    let trimmed =
        |text: &str| if table.trim { text.trim_matches([' ', '\t']).to_owned() } else { text.to_owned() };
    let mut fields = Vec::new();
    let mut rest = trimmed(item);
    if rest.is_empty() {
        return fields;
    }
    while fields.len() + 1 < count {
        let Some((at, c)) = rest.char_indices().find(|(_, c)| separates(*c)) else { break };
        let behind = trimmed(rest.get(at + c.len_utf8()..).unwrap_or_default());
        fields.push(trimmed(rest.get(..at).unwrap_or_default()));
        rest = behind;
    }
    fields.push(rest);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table that `table` and these options make, and the options that are ignored.
    fn table(options: &str) -> (Table, Vec<String>) {
        let reading = Reading {
            integer: &|text| text.parse().ok(),
            boolean: &|text| match text {
                "true" | "1" => Some(true),
                "FALSE" | "false" | "0" => Some(false),
                _ => None,
            },
        };
        let (table, rest, ignored) = table_options(options, &reading).unwrap();
        assert_eq!(rest, " (", "{options}");
        (table, ignored)
    }

    #[test]
    fn options_of_a_table() {
        for (options, expected, none) in [
            (" (", TABLE, &[] as &[&str]),
            ("(standard) (", STANDARD, &[]),
            ("(CSV) (", Table { header: None, ..TABLE }, &[]),
            ("(header=2, skip=1) (", Table { header: Some(2), skip: 1, ..TABLE }, &[]),
            ("(header=none) (", Table { header: None, ..TABLE }, &[]),
            ("(header = -1) (", Table { header: None, ..TABLE }, &[]),
            ("(sep=|) (", Table { separator: Some('|'), ..TABLE }, &[]),
            ("(sep= ) (", Table { separator: None, ..TABLE }, &[]),
            ("(trim=0) (", Table { trim: false, ..TABLE }, &[]),
            ("(comma_sep=FALSE) (", Table { separator: None, ..TABLE }, &[]),
            // HTCondor ignores what is no boolean, no number and no option.
            ("(trim=no, skip=x) (", TABLE, &["trim=no", "skip=x"]),
            ("(tsv, skip=1, foo=bar) (", Table { skip: 1, ..TABLE }, &["tsv", "foo=bar"]),
        ] {
            let (found, ignored) = table(options);
            assert_eq!(
                (found, ignored.as_slice()),
                (expected, none.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
                "{options}"
            );
        }
    }

    #[test]
    fn items_are_split_among_the_variables() {
        for (item, count, expected) in [
            ("1 2 3 4", 3, &["1", "2", "3 4"] as &[&str]),
            ("5,6", 3, &["5", "6", ""]),
            (" 7 ", 2, &["7", ""]),
            ("a, b c", 1, &["a, b c"]),
            ("", 2, &["", ""]),
            ("x\x1fy z", 2, &["x", "y z"]),
            ("a,,b", 3, &["a", "", "b"]),
        ] {
            assert_eq!(fields(item, count, None), expected, "{item}");
        }
    }

    #[test]
    fn columns_of_a_table_are_separated_as_its_options_say() {
        let blanks = Table { separator: None, ..TABLE };
        for (item, table, expected) in [
            ("1, 2 3", TABLE, &["1", "2 3"] as &[&str]),
            ("1  2,3", blanks, &["1", "2", "3"]),
            (" 1|2 |3", Table { separator: Some('|'), ..TABLE }, &["1", "2", "3"]),
            (" 1,2 ", Table { trim: false, ..TABLE }, &[" 1", "2 "]),
            ("1\x1f2 3", STANDARD, &["1", "2 3"]),
        ] {
            assert_eq!(fields(item, expected.len(), Some(table)), expected, "{item}");
        }
        assert_eq!(columns("x  y", blanks), ["x", "y"]);
    }
}
