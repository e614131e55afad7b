//! Structural schemas of CRDs (`openAPIV3Schema`): validation, defaulting, pruning.
//!
//! Written by hand rather than on the `jsonschema` crate: a structural schema is a small subset of JSON schema with
//! Kubernetes' own additions (`nullable`, int-or-string, list types, embedded resources), its patterns are RE2 and
//! not ECMA 262, and the messages must be those of the real server, which walks schema and object in its own order.
//! The same parsed tree serves defaulting, pruning and the list types of server-side apply, which no validator gives.
//!
//! `x-kubernetes-validations` (CEL rules) are evaluated by `kube-cel`, the crate behind kube's `cel` feature. The cost
//! limits of the real server are not applied.

mod defaults;
mod formats;
mod node;
mod prune;
mod rules;
mod validate;

use std::sync::Arc;

use serde_json::Value;

use super::error::FieldError;
use super::shape::with_object_meta;
use node::Node;

/// The schema of one version of a CRD. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StructuralSchema {
    root: Arc<Node>,
    /// The schema as written, with the standard `metadata`, for server-side apply.
    source: Arc<Value>,
    /// The CEL rules; `None` when there are none.
    rules: Option<Arc<kube_cel::CompiledSchema>>,
}

impl StructuralSchema {
    /// Reads `spec.versions[i].schema.openAPIV3Schema`.
    ///
    /// Errors name the offending part below `path` (normally `spec.versions[0].schema.openAPIV3Schema`) as the real
    /// server does for schemas that are not structural.
    pub fn parse(open_api_v3_schema: &Value, path: &str) -> Result<Self, Vec<FieldError>> {
        let mut parser = node::Parser::new(path);
        let root = parser.root(open_api_v3_schema);
        let (errors, has_rules) = parser.finish();
        if !errors.is_empty() {
            return Err(errors);
        }
        let rules = if has_rules { Some(Arc::new(rules::compile(open_api_v3_schema, path)?)) } else { None };
        Ok(Self { root: Arc::new(root), source: Arc::new(with_object_meta(open_api_v3_schema)), rules })
    }

    /// Checks an object; empty when valid.
    ///
    /// `old` is the stored object in an update: CEL transition rules need it. Errors that the stored object already
    /// had are reported again (no ratcheting). CEL rules run only when the schema itself is satisfied. `metadata` is
    /// not looked at, except by rules.
    pub fn validate(&self, obj: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let errors = validate::validate(&self.root, obj);
        match &self.rules {
            Some(rules) if errors.is_empty() => rules::broken(rules, obj, old),
            _ => errors,
        }
    }

    /// Fills in `default`s where a field is absent or a null that the field does not allow, then drops the nulls
    /// that remain in fields that are not nullable.
    pub fn default(&self, obj: &mut Value) {
        defaults::apply_defaults(&self.root, obj);
        defaults::drop_nulls(&self.root, obj);
    }

    /// Drops fields that the schema does not know and returns their paths (`spec.foo`, for the warning
    /// `unknown field "spec.foo"`), sorted. `apiVersion`, `kind` and `metadata` stay.
    pub fn prune(&self, obj: &mut Value) -> Vec<String> {
        prune::prune(&self.root, obj)
    }

    /// True when some field of the schema has `x-kubernetes-validations`.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    pub(super) fn source(&self) -> &Arc<Value> {
        &self.source
    }
}

#[cfg(test)]
pub(super) mod tests;
