//! Decodes objects of the API server one by one. An object that cannot be decoded does not keep the others in its list
//! from being decoded, and messages about it quote nothing from it.
//!
//! Every answer of the API server is decoded as an [`Item`] or as a list of them. An [`Item`] takes any JSON that is
//! syntactically right, so that kube never finds an answer that it cannot decode: kube would log the whole text, with the
//! environment of every container in it. `tests/repository/answers.rs` holds the crate to this.

mod meta;
mod times;

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

pub use self::times::known_time;

/// The longest reason that is told, in characters: reasons come from what others wrote.
const LONGEST_REASON: usize = 200;

/// Why an object cannot be decoded, without what its texts say.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Undecodable(String);

impl Undecodable {
    fn new(error: &serde_json::Error) -> Self {
        Self(short(&unquoted(&error.to_string()), LONGEST_REASON))
    }
}

/// The beginning of a text.
pub fn short(text: &str, longest: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(longest).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// An error's text without the text of the object that serde quotes in it.
fn unquoted(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "string \"";
    const CLOSE: &str = "\", expected";
    let quoted = text.split_once(OPEN).zip(text.rsplit_once(CLOSE));
    quoted.map_or(text.into(), |((before, _), (_, after))| format!("{before}string, expected{after}").into())
}

/// The parts of an object, as their texts: its metadata, already read, and the rest.
pub struct Parts {
    metadata: ObjectMeta,
    slim: Box<RawValue>,
    rest: Vec<(String, Box<RawValue>)>,
}

impl Parts {
    /// The metadata, without `managedFields`.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The text of a part of the object; `null` if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.rest.iter().find(|(name, _)| name == key).map_or("null", |(_, text)| text.get())
    }

    /// The object as a type that is decoded in the ordinary way. The type sees the metadata without `managedFields`.
    ///
    /// # Errors
    /// When the object is not as the type says.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let metadata = ("metadata", &*self.slim);
        let rest = self.rest.iter().map(|(key, value)| (key.as_str(), &**value));
        T::deserialize(MapDeserializer::new(std::iter::once(metadata).chain(rest)))
    }

    /// The same parts, with times that Rust's calendar does not have as the last moment of that calendar. None if no part
    /// has such a time.
    fn with_tame_times(&self) -> Option<Self> {
        let tame = |(key, value): &(String, Box<RawValue>)| Some((key.clone(), times::tame(value)?));
        let found: Vec<_> = self.rest.iter().map(tame).collect();
        found.iter().any(Option::is_some).then(|| Self {
            metadata: self.metadata.clone(),
            slim: self.slim.clone(),
            rest: found
                .into_iter()
                .zip(&self.rest)
                .map(|(tame, as_it_was)| tame.unwrap_or_else(|| as_it_was.clone()))
                .collect(),
        })
    }
}

/// A type that an [`Item`] can be decoded into.
pub trait Decode: Sized {
    /// The kind of the object.
    type Of;

    /// Decodes an object.
    ///
    /// # Errors
    /// When the object is not as the type says.
    fn decode(parts: &Parts) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned> Decode for T {
    type Of = T;

    fn decode(parts: &Parts) -> Result<Self, serde_json::Error> {
        parts.typed()
    }
}

/// An object as the API server gave it: its metadata as far as they can be read, and the object itself if it can be decoded.
/// `managedFields` are not looked at: others decide what they contain, and nothing here needs them.
#[derive(Clone)]
pub struct Item<T> {
    metadata: ObjectMeta,
    object: Result<T, Undecodable>,
}

impl<T> Item<T> {
    /// The metadata, as far as they can be read.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The metadata, as far as they can be read, and the object if it can be decoded.
    pub fn into_parts(self) -> (ObjectMeta, Result<T, Undecodable>) {
        (self.metadata, self.object)
    }

    /// The object.
    ///
    /// # Errors
    /// When the object cannot be decoded.
    pub fn object(self) -> Result<T, Undecodable> {
        self.object
    }
}

impl<T: Decode> Item<T> {
    /// Reads an object from its text.
    fn read(text: &RawValue) -> Self {
        let (metadata, parts) = match serde_json::from_str::<Fields>(text.get()) {
            Ok(fields) => fields.read(),
            Err(error) => (ObjectMeta::default(), Err(Undecodable::new(&error))),
        };
        let object = parts.and_then(|parts| {
            T::decode(&parts).or_else(|error| {
                // Seldom, and so done only then: it costs a tree of the whole object.
                let tame = parts.with_tame_times().and_then(|tame| T::decode(&tame).ok());
                tame.ok_or_else(|| Undecodable::new(&error))
            })
        });
        Self { metadata, object }
    }
}

impl<'de, T: Decode> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Texts are skipped without recursion, however deep they nest.
        Box::<RawValue>::deserialize(deserializer).map(|text| Self::read(&text))
    }
}

impl<T> fmt::Debug for Item<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        out.debug_struct("Item").field("namespace", namespace).field("name", name).finish_non_exhaustive()
    }
}

impl<T: Decode<Of: Resource>> Resource for Item<T> {
    type DynamicType = <T::Of as Resource>::DynamicType;
    type Scope = <T::Of as Resource>::Scope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        T::Of::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        T::Of::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        T::Of::version(of)
    }

    fn api_version(of: &Self::DynamicType) -> Cow<'_, str> {
        T::Of::api_version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        T::Of::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The fields of a JSON object, each as its text.
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// The metadata, and the parts of the object if all of the metadata can be read.
    fn read(mut self) -> (ObjectMeta, Result<Parts, Undecodable>) {
        let found = self.0.iter().position(|(key, _)| key == "metadata");
        let (metadata, wrong) =
            found.map_or_else(Default::default, |at| meta::read(&self.0.swap_remove(at).1));
        let slim = serde_json::value::to_raw_value(&metadata);
        let parts = match (wrong, slim) {
            (Some(wrong), _) => Err(wrong),
            (None, Err(error)) => Err(Undecodable::new(&error)),
            (None, Ok(slim)) => Ok(Parts { metadata: metadata.clone(), slim, rest: self.0 }),
        };
        (metadata, parts)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Fields;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests;
