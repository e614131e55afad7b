//! The files that travel with a job: a program that is a file where the job is submitted, `transfer_input_files`, and `input`.
//!
//! Small files travel in a ConfigMap, and URLs are fetched by an init container. A proc finds both in its scratch directory, an
//! emptyDir in which its program begins. Each file of the ConfigMap is mounted there by itself, so that no image needs a shell or
//! `cp`: the directory is writable, and the inputs are not.

mod mounts;
mod program;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{MAX_JOBS, Wrong, flag, text};
use crate::file::{Cluster, Proc};
use crate::world::{World, scheme};

pub use mounts::name_files;
pub(super) use mounts::{Keys, texts, unload};
pub(super) use program::{left, on_shared};

/// The most bytes that the files of an HTCJob have together: Kubernetes allows a ConfigMap no more.
pub const MOST: u64 = 1 << 20;

/// The most files of a proc, if directories are among them. Each is a mount of the pod.
const MOST_FILES: usize = 200;

/// The most files and directories that are looked at for a directory.
const MOST_LOOKED_AT: usize = 10_000;

/// The longest path, in bytes, of a directory that is looked into.
const LONGEST_PATH: usize = 1024;

/// The scratch directory, unless `container_target_dir` names another.
pub const SCRATCH: &str = "/scratch";

/// The image of the init container that fetches URLs, unless the caller names another.
pub const FETCH_IMAGE: &str = "docker.io/curlimages/curl:8.11.1";

/// A file of the place of submission, as it is found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundFile {
    /// A file.
    File {
        /// The content of the file.
        bytes: Vec<u8>,
        /// Whether its owner may execute the file.
        is_executable: bool,
    },
    /// A file of so many bytes, which are more than [`MOST`].
    TooLarge(u64),
    /// A directory, with the names of what is in it.
    Directory(Vec<String>),
    /// Nothing.
    Missing,
    /// A file that cannot be read, and why.
    Unreadable(String),
}

/// A function that reads a file, given by its absolute path.
pub type Contents<'c> = &'c dyn Fn(&str) -> FoundFile;

/// A place of submission without files.
pub fn no_files(_: &str) -> FoundFile {
    FoundFile::Missing
}

/// The files that have been read, by their paths.
pub(super) struct Hold<'c> {
    contents: Contents<'c>,
    found: BTreeMap<String, FoundFile>,
    bytes: u64,
}

/// The files and URLs that travel with a proc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cargo {
    files: Vec<File>,
    /// Names in the scratch directory, and URLs.
    urls: Vec<(String, String)>,
    /// Whether the program is the first of the files.
    has_program: bool,
    /// The name in the scratch directory of the file that the program reads as its standard input.
    input: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    /// The name in the scratch directory.
    name: String,
    /// The path where the job is submitted.
    path: String,
    is_executable: bool,
}

impl<'c> Hold<'c> {
    pub(super) fn new(contents: Contents<'c>) -> Self {
        Self { contents, found: BTreeMap::new(), bytes: 0 }
    }

    /// Whether there is a file or a directory.
    pub(super) fn has(&mut self, path: &str) -> bool {
        *self.find(path) != FoundFile::Missing
    }

    fn find(&mut self, path: &str) -> &FoundFile {
        if !self.found.contains_key(path) {
            let found = (self.contents)(path);
            if let FoundFile::File { bytes, .. } = &found {
                self.bytes += length(bytes);
            }
            self.found.insert(path.to_owned(), found);
        }
        self.found.get(path).unwrap_or(&FoundFile::Missing)
    }
}

/// How the files of `transfer_input_files` are named.
struct Inputs<'i> {
    /// The directory that relative paths begin in.
    directory: &'i str,
    /// Whether a relative path stays what it is in the scratch directory (`preserve_relative_paths`).
    keeps_paths: bool,
}

impl Inputs<'_> {
    /// Says what the author of a name meant that is no file. Empty: nobody knows, or there is such a file.
    fn hint(&self, name: &str, hold: &mut Hold<'_>) -> String {
        let mut is_there = |name: &str| hold.has(&plain(&World::full_path(self.directory, name)));
        if is_there(name) {
            return String::new();
        }
        let words: Vec<&str> = name.split_ascii_whitespace().collect();
        if words.len() > 1 && words.iter().all(|word| is_there(word)) {
            return format!("; commas separate names: write {}", words.join(", "));
        }
        if let Some(rest) = name.strip_prefix("~/") {
            return format!("; only shells know what ~ is: write $ENV(HOME)/{rest}");
        }
        if name.contains(['*', '?', '[']) {
            return "; patterns are not expanded here: name the files, or their directory".to_owned();
        }
        String::new()
    }
}

