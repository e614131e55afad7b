//! A pool with Negotiators, for the tests of kinds.

use serde_json::{Value, json};

use super::{Rendered, negotiator, render};
use model::pool::{Document, Event, Pool, Time};

/// The time of everything that is seen.
pub(super) const NOW: i64 = 1_700_000_000;

/// A pool whose start is complete, with Negotiators of these names and specs.
pub(super) fn pool(specs: &[(&str, Value)]) -> Pool {
    let mut pool = Pool::default();
    for (name, spec) in specs {
        see(&mut pool, name, spec);
    }
    pool.apply(Event::Synced, Time::from_secs(NOW));
    pool
}

/// Tells the pool of a Negotiator.
fn see(pool: &mut Pool, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "Negotiator",
                        "metadata": {"name": name, "uid": name}, "spec": spec});
    let object = serde_json::from_value(object).unwrap();
    pool.apply(Event::Negotiator(negotiator::facts(&object)), Time::from_secs(NOW));
}

/// The status that is written of a document.
pub(super) fn status(pool: &Pool, document: &Document) -> Value {
    match render(pool, document, &Value::Null, Time::from_secs(NOW)) {
        Rendered::Status(status) | Rendered::Object { status, .. } => status,
        other => panic!("{other:?}"),
    }
}
