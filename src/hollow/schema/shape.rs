//! How the lists and maps of a type merge: from a CRD's schema or from the table of built-in types.

use kube::core::GroupVersionKind;

use super::structural::StructuralSchema;

/// The merge semantics of one type (granular map, atomic, set or associative list per field).
#[derive(Debug, Clone, Default)]
pub struct Shape {}

impl Shape {
    /// A built-in type. Unknown kinds get plain semantics: maps merge, lists are atomic.
    pub fn built_in(gvk: &GroupVersionKind) -> Self {
        let _ = gvk;
        Self {}
    }

    /// A custom resource.
    pub fn custom(schema: &StructuralSchema) -> Self {
        let _ = schema;
        Self {}
    }
}
