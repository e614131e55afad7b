//! The files of one history: the one that grows, and those that were rotated, whose names end in the time of the rotation.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The files of one history, all open, so that a rotation in the middle of a reading loses nothing.
#[derive(Debug)]
pub struct Files {
    /// The oldest first.
    pub files: Vec<(PathBuf, File)>,
}

impl Files {
    /// Opens the file that grows, if it is there, and those that were rotated from it.
    ///
    /// # Errors
    /// When one of the files is there and cannot be read.
    pub fn open(current: &Path) -> io::Result<Self> {
        // The file that grows is opened first: if a rotation renames the file meanwhile, the file is opened twice, and not missed.
        let newest = opened(current)?;
        let mut files = Vec::new();
        for path in rotated(current)? {
            files.extend(opened(&path)?);
        }
        files.extend(newest);
        Ok(Self { files })
    }
}

/// Opens a file. `None` if there is no such file, or if the file was removed in the meantime.
fn opened(path: &Path) -> io::Result<Option<(PathBuf, File)>> {
    match File::open(path) {
        Ok(file) => Ok(Some((path.to_owned(), file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The files that were rotated from a file, the oldest first.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn rotated(current: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(name) = current.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let directory =
        current.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let other = entry?.file_name();
        let suffix = other.to_str().and_then(|other| other.strip_prefix(name)?.strip_prefix('.'));
        if suffix.is_some_and(is_time) {
            found.push(directory.join(other));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a suffix is a time such as `20301231T235959`, as HTCondor writes it.
fn is_time(suffix: &str) -> bool {
    let is = |at: usize, byte: u8| if at == 8 { byte == b'T' } else { byte.is_ascii_digit() };
    suffix.len() == 15 && suffix.bytes().enumerate().all(|(at, byte)| is(at, byte))
}

/// The name of a file that is rotated at a time, in seconds since 1970: `history.20301231T235959`, in UTC.
pub fn rotated_name(current: &Path, now: i64) -> PathBuf {
    let mut name: OsString = current.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", stamp(now)));
    current.with_file_name(name)
}

/// `20301231T235959`.
fn stamp(secs: i64) -> String {
    let instant = Timestamp::from_second(secs.max(0)).unwrap_or(Timestamp::MAX);
    instant.strftime("%Y%m%dT%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_rotated_file_has_its_time() {
        for (secs, expected) in [
            (0, "19700101T000000"),
            (951_868_799, "20000229T235959"),
            (1_893_456_000, "20300101T000000"),
            (1_924_991_999, "20301231T235959"),
            (-5, "19700101T000000"),
        ] {
            let expected = PathBuf::from(format!("/a/history.{expected}"));
            assert_eq!(rotated_name(Path::new("/a/history"), secs), expected);
        }
        assert!(is_time("20301231T235959"));
        for other in ["", "old", "20301231-235959", "20301231T23595", "20301231T2359590"] {
            assert!(!is_time(other), "{other}");
        }
    }
}
