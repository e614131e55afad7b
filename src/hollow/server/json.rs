//! Small helpers to read and write paths of a [`serde_json::Value`] without panics.

use serde_json::{Map, Value};

/// The value at `path`, if every step exists.
pub(super) fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, key| at.get(key))
}

/// The text at `path`, if it is a string.
pub(super) fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    get(value, path).and_then(Value::as_str)
}

/// The text at `path`, if it is a string that is not empty.
pub(super) fn some_text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    text(value, path).filter(|t| !t.is_empty())
}

/// The integer at `path`.
pub(super) fn int(value: &Value, path: &[&str]) -> Option<i64> {
    get(value, path).and_then(Value::as_i64)
}

/// The elements of the list at `path`; empty if there is no list.
pub(super) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Writes `new` at `path`. A value on the way that is not an object is replaced by one.
pub(super) fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    let mut at = value;
    for key in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(*key).or_insert(Value::Null);
    }
    *at = new.into();
}

/// Writes `new` at `path` unless something other than null is there.
pub(super) fn set_default(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if get(value, path).is_none_or(Value::is_null) {
        set(value, path, new);
    }
}

/// Removes the value at `path` and returns it.
pub(super) fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut at = value;
    for key in parents {
        at = at.get_mut(key)?;
    }
    at.as_object_mut()?.remove(*last)
}

/// Copies the value at `path` of `from` to the same path of `value`; removes it there if `from` has none.
pub(super) fn copy(value: &mut Value, from: &Value, path: &[&str]) {
    match get(from, path) {
        Some(found) => set(value, path, found.clone()),
        None => {
            remove(value, path);
        }
    }
}

/// `metadata.<field>` as text; empty if it is absent.
pub(super) fn meta<'a>(value: &'a Value, field: &str) -> &'a str {
    text(value, &["metadata", field]).unwrap_or_default()
}

/// The names in `metadata.finalizers`.
pub(super) fn finalizers(value: &Value) -> Vec<&str> {
    list(value, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect()
}

/// Whether `metadata.deletionTimestamp` is set.
pub(super) fn is_deleting(value: &Value) -> bool {
    some_text(value, &["metadata", "deletionTimestamp"]).is_some()
}

/// A list of texts as a JSON array.
pub(super) fn texts<T: AsRef<str>>(items: &[T]) -> Value {
    Value::Array(items.iter().map(|t| Value::String(t.as_ref().to_owned())).collect())
}
