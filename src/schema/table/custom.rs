//! The columns of custom resources, from the `additionalPrinterColumns` of their CRDs.

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::jsonpath::JsonPath;
use super::{Cell, Column, age, name_column};

/// The column NAME and the columns that the CRD version has; NAME and AGE if it has none.
pub(super) fn columns(crd_version: &Value) -> Vec<Column> {
    let own = crd_version.get("additionalPrinterColumns").and_then(Value::as_array);
    let mut columns = vec![name_column()];
    match own.filter(|own| !own.is_empty()) {
        Some(own) => columns.extend(own.iter().map(column)),
        None => columns.push(Column {
            name: "Age".into(),
            kind: "date".into(),
            format: String::new(),
            description:
                "CreationTimestamp is a timestamp representing the server time when this object was created."
                    .into(),
            priority: 0,
            cell: cell_of(".metadata.creationTimestamp"),
        }),
    }
    columns
}

fn column(spec: &Value) -> Column {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let path = text("jsonPath");
    let description = text("description");
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: if description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {path}")
        } else {
            description
        },
        priority: spec.get("priority").and_then(Value::as_i64).unwrap_or(0),
        cell: cell_of(&path),
    }
}

fn cell_of(path: &str) -> Cell {
    JsonPath::parse(path).map_or(Cell::Empty, Cell::Path)
}

/// The cell for the values to which a path leads. As in the real server, only the first value counts.
pub(super) fn cell(kind: &str, found: &[&Value], now: Timestamp) -> Value {
    let Some(first) = found.first() else { return Value::Null };
    match kind {
        "string" => printed(first).into(),
        "integer" => integer(first).map_or(Value::Null, Value::from),
        "number" => first
            .as_f64()
            .and_then(Number::from_f64)
            .map_or(Value::Null, |n| first.as_i64().map_or(Value::Number(n), Value::from)),
        "boolean" => first.as_bool().map_or(Value::Null, Value::from),
        "date" if first.is_string() => age::since(Some(first), now).into(),
        _ => Value::Null,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "Kubernetes truncates here as well; `as` saturates")]
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

fn printed(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}
