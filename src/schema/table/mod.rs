//! The `meta.k8s.io/v1` Tables that `kubectl get` prints.

mod age;
mod builtin;
mod custom;
mod jsonpath;
mod pods;

use jiff::Timestamp;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

/// The query parameter `includeObject`: what a row has besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The object as a `PartialObjectMetadata`. This is the default.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Parses the query parameter. The error is the message of a 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(format!("unrecognized includeObject value: {other:?}")),
        }
    }
}

/// The columns of a type.
#[derive(Debug, Clone)]
pub struct Columns(Vec<Column>);

/// One column.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    /// kubectl always shows a column of priority 0, and others only with `-o wide`.
    priority: i64,
    cell: Cell,
}

/// How the cells of a column are computed.
#[derive(Debug, Clone)]
enum Cell {
    Path(jsonpath::JsonPath),
    Code(fn(&Value, Timestamp) -> Value),
    Empty,
}

impl Columns {
    /// The columns that `kubectl get` shows for a built-in kind; NAME and AGE for kinds without columns of their own.
    pub fn built_in(gvk: &GroupVersionKind) -> Self {
        Self(builtin::columns(&gvk.group, &gvk.kind))
    }

    /// The column NAME, and the `additionalPrinterColumns` of one element of `spec.versions` of a CRD; NAME and AGE if it
    /// has none.
    pub fn custom(crd_version: &Value) -> Self {
        Self(custom::columns(crd_version))
    }

    fn definitions(&self) -> Value {
        self.0.iter().map(Column::definition).collect()
    }
}

impl Column {
    fn code(name: &str, kind: &str, priority: i64, cell: fn(&Value, Timestamp) -> Value) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: if name == "Name" { "name".to_owned() } else { String::new() },
            description: String::new(),
            priority,
            cell: Cell::Code(cell),
        }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }

    fn value(&self, obj: &Value, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Code(code) => code(obj, now),
            Cell::Path(path) => custom::cell(&self.kind, &path.find(obj), now),
            Cell::Empty => Value::Null,
        }
    }
}

/// The NAME column.
fn name_column() -> Column {
    let description = "Name must be unique within a namespace. Is required when creating resources, although some \
                       resources may allow a client to request the generation of an appropriate name automatically.";
    let name = |obj: &Value, _| obj.pointer("/metadata/name").cloned().unwrap_or(Value::Null);
    Column { description: description.to_owned(), ..Column::code("Name", "string", 0, name) }
}

/// The AGE column of a built-in type.
fn age_column() -> Column {
    Column::code("Age", "string", 0, |obj, now| {
        age::since(obj.pointer("/metadata/creationTimestamp"), now).into()
    })
}

/// Builds a Table with a row for each object. `list_meta` is the `metadata` of the list, or of the single object; the
/// Table gets its `resourceVersion`, `continue` and `remainingItemCount`.
pub fn table(
    columns: &Columns,
    objects: &[&Value],
    list_meta: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let row = |obj: &&Value| {
        let cells: Value = columns.0.iter().map(|column| column.value(obj, now)).collect();
        let mut row = Map::new();
        row.insert("cells".into(), cells);
        row.insert("object".into(), row_object(obj, include));
        Value::Object(row)
    };
    let rows: Value = objects.iter().map(row).collect();
    let kept = ["resourceVersion", "continue", "remainingItemCount"];
    let meta: Map<String, Value> =
        kept.into_iter().filter_map(|key| Some((key.to_owned(), list_meta.get(key)?.clone()))).collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": columns.definitions(),
        "rows": rows,
    })
}

fn row_object(obj: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => obj.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj.get("metadata").cloned().unwrap_or_else(|| json!({})),
        }),
    }
}

#[cfg(test)]
mod tests;
