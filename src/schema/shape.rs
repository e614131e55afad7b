//! How the lists and maps of a type merge, from the schema of a CRD or from the table of built-in types.

use std::borrow::Cow;
use std::sync::Arc;

use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::builtin::{BUILT_INS, OBJECT_META};
use super::structural::StructuralSchema;

/// The merge semantics of one type: which of its maps are granular or atomic, and which of its lists are atomic, sets or
/// associative. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    schema: Option<Arc<Value>>,
    custom: bool,
}

impl Shape {
    /// The shape of a built-in type. In a kind that is not known, all maps merge and all lists are atomic.
    pub fn built_in(gvk: &GroupVersionKind) -> Self {
        let name = BUILT_INS.name(&gvk.group, &gvk.version, &gvk.kind);
        Self { schema: name.map(|name| Arc::new(reference(name))), custom: false }
    }

    /// The shape of a custom resource.
    pub fn custom(schema: &StructuralSchema) -> Self {
        Self { schema: Some(Arc::clone(schema.source())), custom: true }
    }

    /// Whether this is a custom resource.
    pub(super) fn is_custom(&self) -> bool {
        self.custom
    }

    /// The object with the empty structs and lists that the real server always writes, added where they are absent, so
    /// that nobody becomes the owner of such a struct by setting a field in it. Custom resources have no such structs.
    pub(super) fn padded<'v>(&self, obj: &'v Value) -> Cow<'v, Value> {
        if self.custom || !obj.is_object() {
            return Cow::Borrowed(obj);
        }
        let mut obj = obj.clone();
        pad(self.root(), &mut obj);
        Cow::Owned(obj)
    }

    /// The place of the whole object.
    pub(super) fn root(&self) -> Place<'_> {
        Place::new(self.schema.as_deref())
    }
}

/// The fields that are structs and not pointers in the Go types of Kubernetes.
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

/// The schema of a whole custom object, with the standard `metadata` added.
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
    /// An apply replaces the list as a whole.
    Atomic,
    /// Items merge by value.
    Set,
    /// Items merge by these keys.
    Map(Vec<&'a str>),
}

/// A place in a type, such as a field or the items of a list, with the schema of the value there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The schema as the field declares it. It may be a `$ref` with extensions beside it.
    outer: Option<&'a Value>,
    /// The schema to which `outer` refers, or `outer` itself.
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

    /// Whether the type declares this field by name, and not as an entry of a map.
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

    /// The fields that are lists and that an object here must have.
    fn required_lists(self) -> impl Iterator<Item = &'a str> {
        let names = self.inner.and_then(|s| s.get("required")).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.filter(move |name| self.field(name).text("type") == Some("array"))
    }

    /// Whether the type says what an object or a list here contains.
    pub(super) fn is_typed(self) -> bool {
        let has = |key: &str| self.inner.is_some_and(|s| s.get(key).is_some_and(Value::is_object));
        has("properties") || has("additionalProperties") || has("items")
    }

    /// Whether a manager owns an object here as a whole.
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

    /// The default of the value here.
    pub(super) fn default_value(self) -> Option<&'a Value> {
        self.keyword("default")
    }

    /// Whether `x-kubernetes-patch-strategy`, a list with commas, has this strategy.
    pub(super) fn has_strategy(self, strategy: &str) -> bool {
        self.text("x-kubernetes-patch-strategy").is_some_and(|all| all.split(',').any(|s| s == strategy))
    }

    /// `x-kubernetes-patch-merge-key`.
    pub(super) fn merge_key(self) -> Option<&'a str> {
        self.text("x-kubernetes-patch-merge-key")
    }
}