/// Takes the files and URLs that travel with a proc. Reads the files. `travelling` is the file that the program reads as its
/// standard input, if that file travels.
pub(super) fn cargo(
    cluster: &Cluster,
    proc: &Proc,
    travelling: Option<&str>,
    hold: &mut Hold<'_>,
) -> Result<Cargo, Wrong> {
    let mut cargo = Cargo::default();
    if stays(cluster, proc) {
        return Ok(cargo);
    }
    cargo.has_program = program::take(&mut cargo, cluster, proc, hold)?;
    let directory = text(cluster, proc, "Iwd").unwrap_or_default();
    let inputs = text(cluster, proc, "TransferInput").unwrap_or_default();
    // An image in a file is refused as an image.
    let image = text(cluster, proc, "ContainerImageFullPath");
    let names = inputs.split(',').map(str::trim).filter(|name| !name.is_empty());
    let inputs = Inputs {
        directory: &directory,
        keeps_paths: flag(cluster, proc, "PreserveRelativePaths") == Some(true),
    };
    for name in names.filter(|name| image.as_deref() != Some(name)) {
        cargo.take_input(&inputs, name, hold).map_err(|message| (INPUTS.to_owned(), message))?;
    }
    if let Some(name) = travelling {
        let taken = cargo.take_local(&inputs, name, hold);
        let taken = taken.and_then(|taken| taken.ok_or_else(|| format!("'{name}' is a directory")));
        cargo.input = Some(taken.map_err(|message| ("input".to_owned(), message))?);
    }
    let most = MOST.saturating_mul(MAX_JOBS as u64);
    if hold.bytes > most {
        let message = format!("the files of all procs have more than {most} bytes: {ELSEWHERE}");
        return Err((INPUTS.to_owned(), message));
    }
    Ok(cargo)
}

const INPUTS: &str = "transfer_input_files";
const ELSEWHERE: &str = "put large files into a volume of the pod template, or give an http or https URL";

/// Whether no file travels with a proc: the job says so, or begins in a directory that the image or a volume has.
pub(super) fn stays(cluster: &Cluster, proc: &Proc) -> bool {
    text(cluster, proc, "ShouldTransferFiles").is_some_and(|should| should == "NO")
        || text(cluster, proc, "RemoteIwd").is_some()
}

/// A warning about a whole environment that goes from the place of submission into the HTCJob.
pub(super) fn inherited(proc: &Proc) -> Option<Wrong> {
    let number = proc.program.inherited;
    (number > 0).then(|| {
        let message = format!(
            "the job gets {number} variables of this computer, which hide those of the image (PATH, HOME), and which everybody sees \
             who may read the HTCJob (passwords, too): name those that the job needs, as in getenv = CONDA_*, LANG"
        );
        ("getenv".to_owned(), message)
    })
}

