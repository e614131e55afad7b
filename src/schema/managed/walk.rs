//! Walks over typed values: collects the fields of a value, compares two values, merges them, and removes fields.
//!
//! The semantics are those of Kubernetes' structured merge: the walks descend into granular maps and associative lists;
//! scalars, atomic lists and atomic maps are leaves.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{self, Set};
use crate::shape::{ListKind, Place};

/// The differences between two values.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: Set,
    pub(super) modified: Set,
    pub(super) removed: Set,
}

/// How a walk sees a value.
enum View<'v> {
    Leaf,
    Map(&'v Map<String, Value>),
    /// An associative list: its items, each with its path element. In stored objects two items may have the same
    /// element.
    List(Vec<(String, &'v Value)>),
}

fn view<'v>(value: &'v Value, place: Place<'_>) -> View<'v> {
    match value {
        Value::Object(map) if !place.is_atomic_map() => View::Map(map),
        Value::Array(list) => match elements(list, place) {
            Some(items) => View::List(items),
            None => View::Leaf,
        },
        _ => View::Leaf,
    }
}

/// The items of a list with their path elements; `None` if the list is atomic or an item has no keys.
fn elements<'v>(list: &'v [Value], place: Place<'_>) -> Option<Vec<(String, &'v Value)>> {
    let kind = place.list_kind();
    if kind == ListKind::Atomic {
        return None;
    }
    list.iter().map(|item| element(item, &kind, place.item()).map(|e| (e, item))).collect()
}

fn element(item: &Value, kind: &ListKind<'_>, place: Place<'_>) -> Option<String> {
    match kind {
        ListKind::Atomic => None,
        ListKind::Set => (!item.is_object() && !item.is_array()).then(|| set::value(item)),
        ListKind::Map(keys) => {
            let item = item.as_object()?;
            let mut fields = BTreeMap::new();
            for key in keys {
                let value = item.get(*key).or_else(|| place.field(key).default_value());
                if let Some(value) = value.filter(|v| !v.is_object() && !v.is_array()) {
                    fields.insert(*key, value.clone());
                }
            }
            (!fields.is_empty()).then(|| set::key(&fields))
        }
    }
}

/// The fault of the first associative list that has an item without keys or two items with the same keys; `None` if
/// there is no such list.
pub(super) fn bad_list(value: &Value, place: Place<'_>, path: &str) -> Option<String> {
    match value {
        Value::Object(map) if !place.is_atomic_map() => {
            map.iter().find_map(|(name, field)| bad_list(field, place.field(name), &format!("{path}.{name}")))
        }
        Value::Array(list) if place.list_kind() != ListKind::Atomic => {
            let Some(items) = elements(list, place) else {
                let keys =
                    if let ListKind::Map(keys) = place.list_kind() { keys.join(", ") } else { String::new() };
                return Some(format!(
                    "{path}: associative list with keys has an element that omits key field {keys:?}"
                ));
            };
            let mut seen = std::collections::BTreeSet::new();
            for (element, item) in &items {
                if !seen.insert(element) {
                    let printed =
                        Set { below: BTreeMap::from([(element.clone(), Set::leaf())]), member: false };
                    let printed = printed.paths().concat();
                    return Some(format!("{path}: duplicate entries for key {printed}"));
                }
                if let Some(bad) = bad_list(item, place.item(), path) {
                    return Some(bad);
                }
            }
            None
        }
        _ => None,
    }
}

/// The set of the fields of a value: leaves, items of associative lists, and entries of maps whose fields are not
/// declared.
pub(super) fn fields(value: &Value, place: Place<'_>) -> Set {
    match view(value, place) {
        View::Leaf => Set::leaf(),
        View::Map(map) => {
            let mut set = Set::default();
            for (name, field) in map {
                let mut below = fields(field, place.field(name));
                let empty = field.is_null() || field.as_object().is_some_and(Map::is_empty);
                below.member |= empty || !place.declares(name);
                set.put(set::field(name), below);
            }
            set
        }
        View::List(items) => {
            let mut set = Set::default();
            for (element, item) in items {
                let mut below = fields(item, place.item());
                below.member = true;
                set.put(element, below);
            }
            set
        }
    }
}

/// The fields that `new` adds to `old`, changes and removes.
pub(super) fn compare(old: &Value, new: &Value, place: Place<'_>) -> Comparison {
    both(Some(old), Some(new), place)
}

fn both(old: Option<&Value>, new: Option<&Value>, place: Place<'_>) -> Comparison {
    let old_view = old.map(|v| view(v, place));
    let new_view = new.map(|v| view(v, place));
    let mut result = match (&old_view, &new_view) {
        (Some(View::Map(a)), Some(View::Map(b))) if !(a.is_empty() && b.is_empty()) => {
            maps(Some(a), Some(b), place)
        }
        (Some(View::Map(a)), None) if !a.is_empty() => maps(Some(a), None, place),
        (None, Some(View::Map(b))) if !b.is_empty() => maps(None, Some(b), place),
        (Some(View::List(a)), Some(View::List(b))) if !(a.is_empty() && b.is_empty()) => {
            lists(Some(a), Some(b), place)
        }
        (Some(View::List(a)), None) if !a.is_empty() => lists(Some(a), None, place),
        (None, Some(View::List(b))) if !b.is_empty() => lists(None, Some(b), place),
        // Null compares like an empty map or list with a map or list.
        (Some(View::Map(a)), Some(View::Leaf)) if is_null(new) && !a.is_empty() => maps(Some(a), None, place),
        (Some(View::Leaf), Some(View::Map(b))) if is_null(old) && !b.is_empty() => maps(None, Some(b), place),
        (Some(View::List(a)), Some(View::Leaf)) if is_null(new) && !a.is_empty() => {
            lists(Some(a), None, place)
        }
        (Some(View::Leaf), Some(View::List(b))) if is_null(old) && !b.is_empty() => {
            lists(None, Some(b), place)
        }
        (Some(_), Some(_)) => changed(old, new, place),
        _ => Comparison::default(),
    };
    result.added.member |= old.is_none() && new.is_some();
    result.removed.member |= old.is_some() && new.is_none();
    result
}

fn is_null(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_null)
}

