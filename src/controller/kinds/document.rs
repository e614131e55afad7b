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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nobody_reads_a_negative_zero() {
        for value in [-0.0, -0.001, std::iter::empty::<f64>().sum::<f64>()] {
            assert_eq!(json!(rounded(value)).to_string(), "0.0");
        }
    }
}
