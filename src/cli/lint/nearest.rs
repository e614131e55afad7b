//! Finds what to suggest in "did you mean": the known name that is most similar to an unknown one.

/// The most similar of the known names; `None` if none is similar enough to be meant. Case does not matter.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    known
        .into_iter()
        .map(|other| (strsim::jaro_winkler(&folded, &other.to_lowercase()), other))
        .filter(|(likeness, _)| *likeness > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        let known = ["requirements", "requests", "rank", "count", "template"];
        for (name, meant) in [
            ("requirement", Some("requirements")),
            ("Rank", Some("rank")),
            ("cuont", Some("count")),
            ("completions", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
    }
}
