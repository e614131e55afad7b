//! `meta.k8s.io/v1` Tables: what `kubectl get` prints.

use jiff::Timestamp;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// `includeObject` of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Rows carry no object.
    None,
    /// Rows carry a `PartialObjectMetadata` (the default).
    #[default]
    Metadata,
    /// Rows carry the whole object.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; `Err` holds the message of the 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(format!("unrecognized includeObject value: {other:?}")),
        }
    }
}

/// The columns of a type.
#[derive(Debug, Clone)]
pub struct Columns {}

impl Columns {
    /// The columns `kubectl get` shows for a built-in kind; NAME and AGE for kinds that have no own.
    pub fn built_in(gvk: &GroupVersionKind) -> Self {
        let _ = gvk;
        Self {}
    }

    /// The columns of one element of `spec.versions` of a CRD (`additionalPrinterColumns`).
    pub fn custom(crd_version: &Value) -> Self {
        let _ = crd_version;
        Self {}
    }
}

/// Renders a Table. `list_meta` is the `metadata` of the list (or of the single object).
pub fn table(
    columns: &Columns,
    objects: &[&Value],
    list_meta: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let _ = (columns, objects, include, now);
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_meta, "columnDefinitions": [], "rows": []})
}
