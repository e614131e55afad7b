//! Doc comments begin with their subject, as CONTRIBUTING.md says: no comment opens with "What" or "Of".

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below `directory`, hidden directories and build output left out.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// The number and the text of each line that begins a doc comment with "What" or "Of".
fn wrong_openings(text: &str) -> Vec<(usize, &str)> {
    let mut wrong = Vec::new();
    let mut is_within = false;
    for (number, line) in (1..).zip(text.lines()) {
        let doc = ["/// ", "//! "].iter().find_map(|mark| line.trim_start().strip_prefix(mark));
        let opens = doc.is_some_and(|doc| doc.starts_with("What ") || doc.starts_with("Of "));
        if opens && !is_within {
            wrong.push((number, line.trim()));
        }
        is_within = line.trim_start().starts_with("//");
    }
    wrong
}

#[test]
fn no_doc_comment_opens_with_what_or_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    sources(root, &mut all);
    assert!(all.len() > 500, "the sources are found: {}", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root).unwrap().display();
        wrong.extend(wrong_openings(&text).iter().map(|(number, line)| format!("{shown}:{number}: {line}")));
    }
    assert!(wrong.is_empty(), "name the subject first:\n{}", wrong.join("\n"));
}

#[test]
fn openings_are_told_from_other_lines() {
    let text = "//! What a file is.\n\n/// The first line says\n/// What follows.\nstruct A {\n    /// Of these, one.\nlet what = 1; // What\n";
    assert_eq!(wrong_openings(text), [(1, "//! What a file is."), (6, "/// Of these, one.")]);
}
