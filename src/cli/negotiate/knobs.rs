//! The knobs of a configuration that a cycle over files does not use.

use std::collections::BTreeMap;

use condor_config::knobs::{self, Class, Knob, Reader};
use condor_config::{Config as Text, Definition, Origin};
use model::negotiator::groups::GroupSpec;

use crate::named_groups::group_of;

/// Knobs of the negotiator that do not matter in a single cycle over files, which knows nothing of time.
const OF_MANY_CYCLES: &[&str] = &[
    "NEGOTIATOR_INTERVAL",
    "NEGOTIATOR_MIN_INTERVAL",
    "NEGOTIATOR_CYCLE_DELAY",
    "NEGOTIATOR_MAX_TIME_PER_CYCLE",
    "NEGOTIATOR_MAX_TIME_PER_SUBMITTER",
    "NEGOTIATOR_MAX_TIME_PER_PIESPIN",
    "PRIORITY_HALFLIFE",
];

/// Knobs that a cycle over files reads, although the operator's negotiator does not.
const READ_HERE: &[&str] = &["SLOT_WEIGHT", "ACCOUNTANT_LOCAL_DOMAIN", "REMOTE_PRIO_FACTOR"];

/// Lines about settings of the texts that a cycle over files does not use: a line for each knob of the negotiator, and one for
/// each file's knobs of other daemons. `groups` are the names in `GROUP_NAMES`.
pub(super) fn unused(text: &Text, groups: &[GroupSpec]) -> Vec<String> {
    let mut lines = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<(u32, &str)>> = BTreeMap::new();
    for definition in text.definitions().filter(|definition| definition.origin == Origin::Source) {
        let place = text.position(definition);
        match use_of(text, definition, groups) {
            Use::Used => {}
            Use::Unused(why) => {
                let line = format!("{place}: {} is not used: {why}", definition.name);
                lines.insert((place.file.to_string(), place.line, place.column), line);
            }
            Use::OfOthers => {
                others
                    .entry(place.file.to_string())
                    .or_default()
                    .push((place.line, definition.name.as_str()));
            }
        }
    }
    let others = others.into_iter().map(|(file, mut names)| {
        names.sort_unstable();
        let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
        format!("{file}: not used, because the negotiator does not read them: {}", names.join(", "))
    });
    lines.into_values().chain(others).collect()
}

/// The use that a cycle over files makes of a name that a text sets.
enum Use {
    /// The cycle uses it, or it is a macro of the text's own.
    Used,
    /// The name has no effect here, for this reason.
    Unused(String),
    /// It is a knob of another daemon.
    OfOthers,
}

fn use_of(text: &Text, definition: &Definition, groups: &[GroupSpec]) -> Use {
    let name = definition.name.as_str();
    let knob: &Knob = match knobs::classify(name) {
        Class::Knob(knob) => knob,
        Class::Parameter => return Use::OfOthers,
        Class::Unknown { nearest: Some(nearest) } => {
            return Use::Unused(format!("nothing reads it; did you mean {nearest}?"));
        }
        Class::Unknown { nearest: None } => return Use::Used,
    };
    if let Some(named) = group_of(name, knob) {
        if groups.iter().any(|group| group.name.eq_ignore_ascii_case(named)) {
            return Use::Used;
        }
        return Use::Unused(format!("GROUP_NAMES does not name {named}"));
    }
    let is_macro = || text.referring(name).next().is_some();
    if knob.name == "<name>_LIMIT" && text.real(name).is_err() && !is_macro() {
        return Use::Unused("a limit is a number, and this is none".to_owned());
    }
    if OF_MANY_CYCLES.contains(&knob.name) {
        return Use::Unused("this is one cycle, which takes as long as it takes".to_owned());
    }
    let ours = |reader: &Reader| matches!(reader, Reader::Negotiator | Reader::Accountant | Reader::Macros);
    if READ_HERE.contains(&knob.name) {
        Use::Used
    } else if !knob.readers.iter().any(ours) {
        Use::OfOthers
    } else {
        match knob.support {
            knobs::Support::Planned => Use::Unused("nothing acts on it yet".to_owned()),
            knobs::Support::Meaningless(why) => Use::Unused(why.to_owned()),
            knobs::Support::Honored | knobs::Support::MappedTo(_) => Use::Used,
        }
    }
}
