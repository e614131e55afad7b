//! The schema of a pod template: closed, so that the API server prunes what pods do not have, and bounded everywhere.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// The longest text, in characters: an argument or the value of an environment variable may be a script.
const TEXT: u64 = 65_536;
/// The longest value of an annotation: Kubernetes bounds an object's annotations as a whole by this.
const ANNOTATION: u64 = 262_144;
/// The longest quantity, name of a port, or point in time.
const SCALAR: u64 = 128;
/// The longest list.
const LIST: u64 = 1_024;
/// The longest command, in words: jobs are handed lists of files.
const WORDS: u64 = 8_192;
/// The most containers of a kind.
const CONTAINERS: u64 = 64;
/// The most entries of a map.
const ENTRIES: u64 = 1_024;

/// The client library's schema of a pod template, without descriptions and with every list, map and text bounded. With
/// descriptions the schema would be 349 KB of JSON, and the cost of every write grows with it.
pub(super) fn pod_template(_: &mut SchemaGenerator) -> Schema {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let said = settings.into_generator().into_root_schema_for::<PodTemplateSpec>();
    let mut schema = said.to_value();
    // No template may have them: the API server refuses them in a new pod.
    if let Some(pod) = schema.pointer_mut("/properties/spec/properties").and_then(Value::as_object_mut) {
        pod.remove("ephemeralContainers");
    }
    // A closed node is an object, of which every schema can be made.
    Schema::try_from(closed("", &schema)).unwrap_or_else(|_| json_schema!({ "type": "object" }))
}

/// A node of the schema under the name of its field, closed and bounded. A structural schema has nothing but this.
fn closed(field: &str, said: &Value) -> Value {
    let text = |key: &str| said.get(key).and_then(Value::as_str);
    if field == "metadata" {
        return metadata();
    }
    if is_scalar(said) {
        return json!({ "x-kubernetes-int-or-string": true, "maxLength": SCALAR });
    }
    let mut node = Map::new();
    let kind = text("type").unwrap_or("object");
    node.insert("type".to_owned(), kind.into());
    match kind {
        "array" => {
            let bound = match field {
                "containers" | "initContainers" => CONTAINERS,
                "args" | "command" => WORDS,
                _ => LIST,
            };
            node.insert("maxItems".to_owned(), bound.into());
            node.insert("items".to_owned(), said.get("items").map_or(Value::Null, element));
        }
        "string" => {
            node.insert("maxLength".to_owned(), TEXT.into());
        }
        "object" => object(said, &mut node),
        _ => node.extend(text("format").map(|format| ("format".to_owned(), format.into()))),
    }
    Value::Object(node)
}

/// An item of a list, or a value of a map. Some servers of version 1.20 read an empty text as null.
fn element(said: &Value) -> Value {
    let element = closed("", said);
    if element.get("type").is_some_and(|kind| kind == "string") { nullable(element) } else { element }
}

fn nullable(mut node: Value) -> Value {
    if let Some(node) = node.as_object_mut() {
        node.insert("nullable".to_owned(), true.into());
    }
    node
}

/// A quantity, or a number or name.
fn is_scalar(said: &Value) -> bool {
    let flagged = said.get("x-kubernetes-int-or-string").and_then(Value::as_bool).unwrap_or_default();
    flagged || said.get("anyOf").is_some() || said.get("oneOf").is_some()
}

fn object(said: &Value, node: &mut Map<String, Value>) {
    if let Some(values) = said.get("additionalProperties").filter(|values| values.is_object()) {
        node.insert("maxProperties".to_owned(), ENTRIES.into());
        node.insert("additionalProperties".to_owned(), element(values));
    }
    if let Some(fields) = said.get("properties").and_then(Value::as_object) {
        let required = |name: &str| {
            said.get("required")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(|one| one == name))
        };
        let field = |(name, said): (&String, &Value)| {
            let field = closed(name, said);
            // Tools write null for what their values leave empty, and pods may say so, too.
            (name.clone(), if required(name) { field } else { nullable(field) })
        };
        node.insert("properties".to_owned(), fields.iter().map(field).collect::<Map<_, _>>().into());
    }
    if let Some(required) = said.get("required") {
        node.insert("required".to_owned(), required.clone());
    }
}

/// The schema of a template's metadata. Pods get the labels and annotations. Generators of manifests and other kinds' templates
/// have the other fields, which stay so that kubectl does not refuse such a template.
fn metadata() -> Value {
    let name = json!({ "type": "string", "maxLength": 253, "nullable": true });
    let map = |longest: u64| {
        json!({
            "type": "object", "maxProperties": ENTRIES,
            "nullable": true,
            "additionalProperties": { "type": "string", "maxLength": longest, "nullable": true }
        })
    };
    json!({ "type": "object", "properties": {
        "annotations": map(ANNOTATION),
        "creationTimestamp": { "type": "string", "format": "date-time", "maxLength": SCALAR, "nullable": true },
        "finalizers": { "type": "array", "maxItems": LIST, "items": name, "nullable": true },
        "generateName": name,
        "labels": map(TEXT),
        "name": name,
        "namespace": name,
    }})
}
