//! Turns the file of a scenario into the scenario, or says everything that is wrong with it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::amount::{Amount, Drawn};
use super::file::{self, File};
use super::manifests;
use crate::lint::{Kind, Node, Source, find, nearest, parse};
use crate::problems::Problems;
use model::pool::Time;
use sim::{MachineGroup, Scenario, Spread, Timing};

/// The default start of a scenario: a Monday.
const START: &str = "2026-01-05T00:00:00Z";
/// The most machines, and the most people, of a scenario: each gets a name.
pub(super) const MOST: u64 = 1_000_000;

/// Reads a scenario, and notes for the user: warnings about its manifests, and how much of a trace is not used.
///
/// # Errors
/// Everything that is wrong with the scenario, each with file, line and column.
pub fn scenario(path: &Path) -> Result<(Scenario, Vec<String>), Problems> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Problems::one(format!("{shown}: cannot be read: {error}")))?;
    let source = Source::new(shown, text);
    let mut problems = Problems::default();
    let parsed = parse(&source.text);
    for fault in &parsed.faults {
        problems.at(&source, fault.at, &fault.message);
    }
    let root = match parsed.documents.as_slice() {
        [root] if problems.is_empty() => root,
        _ if !problems.is_empty() => return Err(problems),
        documents => {
            let message = format!("there are {} documents; a scenario is one", documents.len());
            problems.at(&source, 0, &message);
            return Err(problems);
        }
    };
    let file: File = match serde_saphyr::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            let error = error.without_snippet();
            let offset = error.location().map_or(root.start, |at| {
                let number = |n| usize::try_from(n).unwrap_or(1);
                source.offset(number(at.line()), number(at.column()))
            });
            let field = path_to(root, offset);
            problems.at(&source, offset, &format!("{field}{}", plain(&error.to_string())));
            return Err(problems);
        }
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut reader = Reader { source: &source, root, directory, problems, people: 0, notes: Vec::new() };
    let scenario = reader.scenario(file, stem);
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let warnings = reader.problems.take_warnings();
    let warnings = warnings.into_iter().map(|warning| format!("warning: {warning}"));
    Ok((scenario, warnings.chain(reader.notes).collect()))
}

/// The path of the innermost field at a place, followed by a colon; empty for the file itself. A place in a key is in the map around
/// the key: the parser points there if the map has no such field.
fn path_to(root: &Node, offset: usize) -> String {
    let (mut path, mut node) = (String::new(), root);
    loop {
        let inner = match &node.kind {
            Kind::Scalar(_) => None,
            Kind::List(items) => {
                let last = items.iter().enumerate().take_while(|(_, item)| item.start <= offset).last();
                last.map(|(index, item)| (format!("[{index}]"), item))
            }
            Kind::Map(entries) => {
                // The end of a value is where the next key starts, which is outside the value.
                let before = entries.iter().filter(|entry| entry.start <= offset);
                let inside =
                    before.max_by_key(|entry| entry.start).filter(|entry| entry.value.start <= offset);
                inside.map(|entry| (format!(".{}", entry.key), &entry.value))
            }
        };
        let Some((step, next)) = inner else { break };
        path.push_str(&step);
        node = next;
    }
    if path.is_empty() { path } else { format!("{}: ", path.trim_start_matches('.')) }
}

/// The parser's message without its place, which the caller puts in front, and with the name that was likely meant.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let message = first.split(" at line ").next().unwrap_or(first).trim_end_matches([',', ' ']);
    match message.strip_prefix("invalid ") {
        // All numbers of this type count machines or people.
        Some("u32") => format!("expected a whole number from 0 to {MOST}"),
        Some("u64") => format!("expected a whole number from 0 to {}", u64::MAX),
        Some("i32" | "i64") => "expected a whole number".to_owned(),
        Some("f64") => "expected a number".to_owned(),
        _ => likely(message)
            .map_or_else(|| message.to_owned(), |meant| format!("{message}; did you mean {meant}?")),
    }
}

/// The name that was likely meant, if a message is about a name that is unknown.
fn likely(message: &str) -> Option<&str> {
    let (unknown, known) = message.split_once(", expected ")?;
    let name = unknown.strip_prefix("unknown field ").or_else(|| unknown.strip_prefix("unknown variant "))?;
    let known =
        known.strip_prefix("one of ").unwrap_or(known).split(", ").flat_map(|names| names.split(" or "));
    nearest(name.trim_matches('`'), known.map(|name| name.trim_matches('`')))
}

pub(super) struct Reader<'a> {
    pub(super) source: &'a Source,
    pub(super) root: &'a Node,
    /// The directory of the files that the scenario names.
    pub(super) directory: &'a Path,
    pub(super) problems: Problems,
    /// How many people the submitters read so far have together.
    pub(super) people: u64,
    /// Notes for the user about a scenario that can be used.
    pub(super) notes: Vec<String>,
}

