//! Finds the objects of a file that is a stream of JSON objects, as `kubectl apply` reads such a file.

use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// The parts of a text that are read one by one, each with its byte offset. If the text is two or more JSON objects one after
/// another, each is a part. Any other text is one part: a YAML reader finds its documents.
pub(super) fn parts(text: &str) -> Vec<(usize, &str)> {
    json(text).filter(|parts| parts.len() > 1).unwrap_or_else(|| vec![(0, text)])
}

/// The objects of a stream; `None` if the text is something else.
fn json(text: &str) -> Option<Vec<(usize, &str)>> {
    text.trim_start().starts_with('{').then_some(())?;
    let mut stream = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut parts, mut from) = (Vec::new(), 0);
    while let Some(object) = stream.next() {
        object.ok()?;
        let to = stream.byte_offset();
        parts.push((from, text.get(from..to)?));
        from = to;
    }
    Some(parts)
}
