//! Attribute names: they compare without case and print with it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The name of an attribute.
///
/// Two names are equal if they differ in ASCII case only, as in HTCondor (`RequestMemory`, `requestmemory`). A name
/// prints as it was written. The hash of the lower-case text is computed once, when the name is made, so that a
/// look-up neither folds case nor hashes. Cloning copies a pointer.
#[derive(Clone)]
pub struct Name {
    text: Arc<str>,
    hash: u64,
}

impl Name {
    /// Makes a name from a text. Any text is allowed: a name that is no identifier prints in quotes in an expression.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let hash = folded_hash(&text);
        Self { text, hash }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash of the lower-case text.
    pub(crate) fn hash_code(&self) -> u64 {
        self.hash
    }

    /// Whether the text is this name, case aside.
    pub fn is(&self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }
}

/// The hash that a [`Name`] of this text would have.
pub(crate) fn folded_hash(text: &str) -> u64 {
    // The standard hasher resists crafted collisions better than a multiplicative one, and its cost is paid once for
    // each name. Its keys are fixed, so that every run gives the same hashes.
    let mut hasher = DefaultHasher::new();
    let mut chunk = [0_u8; 64];
    for part in text.as_bytes().chunks(chunk.len()) {
        for (to, from) in chunk.iter_mut().zip(part) {
            *to = from.to_ascii_lowercase();
        }
        hasher.write(chunk.get(..part.len()).unwrap_or_default());
    }
    hasher.finish()
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.text, &other.text) || self.is(&other.text))
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = self.text.bytes().map(|byte| byte.to_ascii_lowercase());
        left.cmp(other.text.bytes().map(|byte| byte.to_ascii_lowercase()))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The name as written, unquoted.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_kept_and_not_compared() {
        let (a, b) = (Name::from("RequestMemory"), Name::from("REQUESTmemory"));
        assert_eq!(a, b);
        assert_eq!(a.hash_code(), b.hash_code());
        assert_eq!(a.to_string(), "RequestMemory");
        assert_ne!(a, Name::from("RequestMemor"));
        assert_ne!(Name::from("é"), Name::from("É"), "folding is ASCII only");
    }

    #[test]
    fn order_is_by_folded_text() {
        let mut names: Vec<Name> = ["b", "A", "a1", "_", "B2"].into_iter().map(Name::from).collect();
        names.sort();
        let text: Vec<&str> = names.iter().map(Name::as_str).collect();
        assert_eq!(text, ["_", "A", "a1", "b", "B2"]);
    }
}
