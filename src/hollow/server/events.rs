//! The two Event APIs, which serve the same objects: events are stored in the form of the core API, and their fields
//! are renamed for `events.k8s.io`.

use serde_json::Value;

use super::resource::Resource;

/// Field names in the core API, and in `events.k8s.io/v1`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Whether the resource is the Event of `events.k8s.io`, which differs from the stored form.
pub(super) fn is_new_form(res: &Resource) -> bool {
    res.is("events.k8s.io", "Event")
}

/// Converts an event from the form of `events.k8s.io/v1` to the stored form.
pub(super) fn to_stored(event: &mut Value) {
    rename(event, |(old, new)| (new, old));
    super::json::set(event, &["apiVersion"], "v1");
}

/// Converts an event from the stored form to the form of `events.k8s.io/v1`.
pub(super) fn from_stored(event: &mut Value) {
    rename(event, |pair| pair);
    super::json::set(event, &["apiVersion"], "events.k8s.io/v1");
}

fn rename(
    event: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(map) = event.as_object_mut() else { return };
    for (from, to) in NAMES.into_iter().map(direction) {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_and_back() {
        let new = json!({"apiVersion": "events.k8s.io/v1", "note": "n", "regarding": {"name": "x"},
            "reportingController": "c", "action": "a"});
        let mut event = new.clone();
        to_stored(&mut event);
        assert_eq!(
            event,
            json!({"apiVersion": "v1", "message": "n", "involvedObject": {"name": "x"},
                "reportingComponent": "c", "action": "a"})
        );
        from_stored(&mut event);
        assert_eq!(event, new);
    }
}
