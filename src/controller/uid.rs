//! Uids and versions of objects, in little memory: the operator keeps those of each object that it watches.

use std::fmt;

use kube::api::ObjectMeta;
use uuid::Uuid;

/// The uid of an object. An API server makes UUIDs, which take no memory of their own here; any other text is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uid(Text<Uuid>);

/// The version of an object. An API server makes growing numbers, which take no memory of their own here; any other text is kept
/// as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Text<u64>);

/// A text. If the text is exactly how a `T` is printed, the `T` is kept instead.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Text<T> {
    Ordinary(T),
    Other(Box<str>),
}

impl Uid {
    /// The uid in an object's metadata; empty if there is none.
    pub fn of(metadata: &ObjectMeta) -> Self {
        metadata.uid.as_deref().unwrap_or_default().into()
    }

    /// Whether there is no uid.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Text::Other(text) if text.is_empty())
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        // A UUID has several forms. An object's uid must be given back as it was.
        let ordinary = |uuid: &Uuid| uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text;
        Self(match Uuid::try_parse(text).ok().filter(ordinary) {
            Some(uuid) => Text::Ordinary(uuid),
            None => Text::Other(text.into()),
        })
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Text::Ordinary(uuid) => write!(f, "{}", uuid.hyphenated()),
            Text::Other(text) => f.write_str(text),
        }
    }
}

impl Version {
    /// The version in an object's metadata; empty if there is none.
    pub fn of(metadata: &ObjectMeta) -> Self {
        metadata.resource_version.as_deref().unwrap_or_default().into()
    }

    /// Whether the version is newer than another. Versions of one resource are growing numbers: Kubernetes guarantees that since
    /// 1.35, and every API server has always done so. If one of the two is not a number, the version that is seen later counts.
    pub const fn is_newer_than(&self, other: &Self) -> bool {
        matches!((&self.0, &other.0), (Text::Ordinary(a), Text::Ordinary(b)) if *a > *b)
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        // A text is kept as a number only if the number is printed as this text: digits, without a leading zero.
        let ordinary =
            text == "0" || (text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0'));
        Self(match text.parse().ok().filter(|_| ordinary) {
            Some(number) => Text::Ordinary(number),
            None => Text::Other(text.into()),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Text::Ordinary(number) => write!(f, "{number}"),
            Text::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_given_back_as_it_was() {
        let usual = "0f3a5a52-6e0c-4d6e-9a57-1d2f3c4b5a69";
        let (upper, braced, bare) = (usual.to_uppercase(), format!("{{{usual}}}"), usual.replace('-', ""));
        for text in [usual, &upper, &braced, &bare, "uid-1", ""] {
            let uid = Uid::from(text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(matches!(uid.0, Text::Ordinary(_)), text == usual, "{text}");
            assert_eq!(uid.is_empty(), text.is_empty());
        }
        for text in
            ["7", "0", "00", "18446744073709551615", "18446744073709551616", "07", "+7", "-7", "a", ""]
        {
            assert_eq!(Version::from(text).to_string(), text);
        }
    }

    #[test]
    fn only_a_greater_number_is_newer() {
        for (a, b, newer) in
            [("10", "9", true), ("9", "10", false), ("9", "9", false), ("x", "9", false), ("10", "x", false)]
        {
            assert_eq!(Version::from(a).is_newer_than(&b.into()), newer, "{a} {b}");
        }
    }
}
