//! Decodes request bodies in Kubernetes' protobuf form, which some kubectl commands send (`create configmap`, `drain`).
//!
//! One generic decoder converts a body to JSON with the help of a table of field numbers (`wire.txt`). Answers are
//! always JSON, which these clients accept too.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::strategy::base64;
use super::time::rfc3339;

/// The content type of a body in this form.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The first bytes of every body.
const MAGIC: &[u8] = b"k8s\0";
/// The deepest nesting of messages that is decoded. Real objects nest less deeply.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is one mark of the table")]
struct Field {
    name: &'static str,
    kind: &'static str,
    repeated: bool,
    map: bool,
    /// The Go field is not a pointer, so that zero means absent.
    drop_zero: bool,
    inline: bool,
}

type Message = HashMap<u64, Field>;

static TABLE: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    let lines = include_str!("wire.txt").lines().filter(|l| !l.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).map(|(name, fields)| (name, message(fields))).collect()
});

fn message(fields: &'static str) -> Message {
    fields.split("; ").filter_map(field).collect()
}

fn field(text: &'static str) -> Option<(u64, Field)> {
    let mut parts = text.split(' ');
    let (number, name, mut kind) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let mut field = Field { name, kind, repeated: false, map: false, drop_zero: false, inline: false };
    loop {
        let flag = match kind.chars().next()? {
            '*' => &mut field.repeated,
            '%' => &mut field.map,
            '!' => &mut field.drop_zero,
            '^' => &mut field.inline,
            _ => break,
        };
        *flag = true;
        kind = kind.get(1..)?;
    }
    field.kind = kind;
    Some((number, field))
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtobufError {
    /// The bytes are not the protobuf form of a Kubernetes object.
    #[error("the body is not a Kubernetes protobuf message")]
    Malformed,
    /// The table does not have this type.
    #[error("{0} has no protobuf form here: send JSON or YAML")]
    UnknownType(String),
}

/// One value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next field; `None` at the end.
    fn next(&mut self) -> Option<Result<(u64, Wire<'a>), ProtobufError>> {
        (!self.0.is_empty()).then(|| self.field().ok_or(ProtobufError::Malformed))
    }

    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let little = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |n, b| (n << 8) | u64::from(*b));
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(little(self.take(8)?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(little(self.take(4)?)),
            _ => return None,
        };
        Some((tag >> 3, wire))
    }
}

