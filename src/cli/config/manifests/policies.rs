//! The objects whose texts take knobs: the Negotiator, the NodePolicy and the SubmitPolicy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Taken;
use super::maps::Line;
use super::notes::Notes;
use crate::config::{assignment, can_be_read};
use api::{GROUP, VERSION};
use condor_config::knobs::{self, Knob, Reader, Support};
use condor_config::{Config, Definition, Host, Origin, Position, Reader as ConfigReader, Source};
use model::startd::config::{Readers, unlisted_cron_job};

/// The name of each object.
const NAME: &str = "default";

/// A kind of objects whose text takes knobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) kind: &'static str,
    /// The daemon as which the operator reads the text.
    pub(super) subsystem: &'static str,
    /// Whose knobs the text takes.
    readers: &'static [Reader],
}

/// The Negotiator.
pub(super) const NEGOTIATOR: Policy = Policy {
    kind: "Negotiator",
    subsystem: "NEGOTIATOR",
    readers: &[Reader::Negotiator, Reader::Accountant],
};

/// Knobs of a NodePolicy's text that say what the central manager's own files say, too: what the collector reads, and the domains of all
/// of a pool's machines.
fn is_of_all_machines(knob: &Knob) -> bool {
    knob.readers.contains(&Reader::Collector) || matches!(knob.name, "UID_DOMAIN" | "FILESYSTEM_DOMAIN")
}

/// All kinds.
pub(super) const ALL: [Policy; 3] = [
    NEGOTIATOR,
    Policy { kind: "NodePolicy", subsystem: "STARTD", readers: &[Reader::Startd, Reader::Collector] },
    Policy { kind: "SubmitPolicy", subsystem: "SCHEDD", readers: &[Reader::Schedd, Reader::Submit] },
];

impl Policy {
    /// The configuration that the operator reads in the text of an object of this kind, if there is one among these objects.
    pub(super) fn of_objects(self, objects: &[Value]) -> Option<Config> {
        let object =
            objects.iter().find(|object| object.get("kind").is_some_and(|kind| kind == self.kind))?;
        let source = Source::block(self.kind, object.pointer("/spec/config")?.as_str()?);
        ConfigReader::new(Host::none()).subsystem(self.subsystem).read(&[source]).into_config().ok()
    }

    /// The object with the knobs that act in its text, and with all names that these refer to; `None` if the configuration sets no
    /// such knob. `beside` are lines that the text has besides those of the configuration. Values stay as they are written: some have
    /// another value on each node. Unless the object is `wanted`, knobs that the files of all machines set make no NodePolicy of their
    /// own: for every node, it would count beside the NodePolicies of the nodes' own files.
    pub(super) fn object(
        self,
        config: &Config,
        beside: Vec<Line>,
        wanted: bool,
        taken: &mut Taken,
        notes: &mut Notes,
    ) -> Option<Value> {
        let mut lines: BTreeMap<String, (Position, String)> = beside.into_iter().collect();
        let mut chosen: Vec<&Definition> =
            self.own(config).filter(|found| self.acts(found) && !Self::is_idle(config, found)).collect();
        let of_all = |found: &&Definition| knobs::find(&found.name).is_some_and(is_of_all_machines);
        if self.kind == "NodePolicy" && !wanted && chosen.iter().all(of_all) {
            for definition in chosen {
                let what = "is left out: nothing else here is of execute nodes, and a NodePolicy would be for all of them; put it into \
                            those of the nodes' files, or give --only NodePolicy";
                notes.at(config.position(definition), format!("{} {what}", definition.name));
                taken.insert(definition.name.to_ascii_lowercase());
            }
            return None;
        }
        self.note_templates(config, &chosen, notes);
        while !chosen.is_empty() {
            for definition in chosen {
                let value = definition.raw();
                let line = if can_be_read(&value) {
                    assignment(&definition.name, &value)
                } else {
                    let what = "is left out: a line of the value ends in a backslash; end the line otherwise";
                    notes.at(config.position(definition), format!("{} {what}", definition.name));
                    String::new()
                };
                taken.insert(definition.name.to_ascii_lowercase());
                lines.insert(definition.name.to_ascii_lowercase(), (config.position(definition), line));
            }
            let text = text(&lines);
            let source = Source::block(self.kind, text.as_str());
            let reading = ConfigReader::new(Host::none()).subsystem(self.subsystem).read(&[source]);
            let readers = Readers::of(&text, &reading.config);
            let referred = |found: &&Definition| {
                !lines.contains_key(&found.name.to_ascii_lowercase()) && readers.reads(&found.name)
            };
            chosen = self.own(config).filter(referred).collect();
        }
        (!lines.is_empty()).then(|| {
            json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": self.kind, "metadata": {"name": NAME},
                   "spec": {"config": text(&lines)}})
        })
    }

    /// The definitions that the daemon sees: those without a prefix, and those with the daemon's.
    fn own(self, config: &Config) -> impl Iterator<Item = &Definition> {
        let is_own = move |found: &&Definition| {
            let prefix = found.name.split_once('.').map(|(prefix, _)| prefix);
            found.origin != Origin::Predefined
                && prefix.is_none_or(|prefix| prefix.eq_ignore_ascii_case(self.subsystem))
        };
        config.definitions().filter(is_own)
    }

    /// Whether the operator acts on the name in the object's text.
    fn acts(self, definition: &Definition) -> bool {
        knobs::find(&definition.name).is_some_and(|knob| knob.support == Support::Honored && self.takes(knob))
    }

    /// Whether a template has set up a cron job that the list of cron jobs then leaves out: HTCondor does not run it either.
    fn is_idle(config: &Config, definition: &Definition) -> bool {
        matches!(definition.origin, Origin::Template(..)) && unlisted_cron_job(config, definition).is_some()
    }

    /// Whether the object's text takes a knob.
    pub(super) fn takes(self, knob: &Knob) -> bool {
        knob.readers.iter().any(|reader| self.readers.contains(reader))
    }

    /// Notes that only policies of execute nodes have set what a Negotiator's text takes.
    fn note_templates(self, config: &Config, chosen: &[&Definition], notes: &mut Notes) {
        let of_policy = |found: &&Definition| matches!(found.origin, Origin::Template("POLICY", _));
        let Some(first) = chosen.first().filter(|_| self.kind == NEGOTIATOR.kind) else { return };
        if chosen.iter().all(of_policy) {
            let what = "the Negotiator has nothing but what policies of execute nodes set by the way; if this is the file of an execute \
                        node, give --only NodePolicy";
            notes.at(config.position(first), what);
        }
    }
}

/// The lines in the order of the files.
fn text(lines: &BTreeMap<String, (Position, String)>) -> String {
    let sorted: BTreeSet<_> = lines.iter().map(|(name, (place, line))| (place, name, line)).collect();
    let lines = sorted.into_iter().map(|(_, _, line)| line).filter(|line| !line.is_empty());
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}