/// The differences between two leaves, or between two values of different types.
fn changed(old: Option<&Value>, new: Option<&Value>, place: Place<'_>) -> Comparison {
    let mut result = Comparison::default();
    if old == new {
        return result;
    }
    // The fields below the old value are removed, those below the new value are added, and the value itself is modified.
    if let Some(old) = old.filter(|v| !matches!(view(v, place), View::Leaf)) {
        result.removed = Set { member: false, ..fields(old, place) };
    }
    if let Some(new) = new.filter(|v| !matches!(view(v, place), View::Leaf)) {
        result.added = Set { member: false, ..fields(new, place) };
    }
    result.modified.member = true;
    result
}

fn maps(old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>, place: Place<'_>) -> Comparison {
    let names = old.into_iter().chain(new).flat_map(Map::keys);
    let names: std::collections::BTreeSet<&String> = names.collect();
    let mut result = Comparison::default();
    for name in names {
        let below = both(old.and_then(|m| m.get(name)), new.and_then(|m| m.get(name)), place.field(name));
        result.put(&set::field(name), below);
    }
    result
}

type Items<'v> = Vec<(String, &'v Value)>;

fn lists(old: Option<&Items<'_>>, new: Option<&Items<'_>>, place: Place<'_>) -> Comparison {
    let elements: std::collections::BTreeSet<&String> =
        old.into_iter().chain(new).flatten().map(|(element, _)| element).collect();
    let mut result = Comparison::default();
    for element in elements {
        let find = |items: Option<&Items<'_>>| {
            items
                .into_iter()
                .flatten()
                .filter(|(e, _)| e == element)
                .map(|(_, v)| (*v).clone())
                .collect::<Vec<_>>()
        };
        let (before, after) = (find(old), find(new));
        let below = match (before.as_slice(), after.as_slice()) {
            ([a], [b]) => both(Some(a), Some(b), place.item()),
            ([a], []) => both(Some(a), None, place.item()),
            ([], [b]) => both(None, Some(b), place.item()),
            // A stored object has several items with this element, which are compared as a whole.
            (a, b) => {
                let mut below = Comparison::default();
                below.modified.member = a != b;
                below
            }
        };
        result.put(element, below);
    }
    result
}

impl Comparison {
    fn put(&mut self, element: &str, below: Self) {
        self.added.put(element.to_owned(), below.added);
        self.modified.put(element.to_owned(), below.modified);
        self.removed.put(element.to_owned(), below.removed);
    }
}

/// Merges `applied` into `live`.
pub(super) fn merge(live: &Value, applied: &Value, place: Place<'_>) -> Value {
    match (view(live, place), view(applied, place)) {
        (View::Map(a), View::Map(b)) => {
            let mut result = a.clone();
            for (name, field) in b {
                let merged = match a.get(name) {
                    Some(old) => merge(old, field, place.field(name)),
                    None => field.clone(),
                };
                result.insert(name.clone(), merged);
            }
            Value::Object(result)
        }
        (View::List(a), View::List(b)) => Value::Array(merge_items(&a, &b, place.item())),
        _ => applied.clone(),
    }
}

