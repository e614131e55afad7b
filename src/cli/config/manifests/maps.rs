//! The files of user maps: their lines become `CLASSAD_USER_MAPDATA_<name>` of the SubmitPolicy, since the operator reads no files.

use super::Taken;
use super::notes::Notes;
use crate::config::{assignment, can_be_read};
use condor_config::{Config, FileError, Position};

/// A line of the SubmitPolicy's text: the name that it defines in small letters, the place of the knob that it stands for, and the line.
pub(super) type Line = (String, (Position, String));

/// Reads the files of the maps that a configuration lists. A file that cannot be read is noted. A map that has its lines in the
/// configuration needs no file.
pub(super) fn lines(
    config: &Config,
    read: &dyn Fn(&str) -> Result<String, FileError>,
    taken: &mut Taken,
    notes: &mut Notes,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for map in config.list("SCHEDD_CLASSAD_USER_MAP_NAMES").unwrap_or_default() {
        let (data, file) = (format!("CLASSAD_USER_MAPDATA_{map}"), format!("CLASSAD_USER_MAPFILE_{map}"));
        let Some(definition) = config.definition(&file).filter(|_| config.raw(&data).is_none()) else {
            continue;
        };
        taken.insert(file.to_ascii_lowercase());
        let place = config.position(definition);
        let path = config.value(&file).ok().flatten().unwrap_or_default();
        let why = match read(path.trim()) {
            Ok(text) if can_be_read(text.trim_end()) => {
                let line = assignment(&data, &format!("{}\n", text.trim_end()));
                lines.push((data.to_ascii_lowercase(), (place, line)));
                continue;
            }
            Ok(_) => "a line of it ends in a backslash".to_owned(),
            Err(FileError::Refused(_)) => "give --allow-files to read it".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!(
            "{file} is left out: the operator reads no files, and {data} is to have the lines of {path}: {why}"
        );
        notes.at(place, message);
    }
    lines
}
