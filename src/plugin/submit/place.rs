//! The facts about this computer that a submit file may know: its files, the environment, the user and the time.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use ::submit::manifest::{FoundFile, MOST};
use ::submit::{Entry, Options, Submission, World};
use condor_config::{FileError, Host, Source};

/// The place where a file is submitted.
pub struct Place {
    directory: PathBuf,
    environment: BTreeMap<String, String>,
    now: i64,
    seed: u64,
}

/// The error of reading a text, with what to do if the text is in another encoding.
pub(super) fn not_utf8(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::InvalidData {
        return error;
    }
    io::Error::new(
        error.kind(),
        "the file is not UTF-8: convert the file, for example with iconv -f latin1 -t utf-8",
    )
}

impl Place {
    /// This computer, now.
    ///
    /// # Errors
    /// When the working directory is gone.
    pub fn here() -> io::Result<Self> {
        let now = jiff::Timestamp::now();
        Ok(Self {
            directory: env::current_dir()?,
            environment: env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            now: now.as_second(),
            seed: u64::try_from(now.as_microsecond()).unwrap_or_default(),
        })
    }

    /// Reads a submit file here, for a cluster of this number.
    pub fn submit(&self, source: &Source, options: &Options, cluster: i64) -> Submission {
        let files = |name: &str| self.read(name);
        let listing = |directory: &str| self.list(directory);
        let sizes = |path: &str| size(Path::new(path));
        let day = jiff::Timestamp::from_second(self.now).unwrap_or_default().to_string();
        let mut parts = day.split(['-', 'T']).map(str::to_owned);
        let date = [(); 3].map(|()| parts.next().unwrap_or_default());
        let [year, month, day] = date;
        let world = World {
            host: Host {
                environment: Some(self.environment.clone()),
                seed: Some(self.seed),
                now: self.now,
                ..Host::none()
            },
            directory: self.directory.to_string_lossy().into_owned(),
            user: self.environment.get("USER").cloned().unwrap_or_else(|| "user".to_owned()),
            date: (year, month, day),
            cluster,
            files: Some(&files),
            listing: Some(&listing),
            sizes: Some(&sizes),
            ..World::none()
        };
        ::submit::submit(source, options, &world)
    }

    fn read(&self, name: &str) -> Result<String, FileError> {
        let read = if name == "-" {
            io::read_to_string(io::stdin())
        } else {
            fs::read_to_string(self.directory.join(name))
        };
        read.map_err(|error| failure(&not_utf8(error)))
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, FileError> {
        let entries = fs::read_dir(self.directory.join(directory)).map_err(|error| failure(&error))?;
        let entry = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            // A link to a directory counts as a directory.
            let is_directory = fs::metadata(entry.path()).is_ok_and(|data| data.is_dir());
            Some(Entry { name, is_directory })
        };
        Ok(entries.filter_map(|found| entry(found.ok()?)).collect())
    }
}

/// A file that is to travel. No more is read of a file than can travel.
pub(super) fn found(path: &str) -> FoundFile {
    let read = || {
        let data = fs::metadata(path)?;
        if data.is_dir() {
            // A name that is no text cannot be the name of a file in a pod: nobody looks for such a file.
            let names =
                fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            return Ok(FoundFile::Directory(names.collect::<io::Result<_>>()?));
        }
        if !data.is_file() {
            return Ok(FoundFile::Unreadable("it is no file".to_owned()));
        }
        if data.len() > MOST {
            return Ok(FoundFile::TooLarge(data.len()));
        }
        let mut bytes = Vec::new();
        // A file may grow meanwhile.
        fs::File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > MOST {
            return Ok(FoundFile::TooLarge(length));
        }
        Ok(FoundFile::File { bytes, is_executable: data.permissions().mode() & 0o100 != 0 })
    };
    read().unwrap_or_else(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FoundFile::Missing,
        _ => FoundFile::Unreadable(error.to_string()),
    })
}

fn failure(error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing,
        io::ErrorKind::IsADirectory => FileError::Directory,
        _ => FileError::Unreadable(error.to_string()),
    }
}

/// The size of a file, or of the files in a directory together.
fn size(path: &Path) -> Option<u64> {
    let data = fs::symlink_metadata(path).ok()?;
    if data.is_dir() {
        return Some(fs::read_dir(path).ok()?.filter_map(|entry| size(&entry.ok()?.path())).sum());
    }
    fs::metadata(path).ok().map(|data| data.len())
}