impl Reader<'_> {
    /// Adds a problem of the field of this path.
    pub(super) fn wrong(&mut self, path: &str, message: &str) {
        let place = find(self.root, path);
        let offset = if place.found { place.node.start } else { place.key };
        self.problems.at(self.source, offset, &format!("{path}: {message}"));
    }

    fn scenario(&mut self, file: File, stem: String) -> Scenario {
        let start = file.start.as_deref().unwrap_or(START);
        let start = start.parse::<Timestamp>().map_or_else(
            |error| {
                self.wrong("start", &format!("{error}; write it as {START}"));
                Time::default()
            },
            |time| Time::from_millis(time.as_millisecond()),
        );
        let objects = manifests::objects(self.source, self.root, self.directory, &mut self.problems);
        let timing = self.timing(&file.timing);
        let machines: Vec<MachineGroup> =
            file.machines.iter().enumerate().map(|(index, group)| self.machines(index, group)).collect();
        if machines.is_empty() {
            self.wrong("machines", "there are none; give at least one group");
        }
        let given: Vec<&str> = machines.iter().map(|group| group.name.as_str()).collect();
        let most = usize::try_from(MOST).unwrap_or(usize::MAX);
        self.unique("machines", &given, machine_names(&machines).take(most));
        let (mut sources, mut whose) = (Vec::new(), Vec::new());
        for (index, submitter) in file.submitters.iter().enumerate() {
            let before = self.problems.count();
            let jobs = self.submitters(index, submitter);
            if self.problems.count() == before {
                self.groups(index, submitter, &jobs, &objects);
            }
            whose.extend(jobs.iter().map(|_| index));
            sources.extend(jobs);
        }
        let given: Vec<&str> = file.submitters.iter().map(|submitter| submitter.name.as_str()).collect();
        let made = whose.into_iter().zip(sources.iter().map(|source| Cow::from(source.name.as_str())));
        self.unique("submitters", &given, made);
        let machine_count: u64 = machines.iter().map(|group| u64::from(group.count)).sum();
        if machine_count > MOST {
            self.wrong("machines", &format!("{machine_count} are too many; give at most {MOST}"));
        }
        Scenario {
            name: file.name.unwrap_or(stem),
            start,
            length: self.span("length", file.length, 7.0 * 86_400.0, 1.0),
            sample: self.span("sample", file.sample, 600.0, 1.0),
            seed: file.seed,
            timing,
            objects,
            machines,
            sources,
        }
    }

    /// Adds a problem for each name that is used twice. `given` are the names in the file, `made` the names made of
    /// them, each with the index of the given name.
    fn unique<'n>(&mut self, list: &str, given: &[&str], made: impl Iterator<Item = (usize, Cow<'n, str>)>) {
        let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
        for (index, name) in given.iter().enumerate() {
            if !seen.insert(name) {
                told.insert(index);
                let message = format!("{name} is there already; use another");
                self.wrong(&format!("{list}[{index}].name"), &message);
            }
        }
        let mut makers: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for (index, name) in made {
            let first = *makers.entry(name.clone()).or_insert(index);
            // If two given names make the same name once, they usually do so many times. One problem for each given
            // name is enough.
            if first != index && told.insert(index) {
                let message = format!("{name} is made of this name and of {list}[{first}].name; use another");
                self.wrong(&format!("{list}[{index}].name"), &message);
            }
        }
    }

    /// The span that is given, or `otherwise`, in seconds. A span below `least` or above 1e11 seconds is a problem.
    pub(super) fn span(
        &mut self,
        path: &str,
        given: Option<Amount<super::amount::Seconds>>,
        otherwise: f64,
        least: f64,
    ) -> Duration {
        let seconds = given.map_or(otherwise, |given| given.value);
        if !(least..=1e11).contains(&seconds) {
            self.wrong(path, &format!("{seconds} seconds cannot be; give at least {least}"));
        }
        sim::span(seconds)
    }

    fn timing(&mut self, timing: &file::Timing) -> Timing {
        Timing {
            call: self.span("timing.call", timing.call, 0.02, 0.0),
            status: self.span("timing.status", timing.status, 1.0, 0.0),
            pod_start: drawn(timing.pod_start.as_ref(), 2.0),
            pod_end: drawn(timing.pod_end.as_ref(), 1.0),
        }
    }
}

/// The names of all machines, each with the index of its group.
fn machine_names(groups: &[MachineGroup]) -> impl Iterator<Item = (usize, Cow<'static, str>)> + '_ {
    let names = |group: &MachineGroup| {
        let name = group.name.clone();
        (1..=group.count).map(move |number| Cow::from(format!("{name}{number}")))
    };
    groups.iter().enumerate().flat_map(move |(index, group)| names(group).map(move |name| (index, name)))
}

/// The distribution that is given, or always `otherwise`.
pub(super) fn drawn<U>(given: Option<&Drawn<U>>, otherwise: f64) -> Spread {
    given.map_or_else(|| Spread::always(otherwise), |given| given.spread.clone())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_message_of_the_parser_names_no_type_of_rust() {
        assert_eq!(plain("invalid u32 at line 3, column 29"), "expected a whole number from 0 to 1000000");
        for (message, meant) in [
            ("unknown field `cpu`, expected `cpus` or `memory`", "; did you mean cpus?"),
            ("unknown field `submiters`, expected one of machines, submitters", "; did you mean submitters?"),
            ("unknown variant `posson`, expected one of `at`, `poisson`", "; did you mean poisson?"),
            ("unknown field `colour`, expected one of `cpus`", ""),
        ] {
            assert_eq!(plain(message), format!("{message}{meant}"));
        }
    }
}
