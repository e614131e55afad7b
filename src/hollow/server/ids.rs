//! Unique ids and generated names.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of uids and of name suffixes. Two sources with the same seed give the same values in the same order.
#[derive(Debug)]
pub(super) struct Ids(AtomicU64);

impl Ids {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self(AtomicU64::new(seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8))))
    }

    /// The next number of the generator `SplitMix64`, whose only state is one atomic counter.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A UUID of version 4.
    pub(super) fn uid(&self) -> String {
        let (high, low) = (self.next(), self.next());
        let high = (high & !0xF000) | 0x4000;
        let low = (low & !(3 << 62)) | (2 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }

    /// Five letters and digits from the set that Kubernetes uses, which has no vowels, so that they make no words.
    pub(super) fn suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        (0..5)
            .filter_map(|_| {
                let n = usize::try_from(bits % 27).ok()?;
                bits /= 27;
                LETTERS.get(n).copied().map(char::from)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_look_like_uuids_and_differ() {
        let ids = Ids::new(Some(1));
        let (a, b) = (ids.uid(), ids.uid());
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(a.chars().nth(14), Some('4'));
        assert!(a.chars().nth(19).is_some_and(|c| "89ab".contains(c)));
        assert_eq!(Ids::new(Some(1)).uid(), a);
        assert_eq!(ids.suffix().len(), 5);
    }
}
