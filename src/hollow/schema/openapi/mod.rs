//! OpenAPI documents, as far as kubectl reads them.

use serde_json::{Value, json};

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

/// `GET /openapi/v3`: the paths of all group versions, each with a hash of its content.
pub fn openapi_v3_index(resources: &[ResourceDoc<'_>]) -> Value {
    let _ = resources;
    json!({"paths": {}})
}

/// `GET /openapi/v3/apis/<group>/<version>` (or `/openapi/v3/api/v1`): only resources of that group version are used.
pub fn openapi_v3(group: &str, version: &str, resources: &[ResourceDoc<'_>]) -> Value {
    let _ = (group, version, resources);
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"}, "paths": {}})
}

/// `GET /openapi/v2` as JSON (clients that ask for protobuf get 406 from the server and fall back).
pub fn openapi_v2(resources: &[ResourceDoc<'_>]) -> Value {
    let _ = resources;
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.33.0"}, "paths": {}, "definitions": {}})
}
