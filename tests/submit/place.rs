//! The submit files of this folder, and the place where they are submitted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use condor_config::{FileError, Host, Source};
use submit::manifest::FoundFile;
use submit::{Entry, Options, Submission, World};

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/submit")
}

/// The submit files by name, with the comment in the first line of each.
pub fn files() -> Vec<(String, String, String)> {
    let mut files: Vec<(String, String, String)> = fs::read_dir(folder().join("files"))
        .expect("the folder of submit files")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a submit file");
            let about = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
            (path.file_stem().expect("a name").to_string_lossy().into_owned(), about, text)
        })
        .collect();
    files.sort();
    files
}

/// The place of submission: the files beside the submit files, as if they were in `directory`.
pub struct Place {
    pub directory: String,
    pub environment: BTreeMap<String, String>,
    /// The sizes of files elsewhere.
    pub sizes: BTreeMap<String, u64>,
    pub version: (String, String),
    pub now: i64,
    pub cluster: i64,
}

impl Place {
    fn inside(&self, path: &str) -> PathBuf {
        let relative = path.strip_prefix(&self.directory).unwrap_or(path).trim_start_matches('/');
        folder().join("place").join(relative)
    }

    fn read(&self, name: &str) -> Result<String, FileError> {
        fs::read_to_string(self.inside(name)).map_err(|_| FileError::Missing)
    }

    /// A file that is to travel.
    pub fn content(&self, path: &str) -> FoundFile {
        let place = self.inside(path);
        if !path.starts_with(&self.directory) || !place.exists() {
            return FoundFile::Missing;
        }
        if place.is_dir() {
            let names =
                fs::read_dir(&place).expect("a directory").map(|entry| entry.expect("an entry").file_name());
            return FoundFile::Directory(names.map(|name| name.into_string().expect("text")).collect());
        }
        let mode = fs::metadata(&place).expect("a file").permissions().mode();
        FoundFile::File { bytes: fs::read(&place).expect("a file"), is_executable: mode & 0o100 != 0 }
    }

    fn list(&self, directory: &str) -> Result<Vec<Entry>, FileError> {
        let entries = fs::read_dir(self.inside(directory)).map_err(|_| FileError::Missing)?;
        let entry = |entry: fs::DirEntry| Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_directory: entry.path().is_dir(),
        };
        Ok(entries.filter_map(Result::ok).map(entry).collect())
    }

    fn size(&self, path: &str) -> Option<u64> {
        if let Some(size) = self.sizes.get(path) {
            return Some(*size);
        }
        let place = self.inside(path);
        path.starts_with(&self.directory).then(|| all_bytes(&place)).flatten()
    }

    /// Submits a file here.
    pub fn submit(&self, name: &str, text: &str, options: &Options) -> Submission {
        let files = |name: &str| self.read(name);
        let listing = |directory: &str| self.list(directory);
        let sizes = |path: &str| self.size(path);
        let world = World {
            host: Host { environment: Some(self.environment.clone()), now: self.now, ..Host::none() },
            directory: self.directory.clone(),
            user: "root".to_owned(),
            file_system_domain: "example.org".to_owned(),
            version: self.version.clone(),
            cluster: self.cluster,
            files: Some(&files),
            listing: Some(&listing),
            sizes: Some(&sizes),
            ..World::none()
        };
        submit::submit(&Source::new(format!("{name}.sub"), text), options, &world)
    }
}

fn all_bytes(place: &Path) -> Option<u64> {
    let data = fs::metadata(place).ok()?;
    if !data.is_dir() {
        return Some(data.len());
    }
    Some(fs::read_dir(place).ok()?.filter_map(|entry| all_bytes(&entry.ok()?.path())).sum())
}
