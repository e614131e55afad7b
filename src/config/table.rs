//! The definitions of a configuration, and the order in which a name is looked up.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::allowance::Allowance;
use super::host::Host;
use super::knobs;
use super::scan::{self, Wanted};
use super::source::Position;
use super::text::{Place, Text};

/// How many bytes of a value are searched for references.
const MOST_SCANNED: u64 = 1_000_000;

/// A configuration as one daemon sees it.
///
/// Values are expanded when they are asked for, so a name may be defined after the names that refer to it.
/// [`Reader::read`](super::Reader::read) makes a configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub(super) definitions: BTreeMap<String, Definition>,
    pub(super) sources: Vec<Arc<str>>,
    pub(super) subsystem: String,
    pub(super) local_name: Option<String>,
    pub(super) host: Host,
    pub(super) allowance: Allowance,
}

/// A name, and its value at the end of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name as it was written, with its prefix if it has one.
    pub name: String,
    /// Who defined the name.
    pub origin: Origin,
    pub(super) text: Text,
    pub(super) place: Place,
}

impl Definition {
    /// The value as it was written, except that references to the name itself are replaced. It may be empty.
    pub fn raw(&self) -> Cow<'_, str> {
        self.text.as_str()
    }
}

/// Who defined a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A source that was read, or a file that it included.
    Source,
    /// A template that a source used: its category and its name.
    Template(&'static str, &'static str),
    /// The host or the reader, before any text was read.
    Predefined,
}

/// The value that a look-up found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'a> {
    Defined(&'a Definition),
    Default(&'static str),
}

impl<'a> Found<'a> {
    /// The unexpanded text.
    pub(super) fn raw(self) -> Cow<'a, str> {
        match self {
            Self::Defined(definition) => definition.text.as_str(),
            Self::Default(text) => text.into(),
        }
    }
}

impl Config {
    pub(super) fn empty(subsystem: &str, local_name: Option<&str>, host: Host) -> Self {
        Self {
            definitions: BTreeMap::new(),
            sources: vec!["<Default>".into(), "<Detected>".into()],
            subsystem: subsystem.to_owned(),
            local_name: local_name.map(str::to_owned),
            host,
            allowance: Allowance::default(),
        }
    }

    /// Every definition, sorted by name without case. The host's predefined macros are among them; compiled-in defaults are not.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.values()
    }

    /// Every name that is defined or has a compiled-in default, sorted without case.
    pub fn names(&self) -> Vec<&str> {
        let compiled_in = knobs::defaults().map(|(name, _)| (name.to_ascii_lowercase(), name));
        let mut names: BTreeMap<String, &str> = compiled_in.collect();
        let defined = self.definitions.iter();
        names.extend(defined.map(|(lower, definition)| (lower.clone(), definition.name.as_str())));
        names.into_values().collect()
    }

    /// The definition of exactly this name, case aside: a prefix is part of the name. Its value may be empty.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.get(&name.to_ascii_lowercase())
    }

    /// The definitions of other names whose values, as they are written, refer to this name by `$(NAME)`.
    pub fn referring<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Definition> {
        self.definitions().filter(move |definition| {
            let (raw, mut work) = (definition.raw(), MOST_SCANNED);
            let mut refers = || scan::find(raw.as_bytes(), 0, Wanted::Own(name, None), &mut work).is_some();
            !definition.name.eq_ignore_ascii_case(name) && refers()
        })
    }

    /// Whether a guarded reading ([`Reader::guarded`](super::Reader::guarded)) has used up its work. From then on, no
    /// value is returned.
    pub fn is_spent(&self) -> bool {
        self.allowance.left() == 0
    }

    /// The place where a definition starts.
    pub fn position(&self, definition: &Definition) -> Position {
        self.position_of(definition.place)
    }

    /// The unexpanded value of a name as `$(NAME)` finds it: with the local name before it, with the subsystem before
    /// it, without prefix, or the compiled-in default. `None`: the name is not defined. A defined value may be empty.
    pub fn raw(&self, name: &str) -> Option<Cow<'_, str>> {
        self.lookup(name).map(Found::raw)
    }

    /// The subsystem that the configuration was read for, such as `STARTD`.
    pub fn subsystem(&self) -> &str {
        &self.subsystem
    }

    pub(super) fn position_of(&self, place: Place) -> Position {
        let file = self.sources.get(place.source as usize).cloned().unwrap_or_else(|| "".into());
        Position { file, line: place.line, column: place.column }
    }

    fn with_prefix(&self, prefix: &str, name: &str) -> Option<Found<'_>> {
        self.definition(&format!("{prefix}.{name}")).map(Found::Defined)
    }

    /// Looks a name up as `$(NAME)` does. An empty definition counts.
    pub(super) fn lookup(&self, name: &str) -> Option<Found<'_>> {
        let own_default = || {
            // The subsystem's own default stands above definitions without a prefix, but only if it differs from the
            // common default.
            let own = knobs::default_of(Some(&self.subsystem), name)?;
            (knobs::default_of(None, name) != Some(own)).then_some(Found::Default(own))
        };
        self.local_name
            .as_deref()
            .and_then(|local| self.with_prefix(local, name))
            .or_else(|| self.with_prefix(&self.subsystem, name))
            .or_else(own_default)
            .or_else(|| self.definition(name).map(Found::Defined))
            .or_else(|| knobs::default_of(None, name).map(Found::Default))
    }

    /// Looks a name up as condor_config_val looks up a knob: as [`Config::lookup`]; and if the name is found with a
    /// prefix, the name with this prefix is looked up once more. So `SUBSYSTEM.LOCAL.NAME` stands above `LOCAL.NAME`.
    pub(super) fn knob(&self, name: &str) -> Option<Found<'_>> {
        match self.lookup(name)? {
            Found::Defined(definition) if definition.name.len() > name.len() => self.lookup(&definition.name),
            found => Some(found),
        }
    }

    /// The name without the local name or the subsystem before it. `None`: the name has neither prefix.
    pub(super) fn without_prefix(&self, name: &str) -> Option<String> {
        let prefixes = self.local_name.iter().chain([&self.subsystem]);
        prefixes.into_iter().find_map(|prefix| {
            let (start, rest) = name.split_at_checked(prefix.len())?;
            let rest = rest.strip_prefix('.').filter(|rest| !rest.is_empty())?;
            start.eq_ignore_ascii_case(prefix).then(|| rest.to_owned())
        })
    }

    pub(super) fn define(&mut self, definition: Definition) {
        self.definitions.insert(definition.name.to_ascii_lowercase(), definition);
    }
}
