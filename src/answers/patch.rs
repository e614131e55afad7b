//! JSON merge patches.

use serde_json::{Map, Value};

/// The JSON merge patch (RFC 7396) that makes `new` of `old`: null for fields that are gone. `None` if the two are the same.
#[must_use]
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        // An API server gives 2.0 back as 2.
        let same = old == new || (old.is_number() && new.is_number() && old.as_f64() == new.as_f64());
        return (!same).then(|| new.clone());
    };
    let mut patch = Map::new();
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

    /// A merge patch, applied as RFC 7396 says, makes the new value of the old one.
    #[test]
    fn a_merge_patch_makes_the_new_of_the_old() {
        fn apply(target: &mut Value, patch: &Value) {
            let Value::Object(patch) = patch else { return *target = patch.clone() };
            if !target.is_object() {
                *target = json!({});
            }
            let target = target.as_object_mut().unwrap();
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(key);
                } else {
                    apply(target.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        let values = [
            json!({}),
            json!({"a": 1}),
            json!({"a": {"b": 1, "c": [1, 2]}}),
            json!({"a": {"c": [2]}, "d": "x"}),
            json!({"d": {"e": {"f": true}}}),
        ];
        for from in &values {
            for to in &values {
                let mut made = from.clone();
                if let Some(patch) = merge_patch(from, to) {
                    apply(&mut made, &patch);
                }
                assert_eq!(&made, to, "from {from}");
            }
        }
    }
}
