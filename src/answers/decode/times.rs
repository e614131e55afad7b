//! Times that the API server takes and Rust's calendar does not have: after 9999-12-30T22:00:00Z, such as the popular
//! 9999-12-31T23:59:59Z.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The time that a text says; the last moment of the calendar if the calendar does not have it.
pub(super) fn nearest(text: &str) -> Time {
    Time(text.parse().unwrap_or(Timestamp::MAX))
}

/// Decodes a time that anybody may have written, into a field with a default: a time that cannot be read is unknown.
pub fn known_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Time))
}

/// The part with each time that Rust's calendar does not have replaced by the last moment of that calendar. `None` if
/// there is no such time, or if the part nests too deep to look.
pub(super) fn tame(part: &RawValue) -> Option<Box<RawValue>> {
    let mut value: Value = serde_json::from_str(part.get()).ok()?;
    if !tame_in(&mut value) {
        return None;
    }
    serde_json::value::to_raw_value(&value).ok()
}

/// Whether there was such a time. The depth is bounded, because the value was decoded.
fn tame_in(value: &mut Value) -> bool {
    match value {
        Value::Array(all) => all.iter_mut().fold(false, |found, value| tame_in(value) | found),
        Value::Object(all) => all.values_mut().fold(false, |found, value| tame_in(value) | found),
        Value::String(text) if is_beyond(text) => {
            // A text that the type's own fields of time take.
            "9999-12-30T22:00:00Z".clone_into(text);
            true
        }
        _ => false,
    }
}

/// Whether a text is a time of RFC 3339, by its form, that the calendar does not have.
fn is_beyond(text: &str) -> bool {
    let form = text.bytes().zip("0000-00-00T00:00:00".bytes());
    let is_time = text.len() >= 20
        && text.len() <= 40
        && form
            .into_iter()
            .all(|(byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form });
    is_time && text.parse::<Timestamp>().is_err()
}
