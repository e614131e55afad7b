//! The files that a command reads, of which one may be standard input.

use std::fs;
use std::io::{self, BufRead};
use std::path::Path;

/// Returns the text of a file; `-` is standard input.
///
/// # Errors
/// When the file cannot be read, or is not UTF-8.
pub fn text(path: &Path, stdin: &mut dyn BufRead) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    stdin.read_to_string(&mut text)?;
    Ok(text)
}
