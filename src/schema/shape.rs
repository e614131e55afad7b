//! How the lists and maps of a type merge: from a CRD's schema or from the table of built-in types.

use std::borrow::Cow;
use std::sync::Arc;

use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::builtin::{BUILT_INS, OBJECT_META};
use super::structural::StructuralSchema;

/// The merge semantics of one type (granular map, atomic, set or associative list per field). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    schema: Option<Arc<Value>>,
    custom: bool,
}

impl Shape {
    /// A built-in type. Unknown kinds get plain semantics: maps merge, lists are atomic.
    pub fn built_in(gvk: &GroupVersionKind) -> Self {
        let name = BUILT_INS.name(&gvk.group, &gvk.version, &gvk.kind);
        Self { schema: name.map(|name| Arc::new(reference(name))), custom: false }
    }

    /// A custom resource.
    pub fn custom(schema: &StructuralSchema) -> Self {
        Self { schema: Some(Arc::clone(schema.source())), custom: true }
    }

    /// Whether this is a custom resource.
    pub(super) fn is_custom(&self) -> bool {
        self.custom
    }

    /// The object with the structs that the real server always writes, so that nobody comes to own them by setting
    /// something in them. Custom resources have none.
    pub(super) fn padded<'v>(&self, obj: &'v Value) -> Cow<'v, Value> {
        if self.custom || !obj.is_object() {
            return Cow::Borrowed(obj);
        }
        let mut obj = obj.clone();
        pad(self.root(), &mut obj);
        Cow::Owned(obj)
    }

    /// Fields of an object that its type does not have (`spec.containers[0].imagee`), sorted: what `fieldValidation`
    /// warns of or refuses. Custom resources: see [`StructuralSchema::prune`], which also removes them; here they,
    /// like unknown kinds, have none.
    pub fn unknown_fields(&self, obj: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        if !self.custom {
            collect_unknown(self.root(), obj, "", &mut unknown);
        }
        unknown.sort();
        unknown
    }

    /// The place of the whole object.
    pub(super) fn root(&self) -> Place<'_> {
        Place::new(self.schema.as_deref())
    }
}

/// Fields that are structs and not pointers in Kubernetes' Go types.
const STRUCTS: [&str; 9] = [
    "metadata",
    "spec",
    "status",
    "template",
    "jobTemplate",
    "strategy",
    "updateStrategy",
    "source",
    "involvedObject",
];

fn pad(place: Place<'_>, value: &mut Value) {
    let Value::Object(map) = value else { return };
    for name in STRUCTS.into_iter().filter(|name| place.declares(name)) {
        let field = map.entry(name).or_insert_with(|| Value::Object(Map::new()));
        pad(place.field(name), field);
    }
    if place.declares("creationTimestamp") {
        map.entry("creationTimestamp").or_insert(Value::Null);
    }
    for name in place.required_lists() {
        map.entry(name).or_insert(Value::Null);
    }
}

