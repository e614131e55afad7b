//! Texts that differ between the procs of an HTCJob, written with references to the items that make them.

use serde_json::{Map, Value, json};

use super::CLUSTER;
use crate::each::is_number;
use crate::job::Program;

/// The texts of a pod template, and the items that their references stand for.
pub(super) struct Texts {
    /// `None`: no text has a reference.
    pub(super) items: Option<Value>,
    pub(super) command: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// The other texts, in their order.
    pub(super) others: Vec<String>,
}

/// The columns of the items: a name, and a value for each proc.
#[derive(Default)]
struct Columns(Vec<(String, Vec<String>)>);

/// The values to which the texts of procs may refer.
struct References<'r> {
    programs: &'r [&'r Program],
    /// How many consecutive procs have the same items.
    repeat: usize,
    columns: Columns,
    /// Whether a text has a reference.
    used: bool,
    /// Whether a text has the number of a row or of a step, which follow from `repeat`.
    counts_rows: bool,
}

/// The texts of a template for these programs, which have equally many arguments and the same names of variables, and for other
/// texts, each with the name of a column and a text for each program.
pub(super) fn texts(programs: &[&Program], others: &[(String, Vec<String>)]) -> Texts {
    let repeat = repeat(programs);
    let (texts, repeats) = texts_repeating(programs, others, repeat);
    // If each proc needs a row of its own, a proc's row and step have other numbers than in the submit file.
    if repeats { texts } else { texts_repeating(programs, others, 1).0 }
}

/// Makes the texts as [`texts`] does, as if each `repeat` consecutive procs shared a row. Also returns whether they
/// do.
fn texts_repeating(programs: &[&Program], others: &[(String, Vec<String>)], repeat: usize) -> (Texts, bool) {
    let mut references =
        References { programs, repeat, columns: Columns::default(), used: false, counts_rows: false };
    let one = |program: &Program| program.executable.clone().unwrap_or_default();
    let first = programs.first();
    let command =
        first.and_then(|first| first.executable.as_ref()).map(|_| references.text("Executable", &one));
    let count = first.map_or(0, |first| first.arguments.len());
    let arguments = (0..count).map(|at| {
        let argument = |program: &Program| program.arguments.get(at).cloned().unwrap_or_default();
        references.text(&format!("Argument{}", at + 1), &argument)
    });
    let arguments = arguments.collect();
    let names: Vec<String> = first
        .map(|first| first.environment.iter().map(|(name, _)| name.clone()).collect())
        .unwrap_or_default();
    let environment = names.into_iter().enumerate().map(|(at, name)| {
        let value = |program: &Program| {
            program.environment.get(at).and_then(|(_, value)| value.clone()).unwrap_or_default()
        };
        let text = references.text(&format!("Env_{name}"), &value);
        (name, text)
    });
    let environment = environment.collect();
    let others = others.iter().map(|(column, texts)| references.of_procs(column, texts.clone())).collect();
    let texts = Texts { items: references.items(), command, arguments, environment, others };
    (texts, references.repeats())
}

/// How many consecutive procs have the same items, if this number is the same for all procs; else 1.
fn repeat(programs: &[&Program]) -> usize {
    let Some(first) = programs.first() else { return 1 };
    let run = programs.iter().take_while(|program| program.items == first.items).count();
    let even = programs.chunks(run.max(1)).all(|chunk| {
        chunk.len() == run
            && chunk.first().is_some_and(|head| chunk.iter().all(|program| program.items == head.items))
    });
    if even { run } else { 1 }
}

