//! Structural schemas of CRDs (`openAPIV3Schema`): validation, defaulting, pruning.
//!
//! This module does not use the crate `jsonschema`, because a structural schema is a small subset of JSON schema with
//! additions of Kubernetes (`nullable`, int-or-string, list types, embedded resources), its patterns are RE2 and not ECMA
//! 262, and the messages must be those of the real server, which walks schema and object in its own order. The parsed
//! schema also serves defaulting and pruning, for which a validator does not help.
//!
//! The crate `kube-cel`, which is behind kube's feature `cel`, evaluates the CEL rules in `x-kubernetes-validations`. The
//! cost limits of the real server are not applied.

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
    /// The schema as it stands in the CRD, with the standard `metadata`, for server-side apply.
    source: Arc<Value>,
    /// The CEL rules; `None` if the schema has none.
    rules: Option<Arc<kube_cel::CompiledSchema>>,
}

impl StructuralSchema {
    /// Parses `spec.versions[i].schema.openAPIV3Schema` of a CRD.
    ///
    /// # Errors
    /// When the schema is not structural. The errors are those of the real server; their paths begin with `path`, normally
    /// `spec.versions[0].schema.openAPIV3Schema`.
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

    /// Returns everything that is wrong with an object.
    ///
    /// `old` is the stored object of an update, which CEL transition rules need. Errors that the stored object had already
    /// are reported again (no ratcheting). CEL rules run only if the object satisfies the schema. `metadata` is checked by
    /// rules only.
    pub fn validate(&self, obj: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let errors = validate::validate(&self.root, obj);
        match &self.rules {
            Some(rules) if errors.is_empty() => rules::broken(rules, obj, old),
            _ => errors,
        }
    }

    /// Fills in the `default` of each field that is absent, or null and not nullable. Then drops fields that are still
    /// null and not nullable.
    pub fn default(&self, obj: &mut Value) {
        defaults::apply_defaults(&self.root, obj);
        defaults::drop_nulls(&self.root, obj);
    }

    /// Drops the fields that the schema does not have, except `apiVersion`, `kind` and `metadata`. Returns their paths,
    /// such as `spec.foo`, sorted.
    pub fn prune(&self, obj: &mut Value) -> Vec<String> {
        prune::prune(&self.root, obj)
    }

    pub(super) fn source(&self) -> &Arc<Value> {
        &self.source
    }
}

#[cfg(test)]
pub(super) mod tests;
