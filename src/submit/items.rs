//! The items of a queue statement: lines and words of the file, of other files, names of files.

use std::collections::BTreeSet;

use condor_config::{Diagnostic, FileError, Scope, Text};

use crate::columns::{self, Table};
use crate::glob;
use crate::queue::{self, Items, Kinds, List, Queue};
use crate::world::World;

/// The most bytes of all items together.
const MAX_BYTES: usize = 8 << 20;

/// The rows of a queue statement.
pub(crate) struct Rows {
    pub(crate) variables: Vec<String>,
    pub(crate) items: Vec<Item>,
    /// The file that has the lines of the items, as in ` of list.txt`. Empty: the submit file has them.
    file: String,
}

/// An item. `None`: a statement without items.
pub(crate) struct Item(Option<Line>);

/// An item's text, and the number of the line that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    number: usize,
}

impl Item {
    /// The number of the item's line, if nothing stands on it.
    fn gap(&self) -> Option<usize> {
        let line = self.0.as_ref()?;
        line.text.trim().is_empty().then_some(line.number)
    }

    /// Sets the variables of the row, and returns them with their values. As in HTCondor, an empty item has the values of the row before,
    /// or empty values.
    pub(crate) fn enter(
        &self,
        scope: &mut Scope<'_>,
        variables: &[String],
        table: Option<Table>,
        before: &[(String, String)],
        line: &Text,
    ) -> Result<Vec<(String, String)>, Diagnostic> {
        let Some(Line { text, .. }) = &self.0 else { return Ok(Vec::new()) };
        let fields = columns::fields(text, variables.len(), table);
        let mut values: Vec<(String, String)> = variables.iter().cloned().zip(fields).collect();
        if self.gap().is_some() && !before.is_empty() {
            values = before.to_vec();
        }
        for (variable, value) in &values {
            scope.forget_variable(variable);
            scope.define_as(variable, value, line).map_err(Diagnostic::from)?;
        }
        Ok(values)
    }
}

/// The most characters that are shown of an item's value.
const SHOWN: usize = 60;

/// Names the row in which an error was found: ` (row 2: f = b's)`. Empty if the first row may have been found in error as any other.
pub(crate) fn row(number: usize, items: &[(String, String)], message: &str) -> String {
    let is_shown = items.iter().any(|(_, value)| !value.is_empty() && message.contains(value.as_str()));
    if items.is_empty() || number == 0 && !is_shown {
        return String::new();
    }
    let shown = items.iter().map(|(name, value)| {
        let mut text: String = value.chars().take(SHOWN).collect();
        if text.len() < value.len() {
            text.push_str("...");
        }
        format!("{name} = {text}")
    });
    format!(" (row {}: {})", number.saturating_add(1), shown.collect::<Vec<_>>().join(", "))
}

/// The most lines of a list that a warning names.
const NAMED: usize = 10;

impl Rows {
    /// Warnings about the empty items among those that are taken.
    pub(crate) fn gaps(&self, taken: &[(usize, &Item)]) -> Vec<String> {
        let leading = taken.iter().take_while(|(_, item)| item.gap().is_some()).count();
        let (first, later) = taken.split_at(leading);
        let told = |items: &[(usize, &Item)], values: &str| {
            let numbers: Vec<usize> = items.iter().filter_map(|(_, item)| item.gap()).collect();
            let last = numbers.last()?;
            let shown: Vec<String> = numbers.iter().take(NAMED).map(ToString::to_string).collect();
            let more = numbers.len() - shown.len();
            let file = &self.file;
            let (lines, are, each, the_lines) = if numbers.len() == 1 {
                (format!("line {last}"), "is", "", "line")
            } else {
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                (format!("lines {}{more}", shown.join(", ")), "are", "each ", "lines")
            };
            Some(format!(
                "{lines}{file} {are} empty, and {each}makes a proc {values}, as in HTCondor: delete the {the_lines}"
            ))
        };
        let first = told(first, "with empty values");
        first.into_iter().chain(told(later, "with the values of the row before")).collect()
    }
}

