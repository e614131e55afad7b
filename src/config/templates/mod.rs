//! HTCondor's templates: the texts that `use CATEGORY : NAME` stands for.
//!
//! The names that a template sets, and their values, are those of HTCondor 25.14, white space included:
//! `tests/configuration/templates.rs` compares each with what `condor_config_val` answered. Templates that start
//! daemons, run programs on the host or guard network traffic are expanded all the same, so that texts which build on
//! them keep their meaning; such a template has [`Template::advice`].

mod daemons;
mod feature;
mod policy;
mod role;
mod schedd;
mod security;

/// A configuration template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// The category as the manual spells it: `POLICY`, `FEATURE`, `ROLE` or `SECURITY`.
    pub category: &'static str,
    /// The name as the manual spells it.
    pub name: &'static str,
    /// Configuration text, in which `$(0)`, `$(1)`, `$(2+)`, `$(1:default)`, `$(1?)` and `$(#)` stand for the
    /// arguments.
    pub text: &'static str,
    /// For a template that makes no sense on Kubernetes: what to use instead.
    pub advice: Option<&'static str>,
}

impl Template {
    /// A template that means what it means in HTCondor.
    const fn of(category: &'static str, name: &'static str, text: &'static str) -> Self {
        Self { category, name, text, advice: None }
    }

    /// The same template, with advice on what to use instead.
    const fn instead(self, advice: &'static str) -> Self {
        Self { advice: Some(advice), ..self }
    }
}

/// Every template, by category. No template is listed twice.
const TABLES: &[&[Template]] = &[
    policy::TEMPLATES,
    feature::TEMPLATES,
    schedd::TEMPLATES,
    daemons::TEMPLATES,
    role::TEMPLATES,
    security::TEMPLATES,
];

/// Every template.
pub fn all() -> impl Iterator<Item = &'static Template> {
    TABLES.iter().copied().flatten()
}

/// The template with this category and name, case aside.
pub fn find(category: &str, name: &str) -> Option<&'static Template> {
    all().find(|template| {
        template.name.eq_ignore_ascii_case(name) && template.category.eq_ignore_ascii_case(category)
    })
}

/// Whether a category has templates; case does not count.
pub(crate) fn is_category(category: &str) -> bool {
    all().any(|template| template.category.eq_ignore_ascii_case(category))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_categories_are_found_without_case() {
        assert_eq!(find("policy", "dESKTOP").map(|t| t.name), Some("Desktop"));
        assert_eq!(find("role", "desktop"), None);
        assert!(is_category("Feature"));
        assert!(!is_category("COMMON"));
    }

    #[test]
    fn no_template_is_there_twice() {
        let mut seen = BTreeSet::new();
        for template in all() {
            let name = format!("{}:{}", template.category, template.name).to_lowercase();
            assert!(seen.insert(name), "{}:{}", template.category, template.name);
        }
    }

    #[test]
    fn templates_only_use_templates_there_are() {
        for template in all() {
            for line in template.text.lines().map(str::trim) {
                let Some(rest) = line.strip_prefix("use ") else { continue };
                let (category, name) = rest.split_once(':').unwrap();
                let name = name.split('(').next().unwrap_or_default();
                assert!(find(category.trim(), name.trim()).is_some(), "{}: {line}", template.name);
            }
        }
    }
}
