//! Names and labels as Kubernetes takes them.

use crate::fnv::fnv;

/// The longest object name.
const LONGEST: usize = 253;

/// The name of the Submitter object of a submitter: the submitter's own name if an object may have that name. Otherwise every
/// invalid character becomes `-`, and a hash follows, so that two submitters never share an object.
///
/// The name follows from the submitter's alone, so that whoever makes the object first, a person or the operator, makes the same
/// object.
pub fn submitter_object_name(submitter: &str) -> String {
    if is_subdomain(submitter) && submitter.len() <= LONGEST {
        return submitter.to_owned();
    }
    let valid = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    let plain: String = submitter.chars().map(|c| if valid(c) { c } else { '-' }).collect();
    let parts: Vec<&str> =
        plain.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty()).collect();
    let mut short = parts.join(".");
    short.truncate(LONGEST - 18);
    format!("{}-{:016x}", short.trim_end_matches(['-', '.']), hash(submitter))
        .trim_start_matches('-')
        .to_owned()
}

/// The hash of the text and a byte 255. Names of objects contain this hash: a build with another would lose the accounts of these
/// submitters.
fn hash(text: &str) -> u64 {
    fnv(text.bytes().chain([0xff]))
}

/// Whether a text has the form of a DNS label: lower case letters, digits and `-`, with a letter or digit at either end.
/// The length is not checked.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

/// Whether a text has the form of a DNS subdomain: DNS labels with dots between them. The length is not checked.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Whether a text is a label's value that is not empty, or the name in a label's key: at most 63 letters, digits, `-`,
/// `_` and `.`, with a letter or digit at either end.
pub fn is_label_name(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

/// Whether a text is a label's key: a name, with or without a subdomain and a slash before it.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((domain, name)) => domain.len() <= 253 && is_subdomain(domain) && is_label_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_of_submitters_stay_as_they_are() {
        for name in ["alice", "physics.higgs.alice", "a-b.c1", "0", &"a".repeat(LONGEST)] {
            assert_eq!(submitter_object_name(name), name);
        }
    }

    #[test]
    fn other_names_of_submitters_get_a_hash() {
        // Objects of clusters have names with this hash.
        assert_eq!(hash("alice@example.org"), 0xef1d_b6c3_f3db_8a2a);
        let long = "a".repeat(LONGEST + 1);
        let names = [
            "group_physics.alice",
            "group-physics.alice",
            "Alice",
            "alice.",
            ".alice",
            "-",
            "",
            "a..b",
            "a-",
            "\u{e4}",
            &long,
        ];
        let objects: std::collections::BTreeSet<String> =
            names.iter().map(|name| submitter_object_name(name)).collect();
        assert_eq!(objects.len(), names.len(), "{objects:?}");
    }
}