/// The items of a queue statement. `list` are the lines behind the statement that belong to it.
pub(crate) fn items(
    scope: &mut Scope<'_>,
    world: &World<'_>,
    queue: &Queue,
    line: &Text,
    list: &[Text],
) -> Result<Rows, Diagnostic> {
    if matches!(queue.source, Items::None) {
        return Ok(Rows { variables: Vec::new(), items: vec![Item(None)], file: String::new() });
    }
    let found = found(scope, world, queue, line, list);
    let file = match &queue.source {
        Items::From(List::File(name)) if name == "-" => " of standard input".to_owned(),
        Items::From(List::File(name)) => format!(" of {name}"),
        _ => String::new(),
    };
    let error = |scope: &Scope<'_>, message: String| scope.error(line, 0, format!("queue: {message}"));
    let mut rows = found.map_err(|message| error(scope, message))?;
    if rows.iter().map(|row| row.text.len()).sum::<usize>() > MAX_BYTES {
        return Err(error(
            scope,
            format!("the items have more than {MAX_BYTES} bytes: use fewer or shorter ones"),
        ));
    }
    let mut variables = queue.variables.clone();
    if let Some(table) = queue.table {
        variables = header(&mut rows, table, variables).map_err(|message| error(scope, message))?;
    }
    if let Some(wrong) = variables.iter().find(|name| !is_name(name)) {
        return Err(error(scope, format!("'{wrong}' is no name of a variable")));
    }
    let items = rows.into_iter().map(|row| Item(Some(row))).collect();
    Ok(Rows { variables, items, file })
}

/// The lines of the items that a queue statement names. `list_lines` are the lines behind the statement that belong to it.
fn found(
    scope: &mut Scope<'_>,
    world: &World<'_>,
    queue: &Queue,
    line: &Text,
    list_lines: &[Text],
) -> Result<Vec<Line>, String> {
    let of_statement = number(scope, line, 0);
    let lines = |scope: &Scope<'_>, list: &List| match list {
        List::Whole(text) => Ok(vec![Line { text: text.clone(), number: of_statement }]),
        List::Open(first) => inline(scope, first, list_lines, of_statement),
        List::File(name) => file(world, name),
    };
    let words = |scope: &Scope<'_>, list: &List| -> Result<Vec<String>, String> {
        let lines = lines(scope, list)?;
        Ok(lines.iter().flat_map(|line| queue::words(&line.text).collect::<Vec<_>>()).collect())
    };
    let named = |names: Vec<String>| -> Vec<Line> {
        names.into_iter().map(|text| Line { text, number: of_statement }).collect()
    };
    match &queue.source {
        Items::None => Ok(Vec::new()),
        Items::In(list) => words(scope, list).map(named),
        Items::From(list) => lines(scope, list),
        Items::Matching(kinds, list) => {
            words(scope, list).and_then(|patterns| matching(scope, world, *kinds, &patterns, line)).map(named)
        }
    }
}

/// The number of the line in which a text has its byte `at`.
fn number(scope: &Scope<'_>, text: &Text, at: usize) -> usize {
    usize::try_from(scope.config().position_at(text, at).line).unwrap_or_default()
}

/// The lines of a list in parentheses, which begins with `first` in the line `of_statement`.
fn inline(scope: &Scope<'_>, first: &str, list: &[Text], of_statement: usize) -> Result<Vec<Line>, String> {
    let first = Line { text: first.to_owned(), number: of_statement };
    let mut lines = Vec::from_iter(Some(first).filter(|first| !first.text.is_empty()));
    let Some((end, items)) = list.split_last() else { return Err(open()) };
    if !end.as_str().starts_with(')') {
        return Err(open());
    }
    let mut next = of_statement + 1;
    for item in items {
        let text = item.as_str().into_owned();
        // A text that is empty knows no place. Other texts may be several lines.
        let (first, end) = match text.len() {
            0 => (next, next),
            length => (number(scope, item, 0), number(scope, item, length - 1)),
        };
        next = end + 1;
        if !text.starts_with('#') {
            lines.push(Line { text, number: first });
        }
    }
    Ok(lines)
}

fn open() -> String {
    "the list of items is not closed: expected a line that starts with )".to_owned()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

/// The lines of a file, joined where a backslash continues a line. What the name `-` stands for is decided by the
/// caller, who reads the file.
fn file(world: &World<'_>, name: &str) -> Result<Vec<Line>, String> {
    if let Some(command) = name.trim_end().strip_suffix('|') {
        return Err(format!(
            "'{}' is a command, and none is run here: write what it prints into a file",
            command.trim()
        ));
    }
    let files = world.files.ok_or(FileError::Refused(""));
    let text =
        files.and_then(|files| files(name)).map_err(|error| format!("the items in '{name}': {error}"))?;
    let mut lines: Vec<Line> = Vec::new();
    let mut continues = false;
    // Editors of other systems begin a file with a byte order mark.
    for (number, line) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(&text).lines()) {
        let line = line.trim();
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| continues) {
            Some(last) => last.text.push_str(part),
            None => lines.push(Line { text: part.to_owned(), number }),
        }
        continues = more;
    }
    for line in &mut lines {
        line.text = line.text.trim().to_owned();
    }
    Ok(lines)
}

