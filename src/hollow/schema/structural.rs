//! Structural schemas of CRDs (`openAPIV3Schema`): validation, defaulting, pruning.

use serde_json::Value;

use super::error::FieldError;

/// The schema of one version of a CRD.
#[derive(Debug, Clone, Default)]
pub struct StructuralSchema {}

impl StructuralSchema {
    /// Reads `spec.versions[i].schema.openAPIV3Schema`.
    ///
    /// Errors name the offending part relative to `path` (normally
    /// `spec.versions[0].schema.openAPIV3Schema`) as the real server does for schemas that are not structural.
    pub fn parse(open_api_v3_schema: &Value, path: &str) -> Result<Self, Vec<FieldError>> {
        let _ = (open_api_v3_schema, path);
        Ok(Self {})
    }

    /// Checks an object; `old` is the stored object in an update (transition rules; ratcheting is not done).
    /// Empty when valid. `metadata` is not looked at, except in embedded resources.
    pub fn validate(&self, obj: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let _ = (obj, old);
        Vec::new()
    }

    /// Fills in `default`s where a field is absent, or null and not nullable.
    pub fn default(&self, obj: &mut Value) {
        let _ = obj;
    }

    /// Drops fields that the schema does not know and returns their paths (`spec.foo`, for the warning
    /// `unknown field "spec.foo"`), sorted. `apiVersion`, `kind` and `metadata` stay.
    pub fn prune(&self, obj: &mut Value) -> Vec<String> {
        let _ = obj;
        Vec::new()
    }

    /// True when some field of the schema has `x-kubernetes-validations`.
    pub fn has_rules(&self) -> bool {
        false
    }
}
