//! Finds and reads the files that are to be checked.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes. For comparison: etcd takes objects of up to 1.5 MB.
const LARGEST: u64 = 16 << 20;
/// How many levels of directories are searched.
const DEEPEST: usize = 64;

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// YAML or JSON.
    Manifest,
    /// HTCondor's configuration language.
    Configuration,
}

/// A file to check.
#[derive(Clone, Debug)]
pub struct File {
    /// The file's path, as findings show it.
    pub path: String,
    /// The file's language.
    pub form: Form,
    /// The file's text, or why the file is not text.
    pub text: Result<String, String>,
}

/// A path from the command line, and the files that the path leads to.
#[derive(Clone, Debug)]
pub struct Given {
    /// The path, as findings show it.
    pub path: String,
    /// The files, each by its place in [`Collected::files`].
    pub files: Vec<usize>,
}

/// The name of standard input in findings.
pub const INPUT: &str = "<stdin>";

/// All files that the paths lead to.
#[derive(Debug, Default)]
pub struct Collected {
    /// The files, in the order of the arguments, and in a directory in the order of names. A file to which several paths lead is
    /// here once.
    pub files: Vec<File>,
    /// The paths from the command line that could be opened.
    pub given: Vec<Given>,
    /// Paths that cannot be used, each with the reason.
    pub unusable: Vec<String>,
    /// Directories that were skipped, each with the reason.
    pub skipped: Vec<String>,
    /// The place among `files` of each file that was read, by its true path. A file may be read in both languages.
    read: BTreeMap<(PathBuf, Form), usize>,
}

impl Collected {
    /// Adds a path from the command line: a file of any name, a directory, or `-` for standard input.
    pub fn add(&mut self, path: &Path, form: Option<Form>, input: &mut dyn Read) {
        let is_input = path == Path::new("-");
        let given = if is_input { INPUT.to_owned() } else { shown(path) };
        let language = || form.or_else(|| form_of(path)).unwrap_or(Form::Manifest);
        if is_input {
            self.given.push(Given { path: given, files: Vec::new() });
            return self.once(path, language(), || Ok(Box::new(input) as Box<dyn Read + '_>));
        }
        match fs::metadata(path) {
            Ok(found) => {
                self.given.push(Given { path: given, files: Vec::new() });
                if found.is_dir() {
                    self.directory(path, form, 0);
                } else {
                    self.file(path, language());
                }
            }
            Err(error) => self.unusable.push(format!("{}: {error}", path.display())),
        }
    }

    fn file(&mut self, path: &Path, form: Form) {
        self.once(path, form, || fs::File::open(path).map(|file| Box::new(file) as Box<dyn Read>));
    }

    /// Reads a file, unless the file was read already, and notes that the latest path of the command line leads to it.
    fn once<'r>(
        &mut self,
        path: &Path,
        form: Form,
        open: impl FnOnce() -> std::io::Result<Box<dyn Read + 'r>>,
    ) {
        let own = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let place = if let Some(place) = self.read.get(&(own.clone(), form)) {
            *place
        } else {
            let place = self.files.len();
            let name = if path == Path::new("-") { INPUT.to_owned() } else { shown(path) };
            self.take(name, form, open());
            if self.files.len() == place {
                return;
            }
            self.read.insert((own, form), place);
            place
        };
        if let Some(given) = self.given.last_mut() {
            given.files.push(place);
        }
    }

    fn take(&mut self, path: String, form: Form, opened: std::io::Result<Box<dyn Read + '_>>) {
        let mut bytes = Vec::new();
        if let Err(error) = opened.and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)) {
            self.unusable.push(format!("{path}: {error}"));
            return;
        }
        let text = if bytes.len() as u64 > LARGEST {
            Err(format!("larger than {} MiB", LARGEST >> 20))
        } else {
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
            String::from_utf8(text)
                .map_err(|error| format!("not UTF-8 text from byte {} on", error.utf8_error().valid_up_to()))
        };
        self.files.push(File { path, form, text });
    }

    /// Adds the files in a directory whose extensions are known, in the order of names. Hidden files and directories,
    /// the templates and dependencies of a Helm chart, and links to directories are skipped.
    fn directory(&mut self, directory: &Path, form: Option<Form>, depth: usize) {
        if depth > DEEPEST {
            self.skipped.push(format!("{}: deeper than {DEEPEST} directories", directory.display()));
            return;
        }
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.unusable.push(format!("{}: {error}", directory.display()));
                return;
            }
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => paths.push(entry.path()),
                Err(error) => self.unusable.push(format!("{}: {error}", directory.display())),
            }
        }
        paths.sort();
        let chart = paths.iter().any(|path| path.ends_with("Chart.yaml"));
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with('.') {
                continue;
            }
            if chart && matches!(name, "templates" | "charts") {
                self.skipped
                    .push(format!("{}: a Helm chart's; lint what `helm template` prints", shown(&path)));
            } else if path.is_dir() {
                if !path.is_symlink() {
                    self.directory(&path, form, depth + 1);
                }
            } else if let Some(own) = form_of(&path) {
                self.file(&path, form.unwrap_or(own));
            }
        }
    }
}

/// The language of a file by its extension; `None` if the file is not to be checked.
fn form_of(path: &Path) -> Option<Form> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "yaml" | "yml" | "json" => Some(Form::Manifest),
        "config" | "conf" | "htcondor" => Some(Form::Configuration),
        _ => None,
    }
}

/// A path as pipelines expect it: with slashes, and without `./` in front.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.strip_prefix("./").map_or(text.clone(), str::to_owned)
}
