//! The facts that a submit file may know: the user, the place of submission, files, the time.

use condor_config::{FileError, Host};

/// A function that reads a file, such as the items of `queue ... from FILE`.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, FileError>;
/// A function that lists a directory for `queue ... matching`. `.` is the directory of submission.
pub type Listing<'f> = &'f dyn Fn(&str) -> Result<Vec<Entry>, FileError>;
/// A function that says how large a file is in bytes, or all files of a directory together. `None`: there is no such file.
pub type Sizes<'f> = &'f dyn Fn(&str) -> Option<u64>;

/// A file or a directory within a listed directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the directory.
    pub name: String,
    /// Whether the entry is a directory.
    pub is_directory: bool,
}

/// The facts that a submit file may know of the place where it is submitted, as data and functions. A fact that is not given is
/// refused with a message, or left out.
#[derive(Clone)]
pub struct World<'w> {
    /// The environment for `$ENV()` and `getenv`, the seed of random numbers, and the time of submission (`QDate`).
    pub host: Host,
    /// The directory of submission: an absolute path.
    pub directory: String,
    /// Who submits.
    pub user: String,
    /// `$(ARCH)`, which condor_submit also adds to the Requirements, such as `X86_64`.
    pub arch: String,
    /// `$(OPSYS)`, such as `LINUX`.
    pub op_sys: String,
    /// FILESYSTEM_DOMAIN of HTCondor's configuration. Empty: the ad has none.
    pub file_system_domain: String,
    /// `$CondorVersion` and `$CondorPlatform` of the ad. Empty: the ad has none.
    pub version: (String, String),
    /// The parts of the local date at [`Host::now`]: year, month and day of `$(Year)`, `$(Month)` and `$(Day)`.
    pub date: (String, String, String),
    /// The cluster's number, for `$(Cluster)` and `ClusterId`.
    pub cluster: i64,
    /// How files are read.
    pub files: Option<Files<'w>>,
    /// How directories are listed.
    pub listing: Option<Listing<'w>>,
    /// How files are measured. Without it, all sizes in the ad are 0.
    pub sizes: Option<Sizes<'w>>,
}

impl World<'_> {
    /// A world that tells nothing: no files, no environment, the time 0, cluster 1, Linux on X86_64.
    pub fn none() -> Self {
        Self {
            host: Host::none(),
            directory: "/".to_owned(),
            user: "user".to_owned(),
            arch: "X86_64".to_owned(),
            op_sys: "LINUX".to_owned(),
            file_system_domain: String::new(),
            version: (String::new(), String::new()),
            date: ("1970".to_owned(), "01".to_owned(), "01".to_owned()),
            cluster: 1,
            files: None,
            listing: None,
            sizes: None,
        }
    }

    /// The absolute path of a name, which is relative to a directory unless it starts with a slash. Repeated slashes become
    /// one.
    pub(crate) fn full_path(directory: &str, name: &str) -> String {
        let whole = if name.starts_with('/') { format!("/{name}") } else { format!("/{directory}/{name}") };
        let mut path = String::with_capacity(whole.len());
        for c in whole.chars() {
            if c != '/' || !path.ends_with('/') {
                path.push(c);
            }
        }
        path
    }

    /// The size of a file in KiB, rounded up; 0 if nobody knows, and for a URL.
    pub(crate) fn size_kib(&self, path: &str) -> i64 {
        let bytes = self.sizes.and_then(|sizes| sizes(path)).unwrap_or(0);
        i64::try_from(bytes.div_ceil(1024)).unwrap_or(i64::MAX)
    }
}

/// Whether a text starts like a URL: a scheme and `://`.
pub(crate) fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(letter)).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_have_single_slashes() {
        for (directory, name, expected) in [
            ("/home/ada", "a//b", "/home/ada/a/b"),
            ("/home/ada/", "./a", "/home/ada/./a"),
            ("/home/ada", "//bin/sh", "/bin/sh"),
            ("/", "a", "/a"),
        ] {
            assert_eq!(World::full_path(directory, name), expected, "{name} in {directory}");
        }
    }

    #[test]
    fn schemes() {
        for (text, expected) in [
            ("http://x", Some("http")),
            ("a/b://c", None),
            ("C:/x", None),
            ("://", None),
            ("osdf+tok://a", Some("osdf+tok")),
        ] {
            assert_eq!(scheme(text), expected, "{text}");
        }
    }
}
