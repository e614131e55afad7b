//! Texts in expressions that no attribute has, texts where only values count, and words that are meant as texts.

use classad::{Expr, Value};

use crate::attributes::is_known;

/// Names of architectures outside HTCondor, each with HTCondor's name.
const FOREIGN: [(&str, &str); 4] =
    [("amd64", "X86_64"), ("arm64", "aarch64"), ("x64", "X86_64"), ("x86-64", "X86_64")];

/// Says which names of architectures an expression compares with Arch though no slot has them, each time as the rest of a sentence that
/// begins with the expression. An expression that names HTCondor's architecture as well serves several pools, and is right; so is each
/// if `is_own` says that Arch is given on purpose.
pub fn foreign(expr: &Expr, is_own: impl Fn(&str) -> bool) -> Vec<String> {
    let is_arch = |name: &str| name.eq_ignore_ascii_case("Arch");
    let named: Vec<&str> = expr
        .compared_texts()
        .filter(|(name, _)| is_arch(name) && !is_own(name))
        .map(|(_, text)| text)
        .collect();
    let is_named = |wanted: &str| named.iter().any(|text| text.eq_ignore_ascii_case(wanted));
    FOREIGN
        .into_iter()
        .filter(|(foreign, own)| is_named(foreign) && !is_named(own))
        .map(|(foreign, own)| {
            format!(
                "compares Arch with \"{foreign}\", which no slot has unless an admin says so; write \"{own}\""
            )
        })
        .collect()
}

/// Says that an expression is nothing but a text, as the rest of a sentence that begins with the expression. Where a number or a truth
/// value counts, such an expression does nothing.
pub fn plain(expr: &Expr) -> Option<String> {
    let text = expr.as_literal().and_then(Value::as_str)?;
    // Some texts are no expressions without their quotes.
    let is_expression = Expr::parse(text).is_ok();
    let remedy = if is_expression { "take the double quotes away" } else { "write an expression" };
    Some(format!("is the text \"{text}\", which is neither true nor a number; {remedy}"))
}

/// Says that a label's key without quotes is divided, as the rest of a sentence that begins with the expression: labels are texts, which
/// nothing can divide.
pub fn divided_label(text: &str) -> Option<String> {
    const LABELS: &str = "NodeLabels.";
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let ends = text.match_indices(LABELS).filter_map(|(at, _)| text.get(at + LABELS.len()..));
    let keys = ends.filter_map(|rest| {
        let (domain, rest) = rest.split_at_checked(rest.find('/')?)?;
        let name = rest.get(1..)?.split(|c: char| !is_of_key(c)).next()?;
        (domain.contains('.') && domain.chars().all(is_of_key) && !name.is_empty())
            .then(|| format!("{domain}/{name}"))
    });
    keys.map(|key| format!("divides at the / of {LABELS}{key}, and a label is a text; write {LABELS}'{key}'"))
        .next()
}

/// The name, if an expression is nothing but the name of an attribute that no ad is known to have: its author likely means a text.
pub fn word(text: &str, is_own: impl Fn(&str) -> bool) -> Option<&str> {
    let word = text.trim();
    let references = Expr::parse(word).ok()?.references();
    let is_name = references.bare.iter().any(|name| name.as_str() == word);
    (is_name && !is_own(word) && !is_known(word)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_by_another_name_than_htcondors_is_said() {
        for (text, expected) in [
            ("Arch == \"amd64\"", &[("amd64", "X86_64")][..]),
            ("\"ARM64\" =?= TARGET.Arch", &[("arm64", "aarch64")]),
            ("Arch != \"x86-64\" && Arch != \"arm64\"", &[("arm64", "aarch64"), ("x86-64", "X86_64")]),
            ("Arch == \"X86_64\"", &[]),
            ("Arch == \"aarch64\" || Arch == \"arm64\"", &[]),
            ("TARGET.NodeLabels.'kubernetes.io/arch' == \"amd64\"", &[]),
            ("Machine == \"amd64\"", &[]),
        ] {
            let expected: Vec<String> = expected
                .iter()
                .map(|(foreign, own)| {
                    format!(
                        "compares Arch with \"{foreign}\", which no slot has unless an admin says so; write \"{own}\""
                    )
                })
                .collect();
            assert_eq!(foreign(&Expr::parse(text).unwrap(), |_| false), expected, "{text}");
        }
        assert_eq!(foreign(&Expr::parse("Arch == \"amd64\"").unwrap(), |name| name == "Arch"), [""; 0]);
    }

    #[test]
    fn an_expression_that_is_a_text_is_said() {
        for (text, expected) in [
            (
                "\"ExitCode == 0\"",
                Some(
                    "is the text \"ExitCode == 0\", which is neither true nor a number; take the double quotes away",
                ),
            ),
            (
                "(\"in two hours\")",
                Some("is the text \"in two hours\", which is neither true nor a number; write an expression"),
            ),
            ("strcat(\"a\", Owner)", None),
            ("3600", None),
            ("Owner == \"bob\"", None),
        ] {
            assert_eq!(plain(&Expr::parse(text).unwrap()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_label_that_is_divided_is_said() {
        for (text, key) in [
            ("TARGET.NodeLabels.topology.kubernetes.io/zone == \"a\"", Some("topology.kubernetes.io/zone")),
            ("TARGET.NodeLabels.'topology.kubernetes.io/zone' == \"a\"", None),
            ("NodeLabels.disktype == \"ssd\" && Memory / 2 > 3", None),
            ("NodeLabels.a.b == 1 || 4/2 > 1", None),
        ] {
            let expected = key.map(|key| {
                format!(
                    "divides at the / of NodeLabels.{key}, and a label is a text; write NodeLabels.'{key}'"
                )
            });
            assert_eq!(divided_label(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_that_is_no_attribute_is_meant_as_a_text() {
        for (text, expected) in [
            (" DUNE ", Some("DUNE")),
            ("True", None),
            ("Memory", None),
            ("friend", None),
            ("\"DUNE\"", None),
            ("DUNE + 1", None),
        ] {
            assert_eq!(word(text, |name| name == "friend"), expected, "{text}");
        }
    }
}
