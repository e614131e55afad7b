//! Values of wrong types: what to write instead, and how the object is read without them.

use serde_json::Value;

use super::yaml::{Kind, Node, Style};
use kube_schema::{FieldError, FieldErrorKind};

/// Fields of bytes, in which a number needs a unit.
const OF_BYTES: [&str; 6] =
    ["disk", "ephemeral-storage", "gpusMinimumMemory", "memory", "sizeLimit", "storage"];

/// A hint about a value that people write otherwise elsewhere: to quote a value such as `true` or `12` if the schema wants text, to take
/// quotes away if the schema wants a number, and to write whole numbers where Kubernetes takes parts of CPUs.
pub fn type_hint(error: &FieldError, node: &Node) -> Option<String> {
    let Kind::Scalar(scalar) = &node.kind else { return None };
    let plain = scalar.style == Style::Plain;
    if wants(error, "type integer,string") {
        return (plain && scalar.value.is_number()).then(|| of_quantity(&error.field, &scalar.text));
    }
    if wants_text(error) {
        return (plain && !scalar.value.is_string()).then(|| format!("quote it: {:?}", scalar.text));
    }
    if !wants(error, "type integer") && !wants(error, "type number") {
        return None;
    }
    if !plain && scalar.text.parse::<f64>().is_ok() {
        return Some(format!("remove the quotes: {}", scalar.text));
    }
    let amount = match scalar.text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<f64>().ok()? / 1000.0,
        None => scalar.text.parse::<f64>().ok()?,
    };
    let is_part = wants(error, "type integer") && (0.0..1e9).contains(&amount);
    is_part.then(|| format!("write a whole number, such as {}", amount.ceil().max(1.0)))
}

/// The hint for a number with a fraction where the schema takes whole numbers and texts.
fn of_quantity(field: &str, text: &str) -> String {
    let name = field.rsplit(['.', '[']).next().unwrap_or_default().trim_end_matches(']');
    if OF_BYTES.contains(&name) {
        format!("write it with a unit, such as {text}Gi")
    } else {
        format!("quote it: {text:?}")
    }
}

/// Whether the schema wants a text, and nothing else, where another value is.
pub fn wants_text(error: &FieldError) -> bool {
    wants(error, "type string")
}

fn wants(error: &FieldError, kind: &str) -> bool {
    error.kind == FieldErrorKind::TypeInvalid && error.message.contains(kind)
}

/// Removes the field at a path from an object. An item of a list gives way to `instead`, if there is such a value, so that the list keeps
/// its length.
pub fn remove(value: &mut Value, path: &str, instead: Option<&Value>) {
    match value {
        Value::Array(list) => {
            let Some((index, rest)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
                return;
            };
            let Ok(index) = index.parse::<usize>() else { return };
            match (list.get_mut(index), instead) {
                (Some(item), _) if !rest.is_empty() => remove(item, rest, instead),
                (Some(item), Some(instead)) => *item = instead.clone(),
                (Some(_), None) => drop(list.remove(index)),
                (None, _) => {}
            }
        }
        Value::Object(map) => {
            let path = path.strip_prefix('.').unwrap_or(path);
            if map.remove(path).is_some() {
                return;
            }
            for (key, field) in map.iter_mut() {
                if let Some(rest) = path.strip_prefix(key.as_str())
                    && rest.starts_with(['.', '['])
                {
                    remove(field, rest, instead);
                }
            }
        }
        _ => {}
    }
}
