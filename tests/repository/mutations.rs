//! Holds `tests/mutations` to the code: `hack/mutants.py` finds each guard that it is to break.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A file of `tests/mutations`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    /// The guarantee that this mutation breaks.
    guard: String,
    edit: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    /// A snippet that occurs exactly once in the file. All runs of white space count as equal.
    original: String,
    /// The same snippet with a switch in it: where `MUTATED` is true, the guard is broken.
    switched: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All mutations by number.
fn mutations() -> BTreeMap<u32, (String, Mutation)> {
    let mut all = BTreeMap::new();
    let entries = std::fs::read_dir(root().join("tests/mutations")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let number = name.split('-').next().and_then(|number| number.parse().ok());
        let number: u32 = number.unwrap_or_else(|| panic!("{name} begins with its number"));
        let mutation = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(all.insert(number, (name, mutation)).is_none(), "two mutations are number {number}");
    }
    all
}

/// A mutation whose original is no longer in the sources would break no guard, and so would test nothing.
#[test]
fn every_mutation_still_applies() {
    let all = mutations();
    assert!(all.len() >= 45, "{} mutations", all.len());
    let mut taken: BTreeMap<String, Vec<(Range<usize>, String)>> = BTreeMap::new();
    for (name, mutation) in all.into_values() {
        assert!(!mutation.guard.is_empty() && !mutation.edit.is_empty(), "{name}");
        for edit in mutation.edit {
            let file = &edit.file;
            let text = words(&std::fs::read_to_string(root().join(file)).unwrap_or_default());
            let original = words(&edit.original);
            let spots: Vec<usize> = text.match_indices(&original).map(|(at, _)| at).collect();
            assert_eq!(spots.len(), 1, "{name}: {file} holds {} times: {original}", spots.len());
            assert!(edit.switched.contains("MUTATED"), "{name}: there is no switch in {}", edit.switched);
            let spot = spots[0]..spots[0] + original.len();
            let others = taken.entry(file.clone()).or_default();
            for (other, of) in others.iter() {
                assert!(
                    spot.end <= other.start || other.end <= spot.start,
                    "{name} and {of} edit the same in {file}"
                );
            }
            others.push((spot, name.clone()));
        }
    }
}
