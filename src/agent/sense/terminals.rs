//! The access times of terminals.
//!
//! The kernel sets a terminal's access time when a program reads what somebody typed, but at most once in each 8 s of the
//! clock, so that nobody learns the times of key strokes. So an access time may be up to 8 s before the last input, and an
//! idle time up to 8 s too long.
//!
//! Terminals of containers (`kubectl exec -t`) are not seen: a container has a `/dev/pts` of its own.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;

use crate::named::named;

/// The major number of `/dev/null` and its like, which a container may have in the place of a terminal.
const MEMORY_DEVICES: u32 = 1;

/// One terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terminal {
    /// The name below `/dev`: `tty2`, `pts/0`.
    pub(super) name: String,
    /// When input was last read from the terminal; when the terminal was made, if there was none.
    pub(super) last_input: Timestamp,
}

impl Terminal {
    /// Whether this is a virtual terminal, which is always at the node's own keyboard and screen.
    pub(super) fn is_virtual(&self) -> bool {
        is_numbered(&self.name, "tty")
    }
}

/// Returns the terminals below `dev`, the node's `/dev`: `tty1`, `tty2`, ... and `pts/0`, `pts/1`, ...
///
/// Serial lines (`ttyS0`) are left out: programs read them without anybody there, such as a modem's or a meter's.
pub(super) fn terminals(dev: &Path) -> io::Result<Vec<Terminal>> {
    let mut found = in_directory(dev, "tty", "")?;
    match in_directory(&dev.join("pts"), "", "pts/") {
        Ok(pseudo) => found.extend(pseudo),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// The terminals in one directory whose names are `prefix` and a number. `shown` is put before their names.
fn in_directory(directory: &Path, prefix: &str, shown: &str) -> io::Result<Vec<Terminal>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| named(directory, &error))? {
        let entry = entry.map_err(|error| named(directory, &error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_numbered(name, prefix)) else { continue };
        // A terminal that was closed since is left out.
        let Some(last_input) = entry.metadata().ok().as_ref().and_then(accessed) else { continue };
        found.push(Terminal { name: format!("{shown}{name}"), last_input });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn accessed(metadata: &Metadata) -> Option<Timestamp> {
    if rustix::fs::major(metadata.rdev()) == MEMORY_DEVICES {
        return None;
    }
    Timestamp::from_second(metadata.atime()).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Makes a file with this access time, in seconds since 1970.
    pub fn touch(path: &Path, accessed: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(accessed);
        let times = fs::FileTimes::new().set_accessed(time).set_modified(SystemTime::UNIX_EPOCH);
        File::create(path).unwrap().set_times(times).unwrap();
    }

    #[test]
    fn terminals_are_those_with_a_number() {
        let dev = tempfile::tempdir().unwrap();
        for (at, name) in (1000..).zip([
            "tty",
            "tty0",
            "tty12",
            "ttyS0",
            "tty1a",
            "console",
            "null",
            "pts/0",
            "pts/17",
            "pts/ptmx",
            "input/event0",
        ]) {
            touch(&dev.path().join(name), at);
        }
        let found = terminals(dev.path()).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.last_input.as_second(), one.is_virtual()))
            .collect();
        let expected =
            [("tty0", 1001, true), ("tty12", 1002, true), ("pts/0", 1007, false), ("pts/17", 1008, false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_null_device_is_no_terminal() {
        assert_eq!(accessed(&fs::metadata("/dev/null").unwrap()), None);
    }

    #[test]
    fn without_pseudo_terminals_there_are_the_virtual_ones_and_without_dev_an_error() {
        let dev = tempfile::tempdir().unwrap();
        assert_eq!(terminals(dev.path()).unwrap(), []);
        touch(&dev.path().join("tty1"), 5);
        assert_eq!(terminals(dev.path()).unwrap().len(), 1);
        let error = terminals(&dev.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("/none: "), "{error}");
    }
}
