//! Field ownership: `metadata.managedFields` and server-side apply.

use jiff::Timestamp;
use serde_json::Value;

use super::shape::Shape;

/// Who writes, and through which door.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// `fieldManager` of the request, or the first part of the User-Agent (before `/`).
    pub manager: &'a str,
    /// apiVersion of the request: `v1`, `htcondor.example/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`, or empty for the main resource.
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
}

/// One field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// `conflict with "kubectl" using v1`, as the server words it (with subresource and operation where they matter).
    pub message: String,
    /// The path, e.g. `.spec.replicas`.
    pub field: String,
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409 with causes of reason `FieldManagerConflict`.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// 400: the applied object cannot be applied (managedFields set, not an object, no fieldManager).
    #[error("{0}")]
    BadRequest(String),
    /// 422/500-class: duplicate or missing keys in an associative list.
    #[error("{0}")]
    Invalid(String),
}

impl ApplyError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Conflicts(_) => 409,
            Self::BadRequest(_) => 400,
            Self::Invalid(_) => 500,
        }
    }

    /// `Status.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Conflicts(_) => "Conflict",
            Self::BadRequest(_) => "BadRequest",
            Self::Invalid(_) => "InternalError",
        }
    }

    /// `Status.details.causes`.
    pub fn causes(&self) -> Vec<Value> {
        let Self::Conflicts(conflicts) = self else { return Vec::new() };
        conflicts
            .iter()
            .map(|c| serde_json::json!({"reason": "FieldManagerConflict", "message": c.message, "field": c.field}))
            .collect()
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    format!("Apply failed with {} conflicts", conflicts.len())
}

/// Records a create, update or patch (`old` is `None` in a create) in `new.metadata.managedFields`.
///
/// `new` may carry managed fields of its own (a client may edit them; `[{}]` resets them); when it has none, those
/// of `old` stay. Fields whose value changes go over to `writer` with operation `Update`.
pub fn track_update(shape: &Shape, old: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
    let _ = (shape, old, new, writer);
}

/// Server-side apply: merges `applied` into `live` and keeps the managed fields; returns the new object.
///
/// With `live` `None` it creates. When nothing changes, the result equals `live`, timestamps included. The result
/// is neither defaulted, pruned nor validated; call those, do not call [`track_update`].
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let _ = (shape, live, writer, force);
    Ok(applied.clone())
}

/// Removes `metadata.managedFields`.
pub fn strip_managed_fields(obj: &mut Value) {
    if let Some(meta) = obj.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
}
