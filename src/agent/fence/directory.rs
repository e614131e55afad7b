//! The directory by which the agent and the guard communicate.
//!
//! The agent, in a container, and the guard, on the host, both write here as root. So neither follows a symbolic link that the
//! other could have made, and neither opens anything but regular files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::named::named;
use crate::regular::open;

/// The file that the agent writes.
pub(crate) const PERMIT: &str = "permit.json";
/// The file that the guard writes.
pub(crate) const HEARTBEAT: &str = "guard.json";
/// The file that a running agent has locked.
const LOCK: &str = "agent.lock";
/// The most bytes of a file.
const LIMIT: u64 = 4 << 20;

/// The directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Takes the lock of the running agent, which lasts until the file is dropped or the process ends, however it ends. Returns
    /// `None` if another process has the lock. An error says which file.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.path(LOCK);
        let locked = open(OpenOptions::new().write(true).create(true).truncate(false).mode(0o600), &path)
            .and_then(|file| match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            });
        locked.map_err(|error| named(&path, &error))
    }

    /// The path of a file, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns what a file holds, or `None` if there is no such file. An error says which file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.try_read(name).map_err(|error| named(&self.path(name), &error))
    }

    fn try_read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match open(OpenOptions::new().read(true), &self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(LIMIT + 1).read_to_end(&mut text)?;
        if u64::try_from(text.len()).is_ok_and(|length| length <= LIMIT) {
            return Ok(Some(text));
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("the file has more than {LIMIT} bytes")))
    }

    /// Puts a new file into the place of the old one, so that a reader finds either of them whole. With `lasting`, the new
    /// file outlasts a loss of power. An error says which file.
    pub(crate) fn write(&self, name: &str, text: &[u8], lasting: bool) -> io::Result<()> {
        self.try_write(name, text, lasting).map_err(|error| named(&self.path(name), &error))
    }

    fn try_write(&self, name: &str, text: &[u8], lasting: bool) -> io::Result<()> {
        let fresh = self.path(&format!("{name}.tmp"));
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A new file: where something is already, even a symbolic link, opening fails.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text)?;
        if lasting {
            file.sync_all()?;
        }
        fs::rename(&fresh, self.path(name))?;
        if lasting {
            File::open(&self.0)?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::new(place.path().to_owned());
        (place, directory)
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let (place, directory) = directory();
        assert_eq!(directory.read(PERMIT).unwrap(), None);
        for (text, lasting) in [("a long first text", true), ("short", false)] {
            directory.write(PERMIT, text.as_bytes(), lasting).unwrap();
            assert_eq!(directory.read(PERMIT).unwrap().unwrap(), text.as_bytes());
        }
        // The remains of a writer that died in the middle are in nobody's way.
        fs::write(place.path().join("permit.json.tmp"), "half").unwrap();
        assert_eq!(directory.read(PERMIT).unwrap().unwrap(), b"short");
        directory.write(PERMIT, b"next", true).unwrap();
        assert_eq!(directory.read(PERMIT).unwrap().unwrap(), b"next");
    }

    #[test]
    fn one_agent_at_a_time_has_the_lock() {
        let (place, directory) = directory();
        let first = directory.lock().unwrap().unwrap();
        assert!(directory.lock().unwrap().is_none());
        directory.write(PERMIT, b"as before", true).unwrap();
        assert!(directory.lock().unwrap().is_none(), "other files are replaced, and not this one");
        drop(first);
        assert!(directory.lock().unwrap().is_some());
        fs::remove_file(place.path().join(LOCK)).unwrap();
        symlink(place.path().join("elsewhere"), place.path().join(LOCK)).unwrap();
        assert!(directory.lock().is_err());
        assert!(!place.path().join("elsewhere").exists(), "no symbolic link is followed");
    }

    #[test]
    fn no_symbolic_link_is_followed_and_nothing_else_than_a_file_is_read() {
        let (place, directory) = directory();
        let secret = place.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, place.path().join(PERMIT)).unwrap();
        assert!(directory.read(PERMIT).is_err());
        symlink(&secret, place.path().join("guard.json.tmp")).unwrap();
        directory.write(HEARTBEAT, b"beat", false).unwrap();
        assert_eq!(fs::read(&secret).unwrap(), b"secret");
        fs::create_dir(place.path().join("folder")).unwrap();
        assert!(directory.read("folder").is_err());
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(directory.read("pipe").is_err(), "nobody writes to the pipe, and the reader does not wait");
        fs::write(place.path().join("large"), vec![b' '; usize::try_from(LIMIT + 1).unwrap()]).unwrap();
        assert!(directory.read("large").is_err());
    }
}
