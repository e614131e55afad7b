//! Pruning: drops fields that the schema does not have, except in objects with `x-kubernetes-preserve-unknown-fields`.

use serde_json::Value;

use super::node::Node;

/// The fields that every object and every embedded resource has.
const TYPE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops unknown fields, and returns their paths, sorted.
pub(super) fn prune(root: &Node, value: &mut Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), dropped: Vec::new() };
    walk.value(root, value, true);
    walk.dropped.sort();
    walk.dropped
}

struct Walk {
    path: String,
    dropped: Vec<String>,
}

impl Walk {
    fn value(&mut self, node: &Node, value: &mut Value, resource: bool) {
        match value {
            Value::Object(map) => {
                let resource = resource || node.embedded_resource;
                map.retain(|name, _| {
                    let known = node.preserve_unknown
                        || node.properties.contains_key(name)
                        || node.additional.is_some()
                        || (resource && TYPE_FIELDS.contains(&name.as_str()));
                    if !known {
                        self.dropped.push(join(&self.path, name));
                    }
                    known
                });
                for (name, field) in map.iter_mut() {
                    let own = resource && TYPE_FIELDS.contains(&name.as_str());
                    let Some(child) = node.field(name).filter(|_| !own) else { continue };
                    let below = join(&self.path, name);
                    self.below(below, |walk| walk.value(child, field, false));
                }
            }
            Value::Array(list) => {
                let Some(child) = &node.items else { return };
                for (i, item) in list.iter_mut().enumerate() {
                    let below = format!("{}[{i}]", self.path);
                    self.below(below, |walk| walk.value(child, item, false));
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, path: String, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.path, path);
        visit(self);
        self.path = outer;
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
