//! Warnings about settings, in the order of their files.

use std::io::{self, Write};

use condor_config::{Config, Position, ValueError};

/// All warnings, each with its place.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<(Position, String)>);

impl Notes {
    /// Adds a warning.
    pub(super) fn at(&mut self, place: Position, message: impl Into<String>) {
        self.0.push((place, message.into()));
    }

    /// Adds a warning, if there is none at this place.
    pub(super) fn at_once(&mut self, place: Position, message: impl Into<String>) {
        if self.0.iter().all(|(noted, _)| *noted != place) {
            self.at(place, message);
        }
    }

    /// Writes all warnings, each in a line of its own.
    ///
    /// # Errors
    /// When `stderr` cannot be written.
    pub(super) fn tell(mut self, stderr: &mut dyn Write) -> io::Result<()> {
        self.0.sort();
        self.0.dedup();
        let line = |(place, message): &(Position, String)| {
            writeln!(stderr, "slotwright config: warning: {place}: {message}")
        };
        self.0.iter().try_for_each(line)
    }
}

/// The place of a name's definition, with the negotiator's prefix or without. `None` if the configuration does not define the name.
pub(super) fn place_of(config: &Config, name: &str) -> Option<Position> {
    let own = format!("{}.{name}", config.subsystem());
    let found = config.definition(&own).or_else(|| config.definition(name))?;
    Some(config.position(found))
}

/// The message of a fault without its place.
pub(super) fn without_place(fault: &ValueError) -> String {
    let (text, place) = (fault.to_string(), format!("{}: ", fault.position()));
    text.strip_prefix(&place).map_or(text.clone(), str::to_owned)
}
