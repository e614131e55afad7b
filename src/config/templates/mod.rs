//! What `use CATEGORY : NAME` stands for.

/// A configuration template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// As the manual spells it: `POLICY`, `FEATURE`, `ROLE`, `SECURITY`.
    pub category: &'static str,
    /// As the manual spells it.
    pub name: &'static str,
    /// Configuration text, in which `$(0)`, `$(1)`, `$(2+)`, `$(1:default)`, `$(1?)` and `$(#)` stand for arguments.
    pub text: &'static str,
    /// Where it makes no sense on Kubernetes: what to use instead.
    pub advice: Option<&'static str>,
}

/// The template of that category and name, compared without case.
pub fn find(_category: &str, _name: &str) -> Option<&'static Template> {
    None
}

/// Whether there is such a category.
pub fn is_category(_category: &str) -> bool {
    false
}
