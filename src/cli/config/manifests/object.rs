//! An object as it is printed.

use serde::Serialize;
use serde_json::{Number, Value};

/// The object, without fields that say nothing, and with whole numbers as people write them.
pub(super) fn object<K: Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    plain(&mut value);
    value
}

fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *number = whole;
            }
        }
        _ => {}
    }
}

/// A number of at most 2⁵³ without a fraction, as an integer.
fn whole(number: f64) -> Option<Number> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "the number is whole, and small enough")]
    (number.fract() == 0.0 && number.abs() <= MOST).then(|| Number::from(number as i64))
}
