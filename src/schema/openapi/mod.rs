//! OpenAPI documents, with the parts that kubectl reads.
//!
//! kubectl 1.27 and later read version 3:
//! - `explain` finds the kind of a resource by the `x-kubernetes-group-version-kind` of its paths, and its fields in
//!   `components`.
//! - `create` and `apply` leave validation to the server if the PATCH operation of the kind has the query parameter
//!   `fieldValidation`.
//! - Client-side `apply` of built-in kinds takes merge keys from the schema if PATCH accepts strategic merge patches.
//!
//! Version 2 is for older clients and other tools. Descriptions and fields of built-in kinds come from k8s-openapi.

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
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version, such as `v1`.
    pub version: &'a str,
    /// The kind, such as `Pod`.
    pub kind: &'a str,
    /// The plural resource name, such as `pods`.
    pub plural: &'a str,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
    /// The names of the subresources: `status`, `scale`, `binding`, ...
    pub subresources: &'a [&'a str],
    /// The `openAPIV3Schema` of a custom resource; `None` for a built-in kind, whose schema comes from k8s-openapi.
    pub schema: Option<&'a Value>,
}

impl ResourceDoc<'_> {
    /// The path of the group version: `/api/v1` or `/apis/<group>/<version>`.
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

    /// Hashes everything on which the resource's schema and paths depend.
    fn hash_into(&self, hasher: &mut DefaultHasher) {
        (self.group, self.version, self.kind, self.plural, self.namespaced, self.subresources).hash(hasher);
        self.schema.map(Value::to_string).hash(hasher);
    }
}

/// The answer to `GET /openapi/v3`: the paths of the documents of all group versions. Each path has a hash of the
/// document's content, so that clients can cache the document.
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

/// The answer to `GET /openapi/v3/apis/<group>/<version>` or `/openapi/v3/api/v1`. `resources` may have resources of other
/// group versions, which are ignored.
pub fn openapi_v3(group: &str, version: &str, resources: &[ResourceDoc<'_>]) -> Value {
    let of_version: Vec<&ResourceDoc<'_>> =
        resources.iter().filter(|r| r.group == group && r.version == version).collect();
    v3::document(&of_version)
}

/// The answer to `GET /openapi/v2`, as JSON. Clients that ask for protobuf get 406 from the server, and then ask for JSON.
pub fn openapi_v2(resources: &[ResourceDoc<'_>]) -> Value {
    v2::document(&resources.iter().collect::<Vec<_>>())
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "v1.33.0"})
}

#[cfg(test)]
mod tests;