impl References<'_> {
    /// The text of all procs: with references where the procs differ, and for the number of the cluster.
    fn text(&mut self, column: &str, of: &dyn Fn(&Program) -> String) -> String {
        let texts = self.programs.iter().map(|program| of(program)).collect();
        self.of_procs(column, texts)
    }

    /// Merges a text of each proc into one text for all procs, with references as `text` makes them.
    fn of_procs(&mut self, column: &str, texts: Vec<String>) -> String {
        let number = CLUSTER.to_string();
        let parts = |text: &String| text.matches(&number).count() + 1;
        let count = texts.first().map_or(1, parts);
        if count == 1 || texts.iter().any(|text| parts(text) != count) {
            return self.part(column, texts);
        }
        self.used = true;
        let parts = (0..count).map(|at| {
            let part = |text: &String| text.split(&number).nth(at).unwrap_or_default().to_owned();
            self.part(column, texts.iter().map(part).collect())
        });
        parts.collect::<Vec<_>>().join("$(Cluster)")
    }

    /// A part of a text without the number of the cluster.
    fn part(&mut self, column: &str, texts: Vec<String>) -> String {
        let (Some(first), true) = (texts.first(), texts.len() > 1) else {
            return literal(texts.first().map(String::as_str).unwrap_or_default());
        };
        if texts.iter().all(|text| text == first) {
            return literal(first);
        }
        self.used = true;
        let (start, name, end) = self.known(&texts).unwrap_or_else(|| {
            let (before, behind) = common_around(&texts);
            let middle = |text: &String| text.get(before..text.len() - behind).unwrap_or_default().to_owned();
            let ends = (first.get(..before), first.get(first.len() - behind..));
            let name = self.column(column, texts.iter().map(middle).collect());
            (ends.0.unwrap_or_default().to_owned(), name, ends.1.unwrap_or_default().to_owned())
        });
        format!("{}$({name}){}", literal(&start), literal(&end))
    }

    /// Finds a number of the proc, or an item, in which alone the texts differ. Returns the text before it, its name,
    /// and the text behind it; `None` if there is no such number or item.
    fn known(&mut self, texts: &[String]) -> Option<(String, String, String)> {
        let repeat = self.repeat;
        let numbers: [(&str, &dyn Fn(usize) -> usize); 3] =
            [("Process", &|at| at), ("Row", &|at| at / repeat), ("Step", &|at| at % repeat)];
        for (name, number) in numbers {
            let values: Vec<String> = (0..texts.len()).map(|at| number(at).to_string()).collect();
            if let Some((start, end)) = around(texts, &values) {
                self.counts_rows |= name != "Process";
                return Some((start, name.to_owned(), end));
            }
        }
        let names: Vec<String> = self.programs.first()?.items.iter().map(|(name, _)| name.clone()).collect();
        for (index, name) in names.into_iter().enumerate() {
            let item = |program: &&Program| program.items.get(index).map(|(_, value)| value.clone());
            let values: Option<Vec<String>> = self.programs.iter().map(item).collect();
            // Kubernetes 1.20 refuses empty texts in rows.
            if let Some(values) = values.filter(|values| values.iter().all(|value| !value.is_empty()))
                && let Some((start, end)) = around(texts, &values)
            {
                return Some((start, self.column(&name, values), end));
            }
        }
        None
    }

    /// The name of a column with these values: a known one, or a new one.
    fn column(&mut self, wanted: &str, values: Vec<String>) -> String {
        if let Some((name, _)) = self.columns.0.iter().find(|(_, known)| *known == values) {
            return name.clone();
        }
        let clean: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        let mut name = clean.clone();
        let mut number = 1;
        while is_number(&name) || self.columns.0.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            number += 1;
            name = format!("{clean}_{number}");
        }
        self.columns.0.push((name.clone(), values));
        name
    }

    fn items(&self) -> Option<Value> {
        if !self.used {
            return None;
        }
        let mut items = Map::new();
        let has_rows = !self.columns.0.is_empty();
        if self.repeat > 1 && (has_rows || self.counts_rows) {
            items.insert("repeat".to_owned(), self.repeat.into());
        }
        if !has_rows {
            return Some(items.into());
        }
        let names: Vec<&str> = self.columns.0.iter().map(|(name, _)| name.as_str()).collect();
        let rows: Vec<Vec<&str>> =
            (0..self.programs.len()).step_by(self.repeat).map(|at| self.row(at)).collect();
        items.insert("variables".to_owned(), json!(names));
        items.insert("rows".to_owned(), json!(rows));
        Some(items.into())
    }

    fn row(&self, at: usize) -> Vec<&str> {
        let values = self.columns.0.iter().map(|(_, values)| values.get(at).map_or("", String::as_str));
        values.collect()
    }

    /// Whether procs of one row have the same values in all columns.
    fn repeats(&self) -> bool {
        (0..self.programs.len()).all(|at| self.row(at) == self.row(at - at % self.repeat))
    }
}

