//! Sets of field paths. The elements of a path are those of `FieldsV1`: `f:name` for a field, `k:{...}` and `v:value`
//! for an item of a list, by keys or by value, `i:0` for an index, and `.` for the value itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::MAX_DEPTH;

/// A set of paths, as a tree of their elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    /// Whether the path to this node is in the set.
    pub(super) member: bool,
    /// The nodes below, by path element.
    pub(super) below: BTreeMap<String, Set>,
}

impl Set {
    /// The set that contains only the path to this node.
    pub(super) fn leaf() -> Self {
        Self { member: true, below: BTreeMap::new() }
    }

    /// Whether the set contains no path.
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.values().all(Self::is_empty)
    }

    /// Adds the paths of `set` below an element.
    pub(super) fn put(&mut self, element: String, set: Self) {
        if set.is_empty() {
            return;
        }
        match self.below.remove(&element) {
            Some(old) => self.below.insert(element, old.union(&set)),
            None => self.below.insert(element, set),
        };
    }

    /// The paths that are in either set.
    pub(super) fn union(mut self, other: &Self) -> Self {
        self.member |= other.member;
        for (element, set) in &other.below {
            let mine = self.below.remove(element).unwrap_or_default();
            self.below.insert(element.clone(), mine.union(set));
        }
        self
    }

    /// The paths that are in both sets.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && other.member, below: BTreeMap::new() };
        for (element, set) in &self.below {
            if let Some(theirs) = other.below.get(element) {
                result.put(element.clone(), set.intersection(theirs));
            }
        }
        result
    }

    /// The paths that are in this set and not in `other`. A path in `other` does not remove the paths below it.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && !other.member, below: BTreeMap::new() };
        for (element, set) in &self.below {
            let left = other.below.get(element).map_or_else(|| set.clone(), |theirs| set.difference(theirs));
            result.put(element.clone(), left);
        }
        result
    }

    /// The paths as the real server prints them: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(String::new(), &mut paths);
        paths
    }

    fn collect(&self, path: String, paths: &mut Vec<String>) {
        for (element, set) in &self.below {
            set.collect(format!("{path}{}", printed(element)), paths);
        }
        if self.member {
            paths.push(path);
        }
    }

    /// Reads `fieldsV1`. Malformed elements are skipped.
    pub(super) fn from_fields_v1(value: &Value) -> Self {
        Self::read(value, 0).0
    }

    fn read(value: &Value, depth: usize) -> (Self, bool) {
        let mut set = Self::default();
        let Some(map) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return (set, false) };
        for (element, child) in map {
            if element == "." {
                set.member = true;
                continue;
            }
            if !["f:", "k:", "v:", "i:"].iter().any(|prefix| element.starts_with(prefix)) {
                continue;
            }
            let (mut below, any) = Self::read(child, depth + 1);
            below.member |= !any;
            set.below.insert(canonical(element), below);
        }
        let any = set.member || !set.below.is_empty();
        (set, any)
    }

    /// Writes `fieldsV1`.
    pub(super) fn to_fields_v1(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.below.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        for (element, set) in &self.below {
            map.insert(element.clone(), set.to_fields_v1());
        }
        Value::Object(map)
    }
}

/// The path element of a field.
pub(super) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// The path element of an item of a list of type `set`.
pub(super) fn value(value: &Value) -> String {
    format!("v:{value}")
}

/// The path element of an item of a list of type `map`. The keys are sorted.
pub(super) fn key(fields: &BTreeMap<&str, Value>) -> String {
    let map: Map<String, Value> = fields.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    format!("k:{}", sorted(Value::Object(map)))
}

/// An element with the keys of `k:` sorted: clients may write them in any order, with or without blanks.
fn canonical(element: &str) -> String {
    match element.strip_prefix("k:").and_then(|json| serde_json::from_str::<Value>(json).ok()) {
        Some(value) => format!("k:{}", sorted(value)),
        None => element.to_owned(),
    }
}

fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}

fn printed(element: &str) -> String {
    let Some((kind, rest)) = element.split_once(':') else { return element.to_owned() };
    match (kind, serde_json::from_str::<Value>(rest)) {
        ("k", Ok(Value::Object(map))) => {
            let keys: Vec<String> = map.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("[{}]", keys.join(","))
        }
        ("v", _) => format!("[={rest}]"),
        ("i", _) => format!("[{rest}]"),
        _ => format!(".{rest}"),
    }
}
