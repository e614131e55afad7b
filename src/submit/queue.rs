//! The arguments of `queue`: a count, variables, and where their items come from.

use condor_config::iteration_keyword;

use crate::columns::{Table, table_options};

/// The content of a queue statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How many procs for each item: at least 1.
    pub(crate) count: usize,
    pub(crate) variables: Vec<String>,
    pub(crate) source: Items,
    pub(crate) slice: Slice,
    pub(crate) table: Option<Table>,
    /// Options of the table that are none.
    pub(crate) ignored: Vec<String>,
}

/// How numbers and booleans of a queue statement are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'r> {
    pub(crate) integer: &'r dyn Fn(&str) -> Option<i64>,
    pub(crate) boolean: &'r dyn Fn(&str) -> Option<bool>,
}

/// Where the items come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// There are none: one row.
    None,
    /// `in`: the words of the list.
    In(List),
    /// `from`: the lines of the list, or of a file.
    From(List),
    /// `matching`: the files that the patterns of the list match.
    Matching(Kinds, List),
}

/// A list of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// The whole list, as written.
    Whole(String),
    /// A list that goes on in the lines that follow; this is what stands behind the parenthesis.
    Open(String),
    /// A file's name.
    File(String),
}

/// The kind of paths that `matching` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    Any,
    Files,
    Directories,
}

/// `[start:end:step]` behind the keyword.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
}

impl Slice {
    /// Whether the slice has the item of this index, of so many items.
    pub(crate) fn has(self, index: usize, count: usize) -> bool {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (index, count) = (number(index), number(count));
        let from_end = |bound: i64| if bound < 0 { bound.saturating_add(count) } else { bound };
        let start = self.start.map_or(0, from_end);
        let end = self.end.map_or(count, from_end);
        let in_step = match self.step {
            None | Some(0) => true,
            Some(step) => (index - start) % step == 0,
        };
        index >= start && index < end && in_step
    }

    /// Reads a slice in brackets. `None`: the text is something else. Returns also what follows the slice.
    fn read(text: &str) -> Option<(Self, &str)> {
        let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
        let mut bounds = [None; 3];
        let parts: Vec<&str> = inner.split(':').collect();
        if parts.len() > bounds.len() {
            return None;
        }
        for (bound, part) in bounds.iter_mut().zip(parts) {
            if !part.is_empty() {
                *bound = Some(part.trim_start().parse::<i32>().ok()?.into());
            }
        }
        let [start, end, step] = bounds;
        Some((Self { start, end, step }, rest))
    }
}

/// The arguments of a line that is a queue statement. `None`: the line is something else.
pub(crate) fn arguments(line: &str) -> Option<usize> {
    let end = line.find(|c: char| c.is_ascii_whitespace()).unwrap_or(line.len());
    let word = line.get(..end)?;
    let iterate = word.len() >= 4 && "iterate".starts_with(&word.to_ascii_lowercase());
    if !word.eq_ignore_ascii_case("queue") && !iterate {
        return None;
    }
    let rest = line.get(end..)?;
    Some(end + rest.len() - rest.trim_start().len())
}

/// Reads the arguments of a queue statement. The error says what is wrong.
pub(crate) fn read(text: &str, reading: &Reading<'_>) -> Result<Queue, String> {
    let text = text.trim();
    let Some((at, keyword, rest)) = iteration_keyword(text) else {
        return Ok(Queue {
            count: count(text, reading.integer)?,
            variables: Vec::new(),
            source: Items::None,
            slice: Slice::default(),
            table: None,
            ignored: Vec::new(),
        });
    };
    let (mut kinds, mut slice, mut table, mut ignored) = (Kinds::Any, Slice::default(), None, Vec::new());
    let mut rest = rest.trim_start();
    while !rest.starts_with('(') {
        if rest.starts_with('[') {
            let message = "the slice is wrong: expected [start:end] or [start:end:step] with whole numbers";
            let (read, behind) = Slice::read(rest).ok_or(message)?;
            (slice, rest) = (read, behind.trim_start());
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '(').unwrap_or(rest.len());
        let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if behind.is_empty() {
            break;
        }
        let known =
            ["files", "dirs", "any", "table"].into_iter().find(|known| word.eq_ignore_ascii_case(known));
        match (keyword, known) {
            (_, None) => break,
            ("matching", Some("files")) => kinds = Kinds::Files,
            ("matching", Some("dirs")) => kinds = Kinds::Directories,
            ("matching", Some("any")) => kinds = Kinds::Any,
            ("from", Some("table")) => {
                let (read, behind, none) = table_options(behind, reading)?;
                (table, rest, ignored) = (Some(read), behind.trim_start(), none);
                continue;
            }
            (_, Some(word)) => return Err(format!("{word} cannot follow {keyword}")),
        }
        rest = behind.trim_start();
    }
    let list = list(rest, keyword == "from");
    let (number, variables) = variables(text.get(..at).unwrap_or_default());
    let source = match keyword {
        "in" => Items::In(list),
        "from" => Items::From(list),
        _ => Items::Matching(kinds, list),
    };
    let variables = if variables.is_empty() { vec!["Item".to_owned()] } else { variables };
    Ok(Queue { count: count(number, reading.integer)?, variables, source, slice, table, ignored })
}

