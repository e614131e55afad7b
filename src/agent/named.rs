//! Errors of files that say which file.

use std::io;
use std::path::Path;

/// The same error with the path in its message.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
