//! `$setElementOrder`: the order of the items of a merged list.

use serde_json::Value;

/// The identity of an item in its list: the value of the merge key, or the item itself in a list of scalars.
pub(super) fn identity<'a>(item: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn position(order: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, key)?;
    order.iter().position(|o| identity(o, key) == Some(wanted))
}

/// Sorts the merged items. Items that `order` names have its order. The other items have the order of `live`; each comes
/// before the first named item that it preceded in `live`.
pub(super) fn arrange(merged: Vec<Value>, order: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| position(order, item, key).is_some());
    named.sort_by_key(|item| position(order, item, key));
    others.sort_by_key(|item| position(live, item, key).unwrap_or(usize::MAX));
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        if let Some(at) = position(live, &item, key) {
            while others.peek().and_then(|o| position(live, o, key)).is_some_and(|o| o < at) {
                result.extend(others.next());
            }
        }
        result.push(item);
    }
    result.extend(others);
    result
}
