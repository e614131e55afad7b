//! Reads and writes in cgroups, which know that a cgroup may vanish at any moment.
//!
//! The kernel says ENOENT when a path is resolved after the cgroup was removed, and ENODEV when the file was opened before.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::io::Errno;

use crate::named::named;

/// Whether this error says that the cgroup, or the file in it, is not there.
pub(super) fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::NODEV)
}

/// Returns what the file holds, or `None` if the cgroup has vanished or does not have this file.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(named(path, &error)),
    }
}

/// Writes to a file of a cgroup. Returns whether the write reached the kernel: false if the cgroup has vanished or does
/// not have this file.
pub(super) fn write(path: &Path, text: &str) -> io::Result<bool> {
    // A cgroup's file is never created: a path that is wrong must not become a new file.
    match OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(named(path, &error)),
    }
}

/// Returns the names of the directories in `path`, sorted; none if `path` has vanished. Symbolic links do not count.
pub(super) fn directories(path: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(named(path, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry.and_then(|entry| Ok((entry.file_type()?, entry.file_name()))) {
            Ok((kind, name)) if kind.is_dir() => names.push(name),
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(named(path, &error)),
        }
    }
    names.sort();
    Ok(names)
}