/// The text, written so that Kubernetes finds no reference in it. Kubernetes replaces `$(NAME)`, and `$$` by `$`: if
/// the text contains `$(` or `$$`, all of its dollars are doubled.
fn literal(text: &str) -> String {
    if text.contains("$(") || text.contains("$$") { text.replace('$', "$$") } else { text.to_owned() }
}

/// The text before and the text behind each value, if they are the same for all procs.
fn around(texts: &[String], values: &[String]) -> Option<(String, String)> {
    let (first, value) = (texts.first()?, values.first()?);
    let places = (0..=first.len().checked_sub(value.len())?).filter(|at| first.is_char_boundary(*at));
    let places = places.filter(|at| first.get(*at..).is_some_and(|rest| rest.starts_with(value.as_str())));
    for at in places.take(16) {
        let (start, end) = (first.get(..at)?, first.get(at + value.len()..)?);
        let fits = |text: &String, value: &String| {
            let middle = text.strip_prefix(start).and_then(|text| text.strip_suffix(end));
            middle == Some(value.as_str())
        };
        // A dollar before a reference would make it a literal.
        if !start.ends_with('$') && texts.iter().zip(values).all(|(text, value)| fits(text, value)) {
            return Some((start.to_owned(), end.to_owned()));
        }
    }
    None
}

/// How many bytes all texts have in common at the start and at the end, less a character where nothing would be left of one of the
/// texts between the two: Kubernetes 1.20 refuses empty texts in rows.
fn common_around(texts: &[String]) -> (usize, usize) {
    let (before, behind) = common(texts);
    let Some(first) = texts.first() else { return (before, behind) };
    if texts.iter().all(|text| text.len() > before + behind) {
        return (before, behind);
    }
    let (start, end) = (first.get(..before), first.get(first.len() - behind..));
    let last = start.and_then(|start| start.chars().next_back()).map_or(0, char::len_utf8);
    let next = end.and_then(|end| end.chars().next()).map_or(0, char::len_utf8);
    if last == 0 {
        return (before, behind - next);
    }
    // A dollar before a reference would make it a literal.
    let start = first.get(..before - last).unwrap_or_default();
    (start.trim_end_matches('$').len(), behind)
}

/// How many bytes all texts have in common at the start and, behind them, at the end.
fn common(texts: &[String]) -> (usize, usize) {
    let Some(first) = texts.first() else { return (0, 0) };
    let shortest = texts.iter().map(String::len).min().unwrap_or_default();
    let same = |one: &str, other: &str| {
        one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>()
    };
    let before = texts.iter().map(|text| same(first, text)).min().unwrap_or_default();
    // A dollar before a reference would make it a literal.
    let before = first.get(..before).map_or(0, |start| start.trim_end_matches('$').len());
    let back = |one: &str, other: &str| {
        one.chars()
            .rev()
            .zip(other.chars().rev())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum::<usize>()
    };
    let behind = texts.iter().map(|text| back(first, text)).min().unwrap_or_default();
    // The parts must not overlap in the shortest text.
    let behind = behind.min(shortest - before);
    let fits = |behind: usize| first.is_char_boundary(first.len() - behind);
    (before, (0..=behind).rev().find(|behind| fits(*behind)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::common_around;

    #[test]
    fn something_of_each_text_is_left_between_what_texts_have_in_common() {
        for (texts, expected) in [
            (["a-1.dat", "a-2.dat"], (2, 4)),
            (["a", "a b"], (0, 0)),
            (["x-1", "x-12"], (2, 0)),
            (["1.dat", "12.dat"], (0, 4)),
            (["b", "ab"], (0, 0)),
            (["\u{e9}", "\u{e9}b"], (0, 0)),
            // A dollar before a reference would make it a literal.
            (["$a", "$ab"], (0, 0)),
            // Nothing can be left of a text that is empty.
            (["", "b"], (0, 0)),
        ] {
            assert_eq!(common_around(&texts.map(str::to_owned)), expected, "{texts:?}");
        }
    }
}
