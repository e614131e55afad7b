//! The common part of the arguments of `queue` in submit files and of `TRANSFORM` in transforms.

/// The first keyword of `[COUNT] [VARIABLES] in|from|matching ITEMS`: where the keyword starts, the keyword, and what follows.
pub fn iteration_keyword(text: &str) -> Option<(usize, &'static str, &str)> {
    let mut start = None;
    for (at, c) in text.char_indices() {
        let ends = c.is_ascii_whitespace() || c == '(';
        match (ends, start) {
            (false, None) => start = Some(at),
            (true, Some(word)) => {
                let found = text.get(word..at)?;
                let known =
                    ["in", "from", "matching"].into_iter().find(|known| known.eq_ignore_ascii_case(found));
                if let Some(keyword) = known {
                    return Some((word, keyword, text.get(at..)?));
                }
                start = None;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keyword_counts() {
        for (text, expected) in [
            ("3", None),
            ("in", None),
            ("2 a, b FROM (in from)", Some((7, "from", " (in from)"))),
            ("x in(a b)", Some((2, "in", "(a b)"))),
            ("input in a", Some((6, "in", " a"))),
            ("matching files *", Some((0, "matching", " files *"))),
        ] {
            assert_eq!(iteration_keyword(text), expected, "{text}");
        }
    }
}
