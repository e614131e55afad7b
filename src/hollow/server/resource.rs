//! What the server knows of one served resource: names, scope, subresources, shape, columns.

use std::sync::Arc;

use kube_schema::{Columns, Shape, StructuralSchema};
use serde_json::Value;

use super::selectors::SelectableField;

/// Where the objects of a resource are kept; several served resources may share one (two Event APIs, the versions
/// of a CRD).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StorageId(Arc<str>);

impl StorageId {
    /// The storage of `plural` in `group`.
    pub(super) fn new(group: &str, plural: &str) -> Self {
        Self(Arc::from(format!("{group}/{plural}")))
    }
}

/// The paths of a scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScalePaths {
    /// Path of the wanted count below the root: `spec.replicas`.
    pub(super) spec: Vec<String>,
    /// Path of the observed count.
    pub(super) status: Vec<String>,
    /// Path of the selector, if there is one.
    pub(super) selector: Option<Vec<String>>,
}

/// What only custom resources have.
#[derive(Debug)]
pub(super) struct Custom {
    /// Name of the CRD.
    pub(super) crd: String,
    /// The schema of this version, unless the CRD has none.
    pub(super) schema: Option<StructuralSchema>,
    /// The same as the CRD has it, for OpenAPI.
    pub(super) raw_schema: Option<Value>,
}

/// Decodes a built-in object into its type and encodes it again: unknown fields are gone afterwards; the error says
/// what does not fit.
pub(super) type Normalize = fn(&Value) -> Result<Value, String>;

/// One resource in one version.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    /// Has a status subresource.
    pub(super) status: bool,
    /// `metadata.generation` counts changes of the wanted state.
    pub(super) generation: bool,
    pub(super) scale: Option<ScalePaths>,
    pub(super) storage: StorageId,
    /// apiVersion that objects are stored with.
    pub(super) storage_api_version: String,
    pub(super) shape: Shape,
    pub(super) columns: Columns,
    pub(super) selectable: Vec<SelectableField>,
    pub(super) custom: Option<Custom>,
    pub(super) normalize: Option<Normalize>,
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `pods` or `deployments.apps`, as messages name it.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Pod` or `Deployment.apps`, as messages name it.
    pub(super) fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// True for the built-in kind `kind` of `group`.
    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.custom.is_none() && self.group == group && self.kind == kind
    }

    /// True for pods.
    pub(super) fn is_pod(&self) -> bool {
        self.is("", "Pod")
    }

    /// True for the kinds whose delete answers with the object instead of a `Status`.
    pub(super) fn returns_deleted(&self) -> bool {
        self.group.is_empty()
            && matches!(
                self.kind.as_str(),
                "Pod" | "Service" | "ServiceAccount" | "PersistentVolumeClaim" | "ResourceQuota"
            )
    }

    /// Names of the subresources.
    pub(super) fn subresources(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.is_pod() {
            names.extend(["binding", "eviction", "log"]);
        }
        if self.is("", "Namespace") {
            names.push("finalize");
        }
        if self.scale.is_some() {
            names.push("scale");
        }
        if self.status {
            names.push("status");
        }
        names
    }
}
