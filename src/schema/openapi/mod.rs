//! OpenAPI documents, as far as kubectl reads them.
//!
//! kubectl 1.27 and later: `explain` finds the kind of a resource by its paths' `x-kubernetes-group-version-kind` and
//! its fields in `components`; `create` and `apply` look for the query parameter `fieldValidation` at the PATCH
//! operation of the kind before they leave validation to the server; client-side `apply` of built-in kinds takes merge
//! keys from the schema when PATCH accepts strategic merge patches. Version 2 is for older clients and other tools.
//! Descriptions and fields of built-in kinds come from k8s-openapi.

mod model;
mod paths;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

/// One served resource.
#[derive(Debug, Clone, Copy)]
pub struct ResourceDoc<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// API version: `v1`.
    pub version: &'a str,
    /// Kind: `Pod`.
    pub kind: &'a str,
    /// Plural resource name: `pods`.
    pub plural: &'a str,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    /// Names of subresources: `status`, `scale`, `binding`, ...
    pub subresources: &'a [&'a str],
    /// `openAPIV3Schema` of a custom resource; `None` for a built-in, whose schema comes from k8s-openapi.
    pub schema: Option<&'a Value>,
}

impl ResourceDoc<'_> {
    /// `/api/v1` or `/apis/<group>/<version>`.
    fn base(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }

    fn gvk(&self) -> Value {
        json!({"group": self.group, "kind": self.kind, "version": self.version})
    }

    /// Changes when the schema or the paths change.
    fn hash_into(&self, hasher: &mut DefaultHasher) {
        (self.group, self.version, self.kind, self.plural, self.namespaced, self.subresources).hash(hasher);
        self.schema.map(Value::to_string).hash(hasher);
    }
}

/// `GET /openapi/v3`: the paths of all group versions, each with a hash of its content (clients cache by it).
pub fn openapi_v3_index(resources: &[ResourceDoc<'_>]) -> Value {
    let mut hashers: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for resource in resources {
        let base = resource.base();
        resource.hash_into(hashers.entry(base.trim_start_matches('/').to_owned()).or_default());
    }
    let paths: Map<String, Value> = hashers
        .into_iter()
        .map(|(path, hasher)| {
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            (path, json!({ "serverRelativeURL": url }))
        })
        .collect();
    json!({ "paths": paths })
}

/// `GET /openapi/v3/apis/<group>/<version>` (or `/openapi/v3/api/v1`): only resources of that group version are used.
pub fn openapi_v3(group: &str, version: &str, resources: &[ResourceDoc<'_>]) -> Value {
    let of_version: Vec<&ResourceDoc<'_>> =
        resources.iter().filter(|r| r.group == group && r.version == version).collect();
    v3::document(&of_version)
}

/// `GET /openapi/v2` as JSON (clients that ask for protobuf get 406 from the server and fall back).
pub fn openapi_v2(resources: &[ResourceDoc<'_>]) -> Value {
    v2::document(&resources.iter().collect::<Vec<_>>())
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "v1.33.0"})
}

#[cfg(test)]
mod tests;