/// Decodes a body. Its envelope says which type it has.
pub(super) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let mut envelope = Reader(body.strip_prefix(MAGIC).ok_or(ProtobufError::Malformed)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some(field) = envelope.next() {
        match field? {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some(field) = meta.next() {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = type_name(&api_version, &kind);
    let Value::Object(mut object) = decode_message(&name, raw, 0)? else {
        return Err(ProtobufError::Malformed);
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// The name of a type in the table: `core.Pod` for `v1` and `Pod`.
fn type_name(api_version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.DeleteOptions".to_owned();
    }
    let group = api_version.split_once('/').map_or("core", |(group, _)| group);
    format!("{}.{kind}", group.split('.').next().unwrap_or_default())
}

fn utf8(bytes: &[u8]) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Malformed)
}

fn decode_message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let message = TABLE.get(name).ok_or_else(|| ProtobufError::UnknownType(name.to_owned()))?;
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Malformed);
    }
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some(found) = reader.next() {
        let (number, wire) = found?;
        // A newer client may send fields that the table does not have.
        let Some(field) = message.get(&number) else { continue };
        if field.map {
            let (key, value) = entry(field, &wire, depth)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            super::json::set(map, &[&key], value);
            continue;
        }
        let value = decode_value(field.kind, &wire, depth)?;
        match value {
            Value::Object(inner) if field.inline => object.extend(inner),
            value if field.repeated => {
                if let Value::Array(list) =
                    object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()))
                {
                    list.push(value);
                }
            }
            value if value.is_null() || (field.drop_zero && is_zero(&value)) => {}
            value => {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(Value::Object(object))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_i64() == Some(0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

/// Decodes one entry of a map. In protobuf a map is a list of messages, in which field 1 is the key and 2 the value.
fn entry(field: &Field, wire: &Wire<'_>, depth: usize) -> Result<(String, Value), ProtobufError> {
    let Wire::Bytes(bytes) = wire else { return Err(ProtobufError::Malformed) };
    let (mut key, mut value) = (String::new(), Value::String(String::new()));
    let mut reader = Reader(bytes);
    while let Some(found) = reader.next() {
        match found? {
            (1, Wire::Bytes(text)) => key = utf8(text)?,
            (2, wire) => value = decode_value(field.kind, &wire, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn decode_value(kind: &str, wire: &Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (kind, wire) {
        // Signed integers are encoded in two's complement.
        ("i", Wire::Number(n)) => Value::from(n.cast_signed()),
        ("b", Wire::Number(n)) => Value::Bool(*n != 0),
        ("s", Wire::Bytes(bytes)) => Value::String(utf8(bytes)?),
        ("y", Wire::Bytes(bytes)) => Value::String(base64(bytes)),
        ("T" | "U" | "Q" | "O" | "F", Wire::Bytes(bytes)) => special(kind, bytes)?,
        (name, Wire::Bytes(bytes)) => decode_message(name, bytes, depth + 1)?,
        _ => return Err(ProtobufError::Malformed),
    })
}

/// Decodes types whose JSON form is a single value, such as times and quantities.
fn special(kind: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut numbers, mut text) = ([0_i64; 4], None);
    let mut reader = Reader(bytes);
    while let Some(found) = reader.next() {
        match found? {
            (number, Wire::Number(n)) => {
                if let Some(slot) = usize::try_from(number).ok().and_then(|i| numbers.get_mut(i)) {
                    *slot = n.cast_signed();
                }
            }
            (_, Wire::Bytes(b)) => text = Some(utf8(b)?),
        }
    }
    let [_, first, second, _] = numbers;
    Ok(match kind {
        "T" | "U" if bytes.is_empty() => Value::Null,
        "T" | "U" => {
            let time = Timestamp::new(first, i32::try_from(second).unwrap_or(0));
            let time = time.map_err(|_| ProtobufError::Malformed)?;
            let precise = || time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
            Value::String(if kind == "T" { rfc3339(time) } else { precise() })
        }
        "Q" => Value::String(text.unwrap_or_else(|| "0".to_owned())),
        "F" => text.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default(),
        // IntOrString: field 1 says whether field 2 (an integer) or field 3 (a text) has the value.
        _ if first == 0 => Value::from(second),
        _ => Value::String(text.unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        out.extend_from_slice(content);
        out
    }

    #[test]
    fn an_eviction() {
        let meta = [bytes(1, b"p"), bytes(3, b"default"), bytes(8, b"")].concat();
        let options = [vec![1 << 3, 30], bytes(4, b"Background")].concat();
        let eviction = [bytes(1, &meta), bytes(2, &options)].concat();
        let envelope =
            [bytes(1, &[bytes(1, b"policy/v1"), bytes(2, b"Eviction")].concat()), bytes(2, &eviction)];
        let body = [MAGIC.to_vec(), envelope.concat()].concat();
        let want = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": "p", "namespace": "default"},
            "deleteOptions": {"gracePeriodSeconds": 30, "propagationPolicy": "Background"}});
        assert_eq!(decode(&body), Ok(want));
    }

    #[test]
    fn every_type_in_the_table_is_there() {
        for (name, message) in TABLE.iter() {
            for field in message.values() {
                let plain = matches!(field.kind, "s" | "i" | "b" | "y" | "T" | "U" | "Q" | "O" | "F");
                assert!(plain || TABLE.contains_key(field.kind), "{name}.{}: {}", field.name, field.kind);
            }
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_without_a_panic(garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[MAGIC, &garbage].concat());
            let _ = decode_message("core.Pod", &garbage, 0);
        }
    }
}
