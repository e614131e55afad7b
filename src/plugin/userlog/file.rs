//! A job event log on this computer. Several programs may write one: each takes the lock, reads, and appends.

use std::env;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A log that is locked until the value is dropped.
pub(super) struct LogFile {
    file: File,
    /// The text of the log.
    pub(super) text: String,
}

impl LogFile {
    /// Opens a log and waits for its lock. A log that is not there is made.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        match file.lock() {
            // If the file system has no locks, no other writer would wait for this one: the log is written without a
            // lock.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            locked => locked?,
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(Self { file, text: String::from_utf8_lossy(&text).into_owned() })
    }

    /// Appends events, in one write.
    pub(super) fn append(&mut self, events: &str) -> io::Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        self.text.push_str(events);
        self.file.write_all(events.as_bytes())
    }
}

/// The right to follow a log. One process follows a log at a time.
pub(super) struct Turn(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl Turn {
    /// Takes the right to follow a log; `None` if another process has the right.
    pub(super) fn take(log: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().append(true).create(true).open(place(log)?)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The file whose lock is the right to follow a log. The file is in a cache directory of the user, so as to leave no files beside
/// the user's log.
fn place(log: &Path) -> io::Result<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = cache.or_else(home).unwrap_or_else(env::temp_dir).join("kubectl-slotwright");
    fs::create_dir_all(&directory)?;
    let mut hasher = DefaultHasher::new();
    fs::canonicalize(log)?.hash(&mut hasher);
    Ok(directory.join(format!("{:016x}.follows", hasher.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_made_appended_to_and_followed_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sim.log");
        let mut log = LogFile::open(&path).unwrap();
        log.append("a\n").unwrap();
        drop(log);
        let mut log = LogFile::open(&path).unwrap();
        assert_eq!(log.text, "a\n");
        log.append("b\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\n");
        let turn = Turn::take(&path).unwrap().expect("nobody follows");
        assert!(Turn::take(&path).unwrap().is_none());
        drop(turn);
        assert!(Turn::take(&path).unwrap().is_some());
    }
}
