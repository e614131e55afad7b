//! Objects from raw JSON, as the API server would send them.

use answers::{Decode, Item};
use kube::core::ObjectList;

/// Decodes a text as an object in a list, between two objects that anybody can decode. `None` if the text is no JSON,
/// or if the object cannot be decoded.
///
/// # Panics
/// When the text keeps the list, or another object in it, from being decoded.
pub fn among_others<T: Decode + Clone>(text: &str) -> Option<T> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let other = r#"{"metadata":{"name":"o","namespace":"ns","uid":"u"},"spec":{"count":1,"template":{}}}"#;
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{other},{text},{other}]}}"#);
    let found: ObjectList<Item<T>> = serde_json::from_str(&list).expect("a list of JSON is a list");
    let mut items = found.items.into_iter().map(Item::object);
    let (before, object, after) = (items.next(), items.next(), items.next());
    assert!(matches!((before, after), (Some(Ok(_)), Some(Ok(_)))), "the others are decoded");
    object?.ok()
}
