//! The paths of a resource and their operations, for both versions of OpenAPI.

use serde_json::{Map, Value, json};

use super::ResourceDoc;

/// One operation.
pub(super) struct Operation {
    pub(super) path: String,
    pub(super) method: &'static str,
    /// `x-kubernetes-action`.
    action: &'static str,
    /// The names of the path parameters.
    pub(super) place: Vec<&'static str>,
    /// The names and types of the query parameters.
    pub(super) query: Vec<(&'static str, &'static str)>,
    /// Whether the answer is a list.
    pub(super) list: bool,
    /// The media types that the request's body may have.
    pub(super) consumes: Vec<&'static str>,
}

const WRITE: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

/// All operations of a resource.
pub(super) fn operations(resource: &ResourceDoc<'_>) -> Vec<Operation> {
    let base = resource.base();
    let (root, place) = if resource.namespaced {
        (format!("{base}/namespaces/{{namespace}}/{}", resource.plural), vec!["namespace"])
    } else {
        (format!("{base}/{}", resource.plural), vec![])
    };
    let custom = resource.schema.is_some();
    let mut all = collection(&root, &place);
    if resource.namespaced {
        let everywhere = format!("{base}/{}", resource.plural);
        all.extend(collection(&everywhere, &[]).into_iter().filter(|op| op.method == "get"));
    }
    let item = format!("{root}/{{name}}");
    let place = [place, vec!["name"]].concat();
    all.extend(item_operations(&item, &place, custom));
    all.push(operation(&item, "delete", "delete", &place));
    for name in resource.subresources {
        let path = format!("{item}/{name}");
        match *name {
            "binding" | "eviction" | "token" => {
                all.push(Operation {
                    query: WRITE.to_vec(),
                    consumes: vec!["*/*"],
                    ..operation(&path, "post", "post", &place)
                });
            }
            _ => all.extend(item_operations(&path, &place, custom)),
        }
    }
    all
}

fn operation(path: &str, method: &'static str, action: &'static str, place: &[&'static str]) -> Operation {
    Operation {
        path: path.to_owned(),
        method,
        action,
        place: place.to_vec(),
        query: vec![("pretty", "string")],
        list: false,
        consumes: vec![],
    }
}

fn collection(path: &str, place: &[&'static str]) -> Vec<Operation> {
    let query = vec![
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ];
    vec![
        Operation { query, list: true, ..operation(path, "get", "list", place) },
        Operation { query: WRITE.to_vec(), consumes: vec!["*/*"], ..operation(path, "post", "post", place) },
    ]
}

fn item_operations(path: &str, place: &[&'static str], custom: bool) -> Vec<Operation> {
    let mut patches =
        vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    if !custom {
        patches.push("application/strategic-merge-patch+json");
    }
    let mut patch_query = WRITE.to_vec();
    patch_query.push(("force", "boolean"));
    vec![
        operation(path, "get", "get", place),
        Operation { query: WRITE.to_vec(), consumes: vec!["*/*"], ..operation(path, "put", "put", place) },
        Operation { query: patch_query, consumes: patches, ..operation(path, "patch", "patch", place) },
    ]
}

/// The part of an operation that is the same in both versions.
pub(super) fn common(operation: &Operation, resource: &ResourceDoc<'_>) -> Map<String, Value> {
    let id: String =
        operation.path.split(['/', '.', '{', '}', '-']).filter(|p| !p.is_empty()).map(capital).collect();
    let mut map = Map::new();
    map.insert("operationId".into(), format!("{}{id}", operation.action).into());
    map.insert("description".into(), format!("{} {}", operation.action, resource.kind).into());
    map.insert("x-kubernetes-action".into(), operation.action.into());
    map.insert("x-kubernetes-group-version-kind".into(), resource.gvk());
    map
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Adds an operation to `paths`.
pub(super) fn insert(paths: &mut Map<String, Value>, operation: &Operation, body: Map<String, Value>) {
    let item = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
    if let Value::Object(item) = item {
        item.insert(operation.method.to_owned(), Value::Object(body));
    }
}