/// Merges two associative lists. Live items that are not applied keep their place; applied items have the order of the
/// applied list.
fn merge_items(live: &Items<'_>, applied: &Items<'_>, place: Place<'_>) -> Vec<Value> {
    let in_applied = |element: &str| applied.iter().any(|(e, _)| e == element);
    let find_live = |element: &str| live.iter().find(|(e, _)| e == element).map(|(_, v)| *v);
    let mut shared = applied.iter().map(|(e, _)| e).filter(|e| find_live(e).is_some()).peekable();
    let mut result = Vec::new();
    let mut left = live.iter().peekable();
    let mut right = applied.iter().peekable();
    while left.peek().is_some() || right.peek().is_some() {
        if let (Some((l, value)), Some((r, config))) = (left.peek(), right.peek()) {
            if l == r {
                result.push(merge(value, config, place));
                left.next();
                right.next();
                shared.next();
                continue;
            }
            if in_applied(l) && shared.peek().is_some_and(|next| *next != l) {
                left.next();
                continue;
            }
        }
        if let Some((_, value)) = left.next_if(|(l, _)| !in_applied(l)) {
            result.push((*value).clone());
            continue;
        }
        let Some((r, config)) = right.next() else {
            // This live item was merged already, together with its applied item.
            left.next();
            continue;
        };
        result.push(find_live(r).map_or_else(|| (*config).clone(), |value| merge(value, config, place)));
        shared.next_if(|next| *next == r);
    }
    result
}

/// `value` without the fields in `gone`; `None` if `value` was not empty and nothing is left of it.
pub(super) fn remove(value: &Value, gone: &Set, place: Place<'_>) -> Option<Value> {
    match view(value, place) {
        View::Leaf => Some(value.clone()),
        View::Map(map) => {
            let mut result = Map::new();
            for (name, field) in map {
                let kept = match gone.below.get(&set::field(name)) {
                    None => Some(field.clone()),
                    Some(set) if set.member => None,
                    Some(set) => remove(field, set, place.field(name)),
                };
                if let Some(kept) = kept {
                    result.insert(name.clone(), kept);
                }
            }
            (map.is_empty() || !result.is_empty()).then_some(Value::Object(result))
        }
        View::List(items) => {
            let before = items.len();
            let left: Vec<Value> = items
                .into_iter()
                .filter_map(|(element, item)| match gone.below.get(&element) {
                    None => Some(item.clone()),
                    Some(set) if set.member => None,
                    Some(set) => remove(item, set, place.item()),
                })
                .collect();
            (before == 0 || !left.is_empty()).then_some(Value::Array(left))
        }
    }
}

/// Adapts a set to a live value: if the set has a map or a list and nothing below it, the set gets all fields that are
/// below it now.
///
/// The real server does so for lists and maps that have become granular in a newer version of a type. As in the real
/// server, this also affects a manager that owns a list or a map and has lost all of its entries.
pub(super) fn reconcile(set: &Set, live: &Value, place: Place<'_>) -> Set {
    let children: Vec<(String, &Value, Place<'_>)> = match view(live, place) {
        View::Leaf => return set.clone(),
        View::Map(map) => {
            map.iter().map(|(name, field)| (set::field(name), field, place.field(name))).collect()
        }
        View::List(items) => items.into_iter().map(|(element, item)| (element, item, place.item())).collect(),
    };
    let mut result = set.clone();
    for (element, value, inner) in children {
        let Some(below) = result.below.remove(&element) else { continue };
        let below = if below.below.is_empty() && inner.is_typed() {
            Set { member: true, below: fields(value, inner).below }
        } else {
            reconcile(&below, value, inner)
        };
        result.below.insert(element, below);
    }
    result
}

/// The set, extended by every declared field on the way to one of its paths.
pub(super) fn with_named_fields(set: &Set, place: Place<'_>) -> Set {
    let mut result = Set { member: set.member, below: BTreeMap::new() };
    for (element, below) in &set.below {
        let (inner, declared) = match element.strip_prefix("f:") {
            Some(name) => (place.field(name), place.declares(name)),
            None => (place.item(), false),
        };
        let mut below = with_named_fields(below, inner);
        below.member |= declared;
        result.put(element.clone(), below);
    }
    result
}
