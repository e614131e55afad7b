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
use std::marker::PhantomData;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

/// The parts of an object: its metadata, already read, and the texts of the rest.
pub struct Parts<'a> {
    metadata: ObjectMeta,
    rest: Vec<Part<'a>>,
}

/// A part of an object beside its metadata.
#[derive(Clone)]
struct Part<'a> {
    key: Cow<'a, str>,
    text: Cow<'a, RawValue>,
}

impl<'a> Parts<'a> {
    /// The metadata, without `managedFields`.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The text of a part of the object; `null` if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.find(key).map_or("null", |part| part.text.get())
    }

    /// A part of the object as a type that is decoded in the ordinary way; the type's default if there is no such part.
    ///
    /// # Errors
    /// When the part is not as the type says.
    pub fn part<T: DeserializeOwned + Default>(&self, key: &str) -> Result<T, serde_json::Error> {
        self.find(key).map_or_else(|| Ok(T::default()), |part| serde_json::from_str(part.text.get()))
    }

    fn find(&self, key: &str) -> Option<&Part<'a>> {
        self.rest.iter().find(|part| part.key == key)
    }

    /// The object as a type that is decoded in the ordinary way. The type sees the metadata without `managedFields`.
    /// The metadata take a detour by way of their text, which [`Self::metadata`] and [`Self::part`] spare.
    ///
    /// # Errors
    /// When the object is not as the type says.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let slim = serde_json::value::to_raw_value(&self.metadata)?;
        let metadata = ("metadata", &*slim);
        let rest = self.rest.iter().map(|part| (&*part.key, &*part.text));
        T::deserialize(MapDeserializer::new(std::iter::once(metadata).chain(rest)))
    }

    /// The same parts, with times that Rust's calendar does not have as the last moment of that calendar. None if no part
    /// has such a time.
    fn with_tame_times(&self) -> Option<Self> {
        let found: Vec<_> = self.rest.iter().map(|part| times::tame(&part.text)).collect();
        found.iter().any(Option::is_some).then(|| {
            let mut rest = self.rest.clone();
            for (part, tame) in rest.iter_mut().zip(found) {
                if let Some(tame) = tame {
                    part.text = Cow::Owned(tame);
                }
            }
            Self { metadata: self.metadata.clone(), rest }
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
    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned> Decode for T {
    type Of = T;

    fn decode(parts: &Parts<'_>) -> Result<Self, serde_json::Error> {
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

fn decoded<T: Decode>(parts: &Parts<'_>) -> Result<T, Undecodable> {
    T::decode(parts).or_else(|error| {
        // Seldom, and so done only then: the look for times costs a tree of the whole object.
        let tame = parts.with_tame_times().and_then(|tame| T::decode(&tame).ok());
        tame.ok_or_else(|| Undecodable::new(&error))
    })
}

impl<'de, T: Decode> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson(PhantomData))
    }
}

impl<'de, T: Decode> FromJson<'de> for Item<T> {
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut metadata, mut rest) = (Fields::Missing, Vec::new());
        while let Some(Key(key)) = map.next_key()? {
            if key == "metadata" {
                metadata = map.next_value()?;
            } else {
                rest.push(Part { key, text: Cow::Borrowed(map.next_value()?) });
            }
        }
        let (metadata, wrong) = meta::read(metadata);
        let parts = Parts { metadata, rest };
        let object = wrong.map_or_else(|| decoded(&parts), Err);
        Ok(Self { metadata: parts.metadata, object })
    }

    fn null() -> Self {
        Self { metadata: ObjectMeta::default(), object: Err(Undecodable("expected an object".to_owned())) }
    }

    fn another() -> Self {
        Self::null()
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

/// A type that any JSON is read as: an error of its kind is no error of the answer.
trait FromJson<'de>: Sized {
    /// Reads a JSON object.
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
    /// Stands for `null`.
    fn null() -> Self;
    /// Stands for JSON that is neither an object nor `null`.
    fn another() -> Self;
}

/// Reads any JSON. The fields of objects are skipped without recursion, however deep they nest.
struct AnyJson<T>(PhantomData<T>);

impl<'de, T: FromJson<'de>> Visitor<'de> for AnyJson<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::another())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::null())
    }

    fn visit_str<E>(self, _: &str) -> Result<T, E> {
        Ok(T::another())
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::another())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::another())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::another())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::another())
    }
}

/// The fields of a JSON object, each as its text.
enum Fields<'a> {
    /// The object has these.
    Known(Vec<(Cow<'a, str>, &'a RawValue)>),
    /// There is no object.
    Missing,
    /// Something else stands where the object should.
    Wrong,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson(PhantomData))
    }
}

impl<'de> FromJson<'de> for Fields<'de> {
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some((Key(key), text)) = map.next_entry()? {
            fields.push((key, text));
        }
        Ok(Self::Known(fields))
    }

    fn null() -> Self {
        Self::Missing
    }

    fn another() -> Self {
        Self::Wrong
    }
}

/// A key of a JSON object: a part of the object's text, unless the key has escaped characters.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests;
