//! File name patterns: `*`, `?` and `[...]`, as glob(3) has them.

use crate::world::{Entry, Listing};
use condor_config::FileError;

/// The most files that all patterns of a statement may match.
const MAX_FILES: usize = 100_000;

/// The paths that a pattern matches, sorted. The path of a directory ends in a slash. A name that starts with a point is
/// matched only by a pattern that starts with one.
pub(crate) fn matches(pattern: &str, listing: Listing<'_>) -> Result<Vec<String>, FileError> {
    let (root, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/", rest.trim_start_matches('/')),
        None => ("", pattern),
    };
    let only_directories = rest.ends_with('/');
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = vec![Entry { name: root.to_owned(), is_directory: true }];
    for part in parts {
        let mut next = Vec::new();
        for place in found.iter().filter(|place| place.is_directory) {
            if matches!(part, "." | "..") {
                next.push(Entry { name: format!("{}{part}/", place.name), is_directory: true });
                continue;
            }
            let directory = if place.name.is_empty() { "." } else { place.name.as_str() };
            let entries = match listing(directory) {
                Err(FileError::Missing) => Vec::new(),
                listed => listed?,
            };
            for entry in entries.into_iter().filter(|entry| fits(part, &entry.name)) {
                let slash = if entry.is_directory { "/" } else { "" };
                next.push(Entry { name: format!("{}{}{slash}", place.name, entry.name), ..entry });
            }
            if next.len() > MAX_FILES {
                return Err(FileError::Refused(": the pattern matches too many files"));
            }
        }
        found = next;
    }
    let mut names: Vec<String> = found
        .into_iter()
        .filter(|entry| !entry.name.is_empty() && (entry.is_directory || !only_directories))
        .map(|entry| entry.name)
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether a name fits a pattern without slashes.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // On a mismatch behind a star, the star takes one more character.
    let (mut p, mut n, mut star) = (0, 0, None);
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) => name.get(n).and_then(|c| one(pattern.get(p..).unwrap_or_default(), *c)),
            None if n == name.len() => return true,
            None => None,
        };
        match (step, star) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((behind, taken))) if taken < name.len() => {
                star = Some((behind, taken + 1));
                (p, n) = (behind, taken + 1);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern one character takes. `None`: the character does not fit.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern.get(1) == Some(&c)).then_some(2),
        '[' => match set(pattern, c) {
            Some((fits, length)) => fits.then_some(length),
            None => (c == '[').then_some(1),
        },
        literal => (*literal == c).then_some(1),
    }
}

/// Whether a character is in the set in brackets that the pattern starts with, and how long the set is. `None`: the bracket is
/// not closed, and stands for itself.
fn set(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    let close = first + 1 + pattern.get(first + 1..)?.iter().position(|c| *c == ']')?;
    let inner = pattern.get(first..close)?;
    let (mut at, mut inside) = (0, false);
    while let Some(low) = inner.get(at) {
        if let (Some('-'), Some(high)) = (inner.get(at + 1), inner.get(at + 2)) {
            inside |= (*low..=*high).contains(&c);
            at += 3;
        } else {
            inside |= *low == c;
            at += 1;
        }
    }
    Some((inside != negated, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, expected) in [
            ("*.dat", "a.dat", true),
            ("*.dat", ".dat", false),
            (".d*", ".dat", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("run[0-9]", "run7", true),
            ("run[!0-9]", "run7", false),
            ("x[", "x[", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("**", "a", true),
            ("", "", true),
            ("a\\*", "a*", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_walk_directories() {
        let listing = |directory: &str| {
            let entry = |name: &str, is_directory| Entry { name: name.to_owned(), is_directory };
            Ok(match directory {
                "." => vec![
                    entry("b.txt", false),
                    entry("a.txt", false),
                    entry("sub", true),
                    entry(".git", true),
                ],
                "sub/" => vec![entry("c.txt", false)],
                _ => return Err(FileError::Missing),
            })
        };
        for (pattern, expected) in [
            ("*", &["a.txt", "b.txt", "sub/"] as &[&str]),
            ("*.txt", &["a.txt", "b.txt"]),
            ("*/*.txt", &["sub/c.txt"]),
            ("s*/", &["sub/"]),
            ("nothing*", &[]),
            ("/etc/*", &[]),
        ] {
            assert_eq!(matches(pattern, &listing).unwrap_or_default(), expected, "{pattern}");
        }
    }
}
