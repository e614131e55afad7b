//! Texts of statuses in little memory.

/// Statuses as they usually are: of a Submitter, an HTCJob, a PartitionableSlot and a Slot. Only the memory that a packed status
/// takes depends on them. They never leave the process, and may be changed at any time.
const SAMPLE: &str = include_str!("packed/sample.jsonl");

/// The text of a status, packed: only the parts that differ from usual statuses take memory. The status of a Slot takes about a
/// fifth of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    bytes: Box<[u8]>,
    /// The length of the text, in bytes.
    length: usize,
}

impl Packed {
    /// The text as it was packed. Unpacking does not fail, since only `From` packs.
    pub fn text(&self) -> Vec<u8> {
        lz4_flex::block::decompress_with_dict(&self.bytes, self.length, SAMPLE.as_bytes()).unwrap_or_default()
    }
}

impl From<&str> for Packed {
    fn from(text: &str) -> Self {
        let bytes = lz4_flex::block::compress_with_dict(text.as_bytes(), SAMPLE.as_bytes());
        Self { bytes: bytes.into(), length: text.len() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_usual_status_takes_a_fraction_of_its_text() {
        for line in SAMPLE.lines() {
            assert!(serde_json::from_str::<Value>(line).unwrap().is_object(), "{line}");
            // Another status of the kind differs less: in this one all digits are others.
            let digit = |digit: u32| char::from_digit((digit * 7 + 3) % 10, 10).unwrap();
            let other: String = line.chars().map(|c| c.to_digit(10).map_or(c, digit)).collect();
            let packed = Packed::from(&*other);
            assert!(packed.bytes.len() * 5 < other.len() * 2, "{} of {}", packed.bytes.len(), other.len());
            assert_eq!(packed.text(), other.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn each_text_is_given_back_as_it_was(parts in prop::collection::vec((any::<String>(), 0..SAMPLE.len()), 0..4)) {
            let sampled = |(text, from): &(String, usize)| text.clone() + SAMPLE.get(*from..).unwrap_or_default();
            let text: String = parts.iter().map(sampled).collect();
            prop_assert_eq!(Packed::from(&*text).text(), text.as_bytes());
        }
    }
}