/// Whether the list of a queue statement goes on in the lines that follow. The count is not evaluated: the answer
/// does not depend on it.
pub(crate) fn is_open(text: &str) -> bool {
    let open = |list: &List| matches!(list, List::Open(_));
    read(text, &Reading { integer: &|_| Some(1), boolean: &|_| None }).is_ok_and(|queue| match queue.source {
        Items::None => false,
        Items::In(list) | Items::From(list) | Items::Matching(_, list) => open(&list),
    })
}

fn list(text: &str, from: bool) -> List {
    match text.strip_prefix('(') {
        Some(open) => match open.strip_suffix(')') {
            Some(whole) => List::Whole(whole.trim_start().to_owned()),
            None => List::Open(open.trim_start().to_owned()),
        },
        None if from => List::File(text.trim().to_owned()),
        None => List::Whole(text.to_owned()),
    }
}

/// Splits what stands before the keyword into the count and the names of variables.
fn variables(before: &str) -> (&str, Vec<String>) {
    let before = before.trim_end();
    let bytes = before.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let mut start = bytes.len();
    let mut at = bytes.len();
    while at > 0 {
        let mut last = byte(at - 1);
        if last.is_ascii_digit() {
            let digits =
                bytes.get(..at).unwrap_or_default().iter().rev().take_while(|b| b.is_ascii_digit()).count();
            if digits == at || !byte(at - digits - 1).is_ascii_alphabetic() {
                break;
            }
            at -= digits;
            last = byte(at - 1);
        }
        if last.is_ascii_whitespace() || last.is_ascii_alphabetic() || matches!(last, b',' | b'_' | b'.') {
            at -= 1;
            start = at;
        } else {
            break;
        }
    }
    let names = before.get(start..).unwrap_or_default().split(|c: char| c == ',' || c.is_ascii_whitespace());
    let names = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (before.get(..start).unwrap_or_default().trim(), names)
}

fn count(text: &str, integer: &dyn Fn(&str) -> Option<i64>) -> Result<usize, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(1);
    }
    let number = integer(text).ok_or_else(|| {
        format!("'{text}' is no count: expected queue [COUNT] [VARIABLES in|from|matching ITEMS]")
    })?;
    // condor_submit takes 0 for 1.
    match usize::try_from(number) {
        Ok(number) if number < i32::MAX as usize => Ok(number.max(1)),
        _ => Err(format!("{number} is no number of procs")),
    }
}

/// The items of a list whose items are words.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading<'static> {
        Reading { integer: &|text| text.parse().ok(), boolean: &|text| text.parse().ok() }
    }

    fn queue(text: &str) -> Queue {
        read(text, &reading()).unwrap_or_else(|message| panic!("{text}: {message}"))
    }

    #[test]
    fn lines_that_are_queue_statements() {
        for (line, expected) in [
            ("queue", Some(5)),
            ("Queue 5", Some(6)),
            ("iterate from x", Some(8)),
            ("iter 2", Some(5)),
            ("queue5", None),
            ("queue = 5", Some(6)),
            ("ite 5", None),
            ("arguments = queue", None),
        ] {
            assert_eq!(arguments(line), expected, "{line}");
        }
    }

    #[test]
    fn counts_variables_and_lists() {
        let whole = |text: &str| List::Whole(text.to_owned());
        for (text, count, names, source) in [
            ("", 1, &[] as &[&str], Items::None),
            ("0", 1, &[], Items::None),
            ("7", 7, &[], Items::None),
            ("in a b", 1, &["Item"], Items::In(whole("a b"))),
            ("2 x in (a, b)", 2, &["x"], Items::In(whole("a, b"))),
            ("x1,y2 from data.txt", 1, &["x1", "y2"], Items::From(List::File("data.txt".to_owned()))),
            ("3 a b from (", 3, &["a", "b"], Items::From(List::Open(String::new()))),
            ("x in(a b)", 1, &["x"], Items::In(whole("a b"))),
            ("f matching files *.dat", 1, &["f"], Items::Matching(Kinds::Files, whole("*.dat"))),
            ("f matching dirs (a* b*)", 1, &["f"], Items::Matching(Kinds::Directories, whole("a* b*"))),
            ("f matching *", 1, &["f"], Items::Matching(Kinds::Any, whole("*"))),
            ("FROM (1, 2)", 1, &["Item"], Items::From(whole("1, 2"))),
        ] {
            let queue = queue(text);
            assert_eq!((queue.count, queue.source), (count, source), "{text}");
            assert_eq!(queue.variables, names, "{text}");
        }
    }

    #[test]
    fn slices_choose_items() {
        for (slice, chosen) in [
            ("[:]", &[0_usize, 1, 2, 3, 4] as &[usize]),
            ("[1:3]", &[1, 2]),
            ("[:2]", &[0, 1]),
            ("[-2:]", &[3, 4]),
            ("[::2]", &[0, 2, 4]),
            ("[1::3]", &[1, 4]),
            ("[3:1]", &[]),
            ("[4]", &[4]),
        ] {
            let queue = queue(&format!("x in {slice} (a b c d e)"));
            let found: Vec<usize> = (0..5).filter(|index| queue.slice.has(*index, 5)).collect();
            assert_eq!(found, chosen, "{slice}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("x", "'x' is no count"),
            ("-1", "no number of procs"),
            ("x in [a] (b)", "the slice is wrong"),
            ("x in files (b)", "files cannot follow in"),
            ("x from table(skip=1 (", "the options of table are not closed"),
        ] {
            let message = read(text, &reading()).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
