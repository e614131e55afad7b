//! Warnings about settings that are in no object.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Taken;
use super::groups::Groups;
use super::notes::Notes;
use crate::named_groups::group_of;
use condor_config::knobs::{self, Class, Knob, Support};
use condor_config::{Config, Definition, Origin, Position};

/// Notes each setting that is in no object, and what to do. Settings of programs that do not exist here are noted in one line for each
/// file. Names that mean nothing to HTCondor are macros, and are in the objects whose values refer to them.
pub(super) fn note(central: &Config, groups: &Groups, taken: &Taken, notes: &mut Notes) {
    let mut others: BTreeMap<Arc<str>, Vec<(u32, &str)>> = BTreeMap::new();
    let is_left = |found: &&Definition| {
        found.origin == Origin::Source && !taken.contains(&found.name.to_ascii_lowercase())
    };
    for definition in central.definitions().filter(is_left) {
        let (name, place) = (definition.name.as_str(), central.position(definition));
        let why = match knobs::classify(name) {
            Class::Knob(knob) => of_knob(name, knob, groups),
            Class::Unknown { nearest: Some(nearest) } => {
                Some(format!(": nothing reads it; did you mean {nearest}?"))
            }
            Class::Unknown { nearest: None } => None,
            Class::Parameter => {
                others.entry(place.file).or_default().push((place.line, name));
                continue;
            }
        };
        if let Some(why) = why {
            notes.at(place, format!("{name} is left out{why}"));
        }
    }
    for (file, mut names) in others {
        names.sort_unstable();
        let names: Vec<&str> = names.into_iter().map(|(_, name)| name).collect();
        let place = Position { file, line: 0, column: 0 };
        notes.at(place, format!("left out, because nothing here reads them: {}", names.join(", ")));
    }
}

/// Why a knob is left out; `None` if an object of a group stands for it.
fn of_knob(name: &str, knob: &Knob, groups: &Groups) -> Option<String> {
    if let Some(group) = group_of(name, knob) {
        return (!groups.names(group)).then(|| format!(": GROUP_NAMES does not name {group}"));
    }
    if knob.name == "GROUP_NAMES" {
        return None;
    }
    Some(match knob.support {
        Support::MappedTo(instead) => format!("; use {instead}"),
        Support::Meaningless(why) => format!(": {why}"),
        Support::Planned => ": nothing acts on it yet".to_owned(),
        Support::Honored if name.contains('.') => {
            ": its prefix is that of a daemon or a local name that no object is read as".to_owned()
        }
        Support::Honored => ": no object takes it".to_owned(),
    })
}
