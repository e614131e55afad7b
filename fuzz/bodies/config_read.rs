//! Reads any text as configuration, for a daemon with a local name, and then the values of the first definitions.

use std::collections::BTreeMap;

use condor_config::{FileError, Host, Reader, Source};

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let host = Host { seed: Some(1), environment: Some(BTreeMap::new()), ..Host::none() };
    // The text may include itself, as the file `self`. No other file exists.
    let files = |path: &str| if path == "self" { Ok(text.to_owned()) } else { Err(FileError::Missing) };
    let reader =
        Reader::new(host).subsystem("STARTD").local_name(Some("LN".to_owned())).files(&files).guarded();
    let reading = reader.read(&[Source::new("fuzz", text)]);
    for finding in &reading.diagnostics {
        let _ = finding.to_string();
    }
    let config = reading.config;
    for definition in config.definitions().take(50) {
        let _ = config.slot_text(1, &definition.name);
        let _ = config.expr(&definition.name);
        let _ = config.integer(&definition.name);
        let _ = config.boolean(&definition.name);
    }
}
