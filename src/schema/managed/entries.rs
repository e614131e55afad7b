//! Reads and writes `metadata.managedFields`, and limits the number of updaters in it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Writer;
use super::set::Set;

/// The most updaters of an object. Beyond this number the oldest are merged into one.
const MAX_UPDATERS: usize = 10;
/// The name of the manager into which the oldest updaters are merged.
const ANCIENT: &str = "ancient-changes";

/// An owner of fields. As in Kubernetes, updaters with different `apiVersion`s are different managers, and appliers are
/// not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) apply: bool,
    pub(super) name: String,
    pub(super) subresource: String,
    pub(super) version: String,
}

impl Manager {
    /// The manager of an apply.
    pub(super) fn applier(writer: &Writer<'_>) -> Self {
        Self {
            apply: true,
            name: writer.manager.to_owned(),
            subresource: writer.subresource.to_owned(),
            version: String::new(),
        }
    }

    /// The manager of any other write.
    pub(super) fn updater(writer: &Writer<'_>, name: &str) -> Self {
        Self {
            apply: false,
            name: name.to_owned(),
            subresource: writer.subresource.to_owned(),
            version: writer.api_version.to_owned(),
        }
    }

    /// The manager as conflicts name it: `"kubectl" using v1`, or without the version if it applies.
    pub(super) fn printed(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.apply {
            text = format!("{text} using {}", self.version);
        }
        text
    }
}

/// The fields that a manager owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Owned {
    pub(super) version: String,
    pub(super) set: Set,
    /// The entry's `time`. Times in RFC 3339 and UTC sort as texts.
    pub(super) time: Option<String>,
}

/// All managers of an object.
pub(super) type Managers = BTreeMap<Manager, Owned>;

/// Reads `metadata.managedFields`. Malformed entries are skipped.
pub(super) fn read(obj: &Value) -> Managers {
    let list = obj.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut managers = Managers::new();
    for entry in list.into_iter().flatten() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let apply = match text("operation").as_str() {
            "Apply" => true,
            "Update" => false,
            _ => continue,
        };
        let Some(fields) = entry.get("fieldsV1").filter(|f| f.is_object()) else { continue };
        let version = text("apiVersion");
        let manager = Manager {
            apply,
            name: text("manager"),
            subresource: text("subresource"),
            version: if apply { String::new() } else { version.clone() },
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        let set = Set::from_fields_v1(fields);
        managers.insert(manager, Owned { version, set, time });
    }
    managers
}

/// Whether the client asks to forget all managers, which it does with `managedFields: [{}]`.
pub(super) fn is_reset(obj: &Value) -> bool {
    obj.pointer("/metadata/managedFields").is_some_and(|list| *list == json!([{}]))
}

/// Writes `metadata.managedFields` in the order of the real server. Removes the field if there are no managers.
pub(super) fn write(obj: &mut Value, managers: &Managers) {
    let mut entries: Vec<(&Manager, &Owned)> =
        managers.iter().filter(|(_, owned)| !owned.set.is_empty()).collect();
    entries.sort_by(|(a, x), (b, y)| {
        let rank = |m: &Manager| u8::from(!m.apply);
        (rank(a), &x.time, &a.name, &x.version, &a.subresource).cmp(&(
            rank(b),
            &y.time,
            &b.name,
            &y.version,
            &b.subresource,
        ))
    });
    let list: Vec<Value> = entries.into_iter().map(|(manager, owned)| entry(manager, owned)).collect();
    let Some(obj) = obj.as_object_mut() else { return };
    if list.is_empty() {
        if let Some(Value::Object(meta)) = obj.get_mut("metadata") {
            meta.remove("managedFields");
        }
        return;
    }
    let meta = obj.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        meta.insert("managedFields".into(), Value::Array(list));
    }
}

fn entry(manager: &Manager, owned: &Owned) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    if !manager.name.is_empty() {
        put("manager", manager.name.as_str().into());
    }
    put("operation", if manager.apply { "Apply" } else { "Update" }.into());
    put("apiVersion", owned.version.as_str().into());
    if let Some(time) = &owned.time {
        put("time", time.as_str().into());
    }
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", owned.set.to_fields_v1());
    if !manager.subresource.is_empty() {
        put("subresource", manager.subresource.as_str().into());
    }
    Value::Object(entry)
}

/// Merges the oldest updaters into one for each version, if there are more than [`MAX_UPDATERS`].
pub(super) fn cap(managers: &mut Managers) {
    let mut updaters: Vec<(Option<String>, Manager)> =
        managers.iter().filter(|(m, _)| !m.apply).map(|(m, owned)| (owned.time.clone(), m.clone())).collect();
    if updaters.len() <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let excess = updaters.len() - MAX_UPDATERS + 1;
    let mut merged: BTreeMap<String, Owned> = BTreeMap::new();
    for (_, manager) in updaters.into_iter().take(excess) {
        let Some(owned) = managers.remove(&manager) else { continue };
        let bucket = merged.remove(&owned.version);
        let set = bucket.map(|b| b.set).unwrap_or_default().union(&owned.set);
        merged.insert(owned.version.clone(), Owned { set, ..owned });
    }
    for (version, owned) in merged {
        let manager = Manager { apply: false, name: ANCIENT.into(), subresource: String::new(), version };
        managers.insert(manager, owned);
    }
}

/// A time as Kubernetes writes it: in UTC and whole seconds.
pub(super) fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The set without the fields that nobody owns: the type, and those of `metadata` that the server sets.
pub(super) fn strip_meta(set: &Set) -> Set {
    const STRIPPED: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let meta =
        Set { member: true, below: STRIPPED.iter().map(|f| (format!("f:{f}"), Set::leaf())).collect() };
    let leaf = |name: &str| (format!("f:{name}"), Set::leaf());
    let below = BTreeMap::from([leaf("apiVersion"), leaf("kind"), ("f:metadata".to_owned(), meta)]);
    set.difference(&Set { member: false, below })
}
