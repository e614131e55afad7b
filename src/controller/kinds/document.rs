//! Documents of the pool as objects: which object one is, what the object should say, and the patch that makes it say so.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;

use super::ALL;
use crate::cache::ObjectKey;
use model::pool::{Document, Pool, Time};

/// An object as the pool wants it.
#[derive(Debug, PartialEq)]
pub enum Rendered {
    /// Somebody else makes and deletes the object: the operator writes its status.
    Status(Value),
    /// The operator creates the object if it is missing, and writes its status.
    Object {
        /// The object, without status.
        create: Value,
        /// The status.
        status: Value,
    },
    /// The operator deletes the object.
    Absent,
    /// Nothing is to be written.
    Nothing,
}

impl Rendered {
    /// The status of an object that somebody else makes.
    pub(super) fn status<T: Serialize>(status: &T) -> Self {
        serde_json::to_value(status).map_or(Self::Nothing, Self::Status)
    }

    /// An object of the operator's own, and its status.
    pub(super) fn object<K: Serialize, S: Serialize>(create: &K, status: &S) -> Self {
        match (serde_json::to_value(create), serde_json::to_value(status)) {
            (Ok(create), Ok(status)) => Self::Object { create, status },
            _ => Self::Nothing,
        }
    }
}

/// The object into which a document is written; `None` if the pool does not know it any more.
pub fn object_of(pool: &Pool, document: &Document) -> Option<ObjectKey> {
    ALL.iter().filter_map(|kind| kind.status).find_map(|status| (status.object)(pool, document))
}

/// Renders a document as its object should be now. `old` is the status that the object has: a condition that does not
/// change keeps its time.
pub fn render(pool: &Pool, document: &Document, old: &Value, now: Time) -> Rendered {
    let conditions: Vec<Condition> = old
        .get("conditions")
        .and_then(|found| serde_json::from_value(found.clone()).ok())
        .unwrap_or_default();
    let mut kinds = ALL.iter().filter_map(|kind| kind.status);
    kinds.find_map(|status| (status.render)(pool, document, &conditions, now)).unwrap_or(Rendered::Nothing)
}

/// A number of things, as statuses have it.
pub(super) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A number that the pool keeps as 64 bits, as statuses have it.
pub(super) fn size(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Rounds a number to two digits behind the point. People read no more digits, and a rounded number causes fewer
/// writes.
pub(super) fn rounded(value: f64) -> f64 {
    // An empty sum, and a small negative number that is rounded, are -0.0; adding 0.0 makes them 0.
    (value * 100.0).round() / 100.0 + 0.0
}

/// The JSON merge patch that makes `new` of `old`: null for fields that are gone. `None` if the two are the same.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        // An API server gives 2.0 back as 2.
        let same = old == new || (old.is_number() && new.is_number() && old.as_f64() == new.as_f64());
        return (!same).then(|| new.clone());
    };
    let mut patch = serde_json::Map::new();
    for (key, value) in after {
        match before.get(key) {
            None if value.is_null() => {}
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(old) => {
                patch.extend(merge_patch(old, value).map(|changed| (key.clone(), changed)));
            }
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_make_old_into_new() {
        for (old, new, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 1}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1, "y": 3}}), Some(json!({"a": {"y": 3}}))),
            (json!({}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
            (json!({"a": 2}), json!({"a": 2.0}), None),
        ] {
            assert_eq!(merge_patch(&old, &new), patch, "{old} {new}");
        }
    }

    #[test]
    fn nobody_reads_a_negative_zero() {
        for value in [-0.0, -0.001, std::iter::empty::<f64>().sum::<f64>()] {
            assert_eq!(json!(rounded(value)).to_string(), "0.0");
        }
    }

    /// Usage is a sum of spans, and such sums have seventeen digits. A sum that is read back as another number would be
    /// written again at every look at its object.
    #[test]
    fn what_was_written_is_not_written_again() {
        let mut usage = 0.0;
        for span in 1..20_000_u32 {
            usage += f64::from(span % 977) / 1000.0;
            let status = json!({"accumulatedUsage": usage});
            let known = serde_json::from_str(&status.to_string()).unwrap();
            assert_eq!(merge_patch(&known, &status), None, "{usage}");
        }
    }
}