fn collect_unknown(place: Place<'_>, value: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, field) in map {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if place.has_fields() && !place.declares(name) {
                    unknown.push(below);
                } else {
                    collect_unknown(place.field(name), field, &below, unknown);
                }
            }
        }
        Value::Array(list) => {
            for (i, item) in list.iter().enumerate() {
                collect_unknown(place.item(), item, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

/// The schema of a whole custom object with the standard `metadata` put in.
pub(super) fn with_object_meta(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Value::Object(map) = &mut schema else { return json!({"type": "object"}) };
    let fields = map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(fields) = fields {
        fields.insert("metadata".into(), reference(OBJECT_META));
        for name in ["apiVersion", "kind"] {
            fields.entry(name).or_insert_with(|| json!({"type": "string"}));
        }
    }
    schema
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// How a list merges in server-side apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListKind<'a> {
    /// As a whole.
    Atomic,
    /// By value.
    Set,
    /// By these keys.
    Map(Vec<&'a str>),
}

/// A place in a type: the schema of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The schema as the field declares it: extensions stand beside a `$ref`.
    outer: Option<&'a Value>,
    /// The schema behind the reference.
    inner: Option<&'a Value>,
}

impl<'a> Place<'a> {
    fn new(outer: Option<&'a Value>) -> Self {
        let name = outer.and_then(|s| s.get("$ref")).and_then(Value::as_str);
        let inner = match name.and_then(|n| n.strip_prefix("#/definitions/")) {
            Some(name) => BUILT_INS.definitions.get(name),
            None => outer,
        };
        Self { outer, inner }
    }

    fn keyword(self, key: &str) -> Option<&'a Value> {
        self.outer.and_then(|s| s.get(key)).or_else(|| self.inner.and_then(|s| s.get(key)))
    }

    fn text(self, key: &str) -> Option<&'a str> {
        self.keyword(key).and_then(Value::as_str)
    }

    /// Whether the type declares this field by name (and not as an entry of a map).
    pub(super) fn declares(self, name: &str) -> bool {
        self.property(name).is_some()
    }

    fn property(self, name: &str) -> Option<&'a Value> {
        self.inner?.get("properties")?.get(name)
    }

    /// The place of a field or of a map's entry.
    pub(super) fn field(self, name: &str) -> Self {
        let entries = || self.inner.and_then(|s| s.get("additionalProperties")).filter(|s| s.is_object());
        Self::new(self.property(name).or_else(entries))
    }

    /// The place of a list's items.
    pub(super) fn item(self) -> Self {
        Self::new(self.inner.and_then(|s| s.get("items")))
    }

    /// The lists that an object here must have.
    fn required_lists(self) -> impl Iterator<Item = &'a str> {
        let names = self.inner.and_then(|s| s.get("required")).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.filter(move |name| self.field(name).text("type") == Some("array"))
    }

    /// Whether an object here has declared fields and no others.
    fn has_fields(self) -> bool {
        self.inner.is_some_and(|s| s.get("properties").is_some() && s.get("additionalProperties").is_none())
    }

    /// Whether the type says what an object or a list here holds.
    pub(super) fn is_typed(self) -> bool {
        let has = |key: &str| self.inner.is_some_and(|s| s.get(key).is_some_and(Value::is_object));
        has("properties") || has("additionalProperties") || has("items")
    }

    /// Whether an object here is owned as a whole.
    pub(super) fn is_atomic_map(self) -> bool {
        self.text("x-kubernetes-map-type") == Some("atomic")
    }

    /// How a list here merges in server-side apply.
    pub(super) fn list_kind(self) -> ListKind<'a> {
        match self.text("x-kubernetes-list-type") {
            Some("set") => ListKind::Set,
            Some("map") => {
                let keys = self.keyword("x-kubernetes-list-map-keys").and_then(Value::as_array);
                ListKind::Map(keys.map(|k| k.iter().filter_map(Value::as_str).collect()).unwrap_or_default())
            }
            _ => ListKind::Atomic,
        }
    }

    /// The default of a value here.
    pub(super) fn default_value(self) -> Option<&'a Value> {
        self.keyword("default")
    }

    /// `x-kubernetes-patch-strategy`, split at the comma.
    pub(super) fn has_strategy(self, strategy: &str) -> bool {
        self.text("x-kubernetes-patch-strategy").is_some_and(|all| all.split(',').any(|s| s == strategy))
    }

    /// `x-kubernetes-patch-merge-key`.
    pub(super) fn merge_key(self) -> Option<&'a str> {
        self.text("x-kubernetes-patch-merge-key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_of_built_in_kinds() {
        let pod = Shape::built_in(&GroupVersionKind::gvk("", "v1", "Pod"));
        let obj = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"any": "thing"}, "nam": 1},
            "spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "c", "imagee": "x", "resources": {"limits": {"cpu": 1}}}]}, "x": 1});
        assert_eq!(pod.unknown_fields(&obj), ["metadata.nam", "spec.containers[0].imagee", "x"]);
        let crd =
            Shape::built_in(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
        let obj = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"default": {"z": 1}, "enum": [{"q": 1}], "typ": "x"}}}}}]}});
        assert_eq!(crd.unknown_fields(&obj), ["spec.versions[0].schema.openAPIV3Schema.properties.a.typ"]);
    }
}