impl Cargo {
    fn take_input(&mut self, inputs: &Inputs<'_>, name: &str, hold: &mut Hold<'_>) -> Result<(), String> {
        if let Some(scheme) = scheme(name) {
            if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
                return Err(format!(
                    "'{name}': only http and https URLs are fetched; let the program fetch it, or put it into a volume"
                ));
            }
            let path = name.split(['?', '#']).next().unwrap_or(name);
            let path = path.split_once("://").map_or(path, |(_, path)| path);
            let file = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
            if self.is_new(file, name)? {
                self.urls.push((file.to_owned(), name.to_owned()));
            }
            return Ok(());
        }
        self.take_local(inputs, name, hold).map(|_| ()).map_err(|message| message + &inputs.hint(name, hold))
    }

    /// Adds a file of the place of submission, and returns its name in the scratch directory; or adds all files of a directory.
    fn take_local(
        &mut self,
        inputs: &Inputs<'_>,
        name: &str,
        hold: &mut Hold<'_>,
    ) -> Result<Option<String>, String> {
        let path = plain(&World::full_path(inputs.directory, name));
        let path = path.trim_end_matches('/');
        let within = if inputs.keeps_paths && !name.starts_with('/') {
            let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            if parts.contains(&"..") {
                return Err(format!(
                    "'{name}' leads out of the scratch directory, which preserve_relative_paths does not allow: give an \
                     absolute path, or begin in another initialdir"
                ));
            }
            parts.join("/")
        } else {
            last(path).to_owned()
        };
        if let FoundFile::Directory(_) = hold.find(path) {
            // As HTCondor has it, a path that ends in a slash stands for what is in the directory.
            let stands_for_content = name.ends_with('/') && !inputs.keeps_paths;
            let before = (hold.bytes, hold.found.len());
            self.take_directory(path, if stands_for_content { "" } else { &within }, before, hold)?;
            return Ok(None);
        }
        self.take_file(path, &within, hold).map(|()| Some(within))
    }

    /// Adds all files of a directory and of the directories in it. An empty directory leaves nothing. `before` is how many bytes had
    /// been read before the directory, and how many files and directories.
    fn take_directory(
        &mut self,
        path: &str,
        within: &str,
        before: (u64, usize),
        hold: &mut Hold<'_>,
    ) -> Result<(), String> {
        // A directory that has links to itself has no end.
        if path.len() > LONGEST_PATH {
            return Err(format!("{path} is longer than {LONGEST_PATH} bytes: {ELSEWHERE}"));
        }
        let FoundFile::Directory(mut names) = hold.find(path).clone() else { return Ok(()) };
        names.sort();
        for name in names {
            let path = format!("{path}/{name}");
            let within = if within.is_empty() { name } else { format!("{within}/{name}") };
            if let FoundFile::Directory(_) = hold.find(&path) {
                self.take_directory(&path, &within, before, hold)?;
            } else {
                self.take_file(&path, &within, hold)?;
            }
            if hold.bytes - before.0 > MOST
                || hold.found.len() - before.1 > MOST_LOOKED_AT
                || self.files.len() > MOST_FILES
            {
                return Err(format!(
                    "{path} is one file too many: {MOST_FILES} files of {MOST} bytes together can travel; {ELSEWHERE}"
                ));
            }
        }
        Ok(())
    }

    /// Adds a file under this name in the scratch directory.
    fn take_file(&mut self, path: &str, within: &str, hold: &mut Hold<'_>) -> Result<(), String> {
        match hold.find(path) {
            FoundFile::File { is_executable, .. } => {
                let is_executable = *is_executable;
                self.add(path, within, is_executable)
            }
            FoundFile::Directory(_) => Err(format!("{path} is a directory")),
            FoundFile::Missing => Err(format!("there is no file {path}")),
            FoundFile::Unreadable(why) => Err(format!("{path} cannot be read: {why}")),
            FoundFile::TooLarge(bytes) => {
                Err(format!("{path} has {bytes} bytes, and {MOST} can travel: {ELSEWHERE}"))
            }
        }
    }

    /// Adds a file. A file that is there already is not added again.
    fn add(&mut self, path: &str, name: &str, is_executable: bool) -> Result<(), String> {
        if self.is_new(name, path)? {
            self.files.push(File { name: name.to_owned(), path: path.to_owned(), is_executable });
        }
        Ok(())
    }

    /// Whether a name in the scratch directory is still free for a path or a URL; `false` if the same is there already.
    fn is_new(&self, name: &str, source: &str) -> Result<bool, String> {
        // Kubernetes allows no colon in the path of a mount, and a dollar may begin a reference to the proc.
        if name.is_empty() || name == "." || name == ".." || name.contains([':', '$', '\0']) {
            return Err(format!("'{source}' gives no name that a file can have here: rename it"));
        }
        let files = self.files.iter().map(|file| (&file.name, &file.path));
        let mut taken = files.chain(self.urls.iter().map(|(name, url)| (name, url)));
        // Neither can a name be a file and the directory of another file.
        let lies_in =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        match taken.find(|(taken, _)| *taken == name || lies_in(taken, name) || lies_in(name, taken)) {
            Some((taken, other)) if taken == name && other == source => Ok(false),
            Some((taken, other)) if taken != name => Err(format!(
                "{other} would be {taken}, and {source} would be {name}, which cannot both be: rename one of them"
            )),
            Some((_, other)) => Err(format!("{other} and {source} would both be {name}: rename one of them")),
            None => Ok(true),
        }
    }

    /// Whether the proc has a scratch directory.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.urls.is_empty()
    }

    /// The parts that procs of one HTCJob must have in common.
    pub(super) fn shape(&self) -> Value {
        let modes: Vec<bool> = self.files.iter().map(|file| file.is_executable).collect();
        json!({"files": modes, "program": self.has_program, "urls": self.urls.len(), "input": self.input.is_some()})
    }

    /// The path in the container of the file that the program reads as its standard input, if that file travels.
    pub(super) fn input(&self, directory: &str) -> Option<String> {
        self.input.as_ref().map(|name| within(directory, name))
    }

    /// The path of the program in the container, if the program travels: as the program, or as an input of its name.
    pub(super) fn program(&self, executable: &str, directory: &str) -> Option<String> {
        let first = self.files.first().filter(|_| self.has_program);
        let name = first.map_or_else(|| self.named(executable), |program| Some(&program.name));
        Some(within(directory, name?))
    }

    /// The name in the scratch directory of an input that has the name of the executable.
    fn named(&self, executable: &str) -> Option<&String> {
        let name = executable.trim_start_matches("./");
        let mut names =
            self.files.iter().map(|file| &file.name).chain(self.urls.iter().map(|(name, _)| name));
        names.find(|known| *known == name)
    }
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without components that say nothing, so that `./a` and `a` are the same file.
fn plain(path: &str) -> String {
    let mut path = path.to_owned();
    while path.contains("/./") {
        path = path.replace("/./", "/");
    }
    path
}

fn within(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
