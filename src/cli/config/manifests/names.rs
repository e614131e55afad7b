//! Names of objects that are made of other names.

use std::collections::BTreeSet;

/// The longest part of a name that is made of another name, in bytes. A number may follow.
const LONGEST: usize = 240;

/// The names that were given to objects of one kind.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name for the object of this text: the text in small letters, with `-` for other characters, and with a number if another
    /// object has that name already.
    pub(super) fn of(&mut self, text: &str) -> String {
        let plain: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' })
            .take(LONGEST)
            .collect();
        let parts: Vec<&str> =
            plain.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty()).collect();
        let base = if parts.is_empty() { "unnamed".to_owned() } else { parts.join(".") };
        let others = (2_u64..).map(|number| format!("{base}-{number}"));
        let free = [base.clone()].into_iter().chain(others).find(|name| !self.0.contains(name));
        let name = free.unwrap_or(base);
        self.0.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_differ() {
        let mut names = Names::default();
        for (text, expected) in [
            ("physics", "physics"),
            ("group_physics.Higgs", "group-physics.higgs"),
            ("group-physics.higgs", "group-physics.higgs-2"),
            ("GROUP_physics.higgs", "group-physics.higgs-3"),
            ("_X_", "x"),
            ("_", "unnamed"),
            ("..", "unnamed-2"),
            ("a._.b", "a.b"),
        ] {
            assert_eq!(names.of(text), expected, "{text}");
        }
    }
}
