//! The server's part of strategic merge patch: applies a patch with directives to the live object.

use serde_json::{Map, Value};

use super::order::{arrange, identity};
use crate::error::PatchError;
use crate::shape::Place;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

type Object = Map<String, Value>;

/// Merges `patch` into `original`, an object at `place`.
pub(super) fn merge_map(
    mut original: Object,
    patch: &Object,
    place: Place<'_>,
) -> Result<Object, PatchError> {
    match patch.get(DIRECTIVE).map(|d| d.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("delete") => return Ok(Object::new()),
        Some("replace") => {
            let rest = patch.iter().filter(|(k, v)| !k.starts_with('$') && !v.is_null());
            return Ok(rest.map(|(k, v)| (k.clone(), v.clone())).collect());
        }
        Some(other) => {
            return Err(unknown_directive(other, patch));
        }
    }
    retain_keys(&mut original, patch)?;
    delete_primitives(&mut original, patch)?;
    for (name, change) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        if change.is_null() {
            original.remove(name);
            continue;
        }
        let order = patch.get(&format!("{ELEMENT_ORDER}{name}"));
        let live = original.remove(name);
        let merged = merge_value(live, change, order, place.field(name))?;
        original.insert(name.clone(), merged);
    }
    order_only(&mut original, patch, place)?;
    Ok(original)
}

fn merge_value(
    live: Option<Value>,
    change: &Value,
    order: Option<&Value>,
    place: Place<'_>,
) -> Result<Value, PatchError> {
    match (live, change) {
        (live, Value::Object(change)) => {
            let live = match live {
                Some(Value::Object(live)) if !place.has_strategy("replace") => live,
                _ => Object::new(),
            };
            merge_map(live, change, place).map(Value::Object)
        }
        (live, Value::Array(change)) if place.has_strategy("merge") => {
            let live = if let Some(Value::Array(live)) = live { live } else { Vec::new() };
            merge_list(live, change, order, place).map(Value::Array)
        }
        (_, change) => Ok(change.clone()),
    }
}

fn merge_list(
    live: Vec<Value>,
    change: &[Value],
    order: Option<&Value>,
    place: Place<'_>,
) -> Result<Vec<Value>, PatchError> {
    let key = place.merge_key();
    let before = live.clone();
    let merged = match key {
        Some(key) => merge_items(live, change, key, place)?,
        None => merge_scalars(live, change)?,
    };
    match order {
        None => Ok(merged),
        Some(order) => Ok(arrange(merged, order_list(order)?, &before, key)),
    }
}

fn merge_scalars(mut live: Vec<Value>, change: &[Value]) -> Result<Vec<Value>, PatchError> {
    for value in change {
        if value.is_object() || value.is_array() {
            return Err(PatchError::BadRequest("invalid patch format of primitive list".into()));
        }
        if !live.contains(value) {
            live.push(value.clone());
        }
    }
    Ok(live)
}

fn merge_items(
    mut live: Vec<Value>,
    change: &[Value],
    key: &str,
    place: Place<'_>,
) -> Result<Vec<Value>, PatchError> {
    let objects = change
        .iter()
        .map(|item| item.as_object().ok_or_else(|| bad_type(item)))
        .collect::<Result<Vec<&Object>, PatchError>>()?;
    if objects.iter().any(|item| directive(item) == Some("replace")) {
        live.clear();
    }
    for item in objects {
        match directive(item) {
            Some("replace") => {}
            Some("delete") => {
                let wanted = merge_key_of(item, key)?;
                live.retain(|old| old.get(key) != Some(wanted));
            }
            None | Some("merge") => merge_item(&mut live, item, key, place.item())?,
            Some(other) => {
                return Err(unknown_directive(other, item));
            }
        }
    }
    Ok(live)
}

fn merge_item(live: &mut Vec<Value>, item: &Object, key: &str, place: Place<'_>) -> Result<(), PatchError> {
    let wanted = merge_key_of(item, key)?;
    match live.iter_mut().find(|old| old.get(key) == Some(wanted)) {
        Some(Value::Object(old)) => *old = merge_map(std::mem::take(old), item, place)?,
        _ => live.push(Value::Object(merge_map(Object::new(), item, place)?)),
    }
    Ok(())
}

fn unknown_directive(directive: &str, patch: &Object) -> PatchError {
    PatchError::Unprocessable(format!(
        "unknown patch type: {directive} in map: {}",
        Value::Object(patch.clone())
    ))
}

fn directive(item: &Object) -> Option<&str> {
    item.get(DIRECTIVE).map(|d| d.as_str().unwrap_or_default())
}

fn merge_key_of<'a>(item: &'a Object, key: &str) -> Result<&'a Value, PatchError> {
    item.get(key).ok_or_else(|| {
        let text = Value::Object(item.clone());
        PatchError::Unprocessable(format!("map: {text} does not contain declared merge key: {key}"))
    })
}

fn bad_type(item: &Value) -> PatchError {
    PatchError::Unprocessable(format!("expected a map in a list that merges by key, but got: {item}"))
}

/// Handles `$retainKeys`: removes the fields of the live object that the list does not name.
fn retain_keys(original: &mut Object, patch: &Object) -> Result<(), PatchError> {
    let Some(list) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::BadRequest("invalid patch format of retainKeys".into());
    let keep = list.as_array().ok_or_else(bad)?;
    let kept = |name: &str| keep.iter().any(|k| k.as_str() == Some(name));
    if patch.iter().any(|(name, value)| !name.starts_with('$') && !value.is_null() && !kept(name)) {
        return Err(bad());
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Handles `$deleteFromPrimitiveList/<field>`: removes scalars from a list.
fn delete_primitives(original: &mut Object, patch: &Object) -> Result<(), PatchError> {
    for (directive, values) in patch {
        let Some(field) = directive.strip_prefix(DELETE_PRIMITIVES) else { continue };
        let Some(values) = values.as_array() else {
            return Err(PatchError::BadRequest("invalid patch format of primitive list".into()));
        };
        if let Some(Value::Array(list)) = original.get_mut(field) {
            list.retain(|item| !values.contains(item));
        }
    }
    Ok(())
}

/// Handles `$setElementOrder/<field>` for a list that the patch does not change otherwise.
fn order_only(original: &mut Object, patch: &Object, place: Place<'_>) -> Result<(), PatchError> {
    for (directive, order) in patch {
        let Some(field) = directive.strip_prefix(ELEMENT_ORDER) else { continue };
        let order = order_list(order)?;
        if patch.contains_key(field) {
            continue;
        }
        if let Some(Value::Array(list)) = original.get_mut(field) {
            let key = place.field(field).merge_key();
            let before = list.clone();
            *list = arrange(std::mem::take(list), order, &before, key);
        }
    }
    Ok(())
}

fn order_list(order: &Value) -> Result<&[Value], PatchError> {
    let bad = || PatchError::BadRequest("invalid patch format of setElementOrder list".into());
    let list = order.as_array().ok_or_else(bad)?;
    if list.iter().any(|item| identity(item, None).is_none_or(Value::is_null)) {
        return Err(bad());
    }
    Ok(list)
}