/// Takes the line out that names the variables of a table, and the lines that are to be left out.
fn header(rows: &mut Vec<Line>, table: Table, named: Vec<String>) -> Result<Vec<String>, String> {
    let Some(row) = table.header else { return Ok(named) };
    if row >= rows.len() {
        return Err(format!("the table has no line {row} with the names of the columns"));
    }
    let columns = columns::columns(&rows.remove(row).text, table);
    let skipped = if row > 0 { row - 1 + table.skip } else { 0 };
    rows.drain(..skipped.min(rows.len()));
    match columns.iter().find(|name| !is_name(name)) {
        Some(wrong) => Err(format!("'{wrong}' is no name of a column: use letters, digits, _ and .")),
        None => Ok(columns),
    }
}

/// Whether a boolean option of queue statements is set, under one of its names.
pub(crate) fn option(scope: &mut Scope<'_>, name: &str, other: &str, default: bool) -> bool {
    let text = scope.variable(name).or_else(|| scope.variable(other));
    let expanded = text.and_then(|text| scope.expand(&text).ok());
    expanded.and_then(|text| scope.boolean(&text.as_str())).unwrap_or(default)
}

/// The names of the files that patterns match: those of the first pattern first.
fn matching(
    scope: &mut Scope<'_>,
    world: &World<'_>,
    kinds: Kinds,
    patterns: &[String],
    line: &Text,
) -> Result<Vec<String>, String> {
    let mut option = |name: &str, other: &str, default: bool| option(scope, name, other, default);
    let warns_empty = option("SubmitWarnEmptyMatches", "submit_warn_empty_matches", true);
    let fails_empty = option("SubmitFailEmptyMatches", "submit_fail_empty_matches", false);
    let warns_twice = option("SubmitWarnDuplicateMatches", "submit_warn_duplicate_matches", true);
    let allows_twice = option("SubmitAllowDuplicateMatches", "submit_allow_duplicate_matches", false);
    let directories =
        scope.variable("SubmitMatchDirectories").or_else(|| scope.variable("submit_match_directories"));
    let kinds = match directories.map(|text| text.as_str().to_ascii_lowercase()).as_deref() {
        Some("never" | "no" | "false") if kinds == Kinds::Any => Kinds::Files,
        Some("only") if kinds == Kinds::Any => Kinds::Directories,
        _ => kinds,
    };
    let listing = world.listing.ok_or_else(|| "files are not looked for here: name the items".to_owned())?;
    let (mut names, mut known) = (Vec::new(), BTreeSet::new());
    for pattern in patterns {
        let found =
            glob::matches(pattern, listing).map_err(|error| format!("matching '{pattern}': {error}"))?;
        let wanted = |name: &String| match kinds {
            Kinds::Any => true,
            Kinds::Files => !name.ends_with('/'),
            Kinds::Directories => name.ends_with('/'),
        };
        let found: Vec<String> = found.into_iter().filter(wanted).collect();
        if found.is_empty() && fails_empty {
            return Err(format!("no file matches '{pattern}'"));
        }
        if found.is_empty() && warns_empty {
            scope.warn(line, 0, format!("queue: no file matches '{pattern}'"));
        }
        for name in found {
            if !known.insert(name.clone()) && !allows_twice {
                if warns_twice {
                    scope.warn(line, 0, format!("queue: '{name}' matches '{pattern}', too, and is left out"));
                }
                continue;
            }
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_if_its_items_may_be_the_cause() {
        let items = [("f".to_owned(), "b's".to_owned()), ("n".to_owned(), "9".repeat(70))];
        let named = format!(" (row 1: f = b's, n = {}...)", "9".repeat(60));
        assert_eq!(row(0, &items, "'b's' has a quote"), named);
        assert_eq!(row(0, &items, "there is no executable"), "");
        assert_eq!(row(1, &items[..1], "there is no executable"), " (row 2: f = b's)");
        assert_eq!(row(1, &[], "there is no executable"), "");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_item() {
        for (text, expected) in [
            ("\u{feff}a\nb\n", ["a", "b"]),
            ("a\n\u{feff}b\n", ["a", "\u{feff}b"]),
            ("\u{feff}a \\\n 1\nb\n", ["a 1", "b"]),
        ] {
            let files = |_: &str| Ok(text.to_owned());
            let world = World { files: Some(&files), ..World::none() };
            let found = file(&world, "items").map(|lines| lines.into_iter().map(|line| line.text).collect());
            assert_eq!(found, Ok(expected.map(str::to_owned).to_vec()), "{text:?}");
        }
    }
}
