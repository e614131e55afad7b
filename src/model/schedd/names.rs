//! Names of attributes as objects give them.

use std::collections::BTreeMap;

use crate::pool::Problem;

/// Whether a text can be the name of an attribute.
pub fn is_attribute_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The problems of `spec.attributes` with these names that two of the names differ in case alone: an ad has one of the two attributes, and
/// nobody said which.
pub fn given_twice<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<Problem> {
    let mut seen: BTreeMap<String, &String> = BTreeMap::new();
    let twice = |name: &'a String| {
        let first = *seen.entry(name.to_ascii_lowercase()).or_insert(name);
        (first != name).then(|| Problem {
            reason: "InvalidAttribute",
            field: format!("spec.attributes[{name}]"),
            message: format!(
                "is the same attribute as {first}, since case does not count in names; give one of the two"
            ),
        })
    };
    names.into_iter().filter_map(twice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_alone_are_one_attribute() {
        for (names, expected) in [
            (&["Foo", "foo", "fOO"][..], &["Foo", "Foo"][..]),
            (&["PeriodicHold", "periodichold"], &["PeriodicHold"]),
            (&["Foo", "Fo", "Food"], &[]),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found: Vec<String> =
                given_twice(&names).iter().map(|problem| problem.message.clone()).collect();
            let expected: Vec<String> = expected
                .iter()
                .map(|first| {
                    format!("is the same attribute as {first}, since case does not count in names; give one of the two")
                })
                .collect();
            assert_eq!(found, expected, "{names:?}");
        }
    }
}
