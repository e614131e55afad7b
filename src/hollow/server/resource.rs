//! The description of one served resource: names, scope, subresources, shape, columns.

use std::sync::Arc;

use kube_schema::{Columns, Shape, StructuralSchema};
use serde_json::Value;

use super::selectors::SelectableField;

/// The storage of a resource's objects. Several resources may share a storage: the two Event APIs, or the versions of a
/// CRD.
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
    /// The path of the wanted number of replicas, such as `spec.replicas`.
    pub(super) spec: Vec<String>,
    /// The path of the observed number of replicas.
    pub(super) status: Vec<String>,
    /// The path of the label selector, if there is one.
    pub(super) selector: Option<Vec<String>>,
}

/// The part of a resource's description that only custom resources have.
#[derive(Debug)]
pub(super) struct Custom {
    /// The name of the CRD.
    pub(super) crd: String,
    /// The schema of this version, if the CRD has one.
    pub(super) schema: Option<StructuralSchema>,
    /// The schema as it stands in the CRD, for OpenAPI.
    pub(super) raw_schema: Option<Value>,
}

/// Decodes a built-in object into its Rust type and encodes it again, which drops unknown fields. The error says what
/// does not fit the type.
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
    /// Whether the resource has a status subresource.
    pub(super) status: bool,
    /// Whether `metadata.generation` counts changes outside metadata and status.
    pub(super) generation: bool,
    pub(super) scale: Option<ScalePaths>,
    pub(super) storage: StorageId,
    /// The `apiVersion` in which objects are stored.
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

    /// The resource's name in messages: `pods` or `deployments.apps`.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The kind's name in messages: `Pod` or `Deployment.apps`.
    pub(super) fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Whether this is the built-in kind `kind` of `group`.
    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.custom.is_none() && self.group == group && self.kind == kind
    }

    pub(super) fn is_pod(&self) -> bool {
        self.is("", "Pod")
    }

    /// Whether a delete of this kind answers with the object instead of a `Status`.
    pub(super) fn returns_deleted(&self) -> bool {
        self.group.is_empty()
            && matches!(
                self.kind.as_str(),
                "Pod" | "Service" | "ServiceAccount" | "PersistentVolumeClaim" | "ResourceQuota"
            )
    }

    /// The names of the subresources.
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
