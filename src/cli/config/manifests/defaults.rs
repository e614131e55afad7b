//! Warnings about knobs that the files do not set, and whose defaults here are not HTCondor's.

use super::notes::Notes;
use super::policies::Policy;
use condor_config::knobs::{self, Knob, Support};
use condor_config::{Config, Position, Source};

/// Notes the knobs of an object's text that `config` leaves at a default which is not HTCondor's: `condor_config_val -summary` leaves out
/// what an admin has set to HTCondor's default. The note is about the last of the files.
pub(super) fn note(policy: Policy, config: &Config, sources: &[Source], notes: &mut Notes) {
    let Some(source) = sources.last() else { return };
    let is_set = |knob: &Knob| {
        let own = format!("{}.{}", policy.subsystem, knob.name);
        config.definition(knob.name).or_else(|| config.definition(&own)).is_some()
    };
    let differs =
        |knob: &&Knob| knob.support == Support::Honored && knob.ours.is_some() && policy.takes(knob);
    let unset = knobs::all().filter(differs).filter(|knob| !is_set(knob));
    let lines: Vec<String> =
        unset.map(|knob| format!("{} = {}", knob.name, knob.default().unwrap_or_default())).collect();
    if !lines.is_empty() {
        let place = Position { file: source.name.as_str().into(), line: 0, column: 0 };
        let message = format!(
            "the {} goes by defaults that are not HTCondor's; for HTCondor's, add: {}",
            policy.kind,
            lines.join("; ")
        );
        notes.at(place, message);
    }
}
