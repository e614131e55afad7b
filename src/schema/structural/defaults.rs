//! Defaulting, in the order of `apiextensions`: an object gets its defaults before the fields in it, so that an object
//! that is itself a default gets the defaults of its fields.

use serde_json::Value;

use super::node::{Additional, Node};

/// Sets each field that is absent, or null and not nullable, to its default.
pub(super) fn apply_defaults(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, child) in &node.properties {
                let Some(default) = &child.default else { continue };
                let missing = map.get(name).is_none_or(|v| v.is_null() && !child.nullable);
                if missing {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in map.iter_mut() {
                let Some(child) = node.field(name) else { continue };
                if let (true, false, Some(default)) = (field.is_null(), child.nullable, &child.default) {
                    *field = default.clone();
                }
                apply_defaults(child, field);
            }
        }
        Value::Array(list) => {
            let Some(child) = &node.items else { return };
            for item in list {
                if let (true, false, Some(default)) = (item.is_null(), child.nullable, &child.default) {
                    *item = default.clone();
                }
                apply_defaults(child, item);
            }
        }
        _ => {}
    }
}

/// Drops declared fields that are null and not nullable.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, field| {
                let declared = node.properties.get(name).or(match &node.additional {
                    Some(Additional::Schema(child)) => Some(child.as_ref()),
                    _ => None,
                });
                declared.is_none_or(|child| !field.is_null() || child.nullable)
            });
            for (name, field) in map.iter_mut() {
                if let Some(child) = node.field(name) {
                    drop_nulls(child, field);
                }
            }
        }
        Value::Array(list) => {
            let Some(child) = &node.items else { return };
            for item in list {
                drop_nulls(child, item);
            }
        }
        _ => {}
    }
}
