//! The three kinds of patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902) and strategic merge patch.

mod order;
mod strategic;

use serde_json::Value;

use super::error::PatchError;
use super::shape::Shape;

/// The most operations in one JSON patch, as in the real server.
const MAX_OPERATIONS: usize = 10_000;

/// Applies a JSON merge patch (RFC 7386). This never fails, because any JSON value is a merge patch. The result may be
/// something else than an object; the server rejects it then.
pub fn merge_patch(obj: &mut Value, patch: &Value) {
    json_patch::merge(obj, patch);
}

/// Applies all operations of a JSON patch (RFC 6902), or none.
///
/// # Errors
/// 400 if the patch is malformed; 422 if an operation does not fit the object, or there are too many.
pub fn json_patch(obj: &Value, patch: &Value) -> Result<Value, PatchError> {
    let list: json_patch::Patch = serde_json::from_value(patch.clone())
        .map_err(|error| PatchError::BadRequest(format!("error decoding patch: {error}")))?;
    if list.0.len() > MAX_OPERATIONS {
        return Err(PatchError::Unprocessable(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            list.0.len()
        )));
    }
    let mut result = obj.clone();
    json_patch::patch(&mut result, &list).map_err(|error| {
        let operation = list.0.get(error.operation).map_or("", operation_name);
        let at = error.path.to_string();
        let why = match operation {
            "test" => format!("testing value {at} failed: test failed"),
            "add" => format!("add operation does not apply: doc is missing path: {at:?}: missing value"),
            "replace" => {
                format!("replace operation does not apply: doc is missing key: {at}: missing value")
            }
            "remove" => {
                format!("remove operation does not apply: doc is missing path: {at:?}: missing value")
            }
            other => {
                format!("{other} operation does not apply: doc is missing from path: {at:?}: missing value")
            }
        };
        PatchError::Unprocessable(format!(
            "the server rejected our request due to an error in our request: {why}"
        ))
    })?;
    Ok(result)
}

fn operation_name(operation: &json_patch::PatchOperation) -> &'static str {
    match operation {
        json_patch::PatchOperation::Add(_) => "add",
        json_patch::PatchOperation::Remove(_) => "remove",
        json_patch::PatchOperation::Replace(_) => "replace",
        json_patch::PatchOperation::Move(_) => "move",
        json_patch::PatchOperation::Copy(_) => "copy",
        json_patch::PatchOperation::Test(_) => "test",
    }
}

/// Applies a strategic merge patch to an object of a built-in type.
///
/// # Errors
/// 415 if `shape` is that of a custom resource; 400 or 422 if the patch is malformed or does not fit.
pub fn strategic_merge_patch(shape: &Shape, obj: &Value, patch: &Value) -> Result<Value, PatchError> {
    if shape.is_custom() {
        return Err(PatchError::unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ]));
    }
    let (Value::Object(original), Value::Object(changes)) = (obj, patch) else {
        return Err(PatchError::BadRequest("invalid JSON document".into()));
    };
    strategic::merge_map(original.clone(), changes, shape.root()).map(Value::Object)
}

#[cfg(test)]
mod tests;
