//! Which names of a configuration text are read: by the text itself, and by what the operator acts on.

use std::collections::{BTreeMap, BTreeSet};

use condor_config::knobs::{self, Support};
use condor_config::{Config, Definition};

/// The names that a text itself reads: in references, arguments of templates and lists of attributes.
pub struct Readers {
    /// The names in references and arguments, in small letters.
    referred: BTreeSet<String>,
    /// The names in lists of attributes, latches and transforms, in small letters. Only such a name may have a value of its own for a
    /// slot or a type of slots.
    listed: BTreeSet<String>,
}

impl Readers {
    /// The names that this text reads, with the lists of `config`, which the text became.
    pub fn of(text: &str, config: &Config) -> Self {
        let mut referred = directives(text);
        for line in text.lines() {
            // `ALLOW_WRITE = $(ALLOW_WRITE), *.edu` appends, and nothing reads the result.
            let own = own_name(line);
            referred.extend(
                references(line).filter(|name| own.is_none_or(|own| !own.eq_ignore_ascii_case(name))),
            );
        }
        let lists = config.definitions().filter(|definition| is_list(&definition.name));
        let listed = lists.flat_map(|list| items(config, list)).collect();
        Self { referred, listed }
    }

    /// Whether the text reads a name, as it is or without its prefix for a daemon, a slot or a slot type.
    pub fn reads(&self, name: &str) -> bool {
        let [whole, bare, of_slot] = forms(name);
        let is_read = |name: &String| self.referred.contains(name) || self.listed.contains(name);
        [whole, bare].iter().flatten().any(is_read) || of_slot.is_some_and(|name| self.listed.contains(&name))
    }
}

/// The names whose values count: the knobs that the operator acts on in a text, and whatever those values refer to.
pub(super) struct Live {
    /// The names of the definitions, in small letters.
    names: BTreeSet<String>,
}

impl Live {
    /// The names that count of `config`, which the text became. `readers` are the parts of the operator that act on the text; none if
    /// any of them may.
    pub(super) fn of(text: &str, config: &Config, readers: Option<&[knobs::Reader]>) -> Self {
        let mut by_name: BTreeMap<String, Vec<&Definition>> = BTreeMap::new();
        let (mut live, mut names) = (BTreeSet::new(), BTreeSet::new());
        let mut reached: Vec<&Definition> = Vec::new();
        for definition in config.definitions() {
            let acts = is_acted_on(&definition.name, readers)
                || (is_list(&definition.name) && knobs::find(&definition.name).is_none());
            reached.extend(acts.then_some(definition));
            for name in forms(&definition.name).into_iter().flatten() {
                by_name.entry(name).or_default().push(definition);
            }
        }
        let mut wanted: Vec<String> = directives(text).into_iter().collect();
        // The operator reads this latch of slots even if no list names the latch.
        wanted.push("cpubusy".to_owned());
        loop {
            for definition in reached.drain(..) {
                if live.insert(definition.name.to_ascii_lowercase()) {
                    wanted.extend(definition.raw().lines().flat_map(references));
                    if is_list(&definition.name) {
                        wanted.extend(items(config, definition));
                    }
                }
            }
            let Some(name) = wanted.pop() else { break };
            // A definition is found by its forms once: each name is looked up once.
            if names.insert(name.clone()) {
                reached.extend(by_name.remove(&name).into_iter().flatten());
            }
        }
        Self { names: live }
    }

    /// Whether the value of a name that the text defines counts.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.names.contains(&name.to_ascii_lowercase())
    }

    /// Whether the line of a text around this byte offset counts: the line is no definition, or the definition's value counts.
    pub(super) fn holds_at(&self, text: &str, offset: usize) -> bool {
        let before = text.get(..offset).unwrap_or_default();
        // A definition goes on behind a line that ends with a backslash.
        let mut start = before.rfind('\n').map_or(0, |at| at + 1);
        while let Some(above) = text.get(..start).and_then(|text| text.strip_suffix('\n'))
            && above.trim_end().ends_with('\\')
        {
            start = above.rfind('\n').map_or(0, |at| at + 1);
        }
        let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let is_name =
            |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
        own_name(line).filter(is_name).is_none_or(|name| self.holds(name))
    }
}

/// Whether the operator acts on a knob in a text that these readers take; none if any reader may.
fn is_acted_on(name: &str, readers: Option<&[knobs::Reader]>) -> bool {
    let takes = |reader: &knobs::Reader| {
        *reader == knobs::Reader::Macros || readers.is_none_or(|readers| readers.contains(reader))
    };
    knobs::find(name).is_some_and(|knob| knob.support == Support::Honored && knob.readers.iter().any(takes))
}

/// The forms under which a name may be read, in small letters: as it is, without its prefix for a daemon, and without that for a slot
/// or a type of slots.
fn forms(name: &str) -> [Option<String>; 3] {
    let folded = name.to_ascii_lowercase();
    let bare = folded.rsplit_once('.').map(|(_, bare)| bare.to_owned());
    let number = |rest: &str| {
        let (digits, name) = rest.split_once('_')?;
        digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| name.to_owned())
    };
    let last = bare.as_deref().unwrap_or(&folded);
    let of_slot = last.strip_prefix("slot_type_").or_else(|| last.strip_prefix("slot")).and_then(number);
    [Some(folded), bare, of_slot]
}

/// Whether a definition lists names that are read.
fn is_list(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_ATTRS", "_EXPRS", "_NAMES"].iter().any(|end| name.ends_with(end))
}

fn items(config: &Config, list: &Definition) -> Vec<String> {
    words(&config.value_of(list).unwrap_or_default()).collect()
}

/// The name that a line defines; none if the line has no `=`.
fn own_name(line: &str) -> Option<&str> {
    line.split_once('=').map(|(name, _)| name.trim().trim_start_matches(['@', ':']))
}

/// The names in `$(...)` and functions of a line.
fn references(line: &str) -> impl Iterator<Item = String> + '_ {
    let inside = line.split('$').skip(1).filter_map(|part| part.split_once('('));
    inside.flat_map(|(_, inside)| words(inside.split(')').next().unwrap_or_default()))
}

/// The names that statements read which are no definitions: `use`, `if`, `elif`.
fn directives(text: &str) -> BTreeSet<String> {
    let is_statement = |line: &&str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        ["use", "if", "elif"].iter().any(|keyword| keyword.eq_ignore_ascii_case(first))
    };
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['@', ':']));
    lines.filter(is_statement).flat_map(words).collect()
}

/// The words of a text that may be names, in small letters.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
}
