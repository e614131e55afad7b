//! Sets of slots that change while jobs are matched: a list of few slots, or bits for many.
//!
//! A match changes what is left of a partitionable slot, and so with which slots it shares values. Each change must
//! cost little, even where 100,000 slots share a value.

use super::bits::Bits;

/// The most slots that are kept as a list.
const FEW: usize = 512;

/// Slots that have something in common.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// In ascending order.
    Few(Vec<u32>),
    Many {
        bits: Bits,
        count: usize,
    },
}

impl Default for Members {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Members {
    pub(super) fn insert(&mut self, slot: u32) {
        match self {
            Self::Few(list) => {
                if let Err(place) = list.binary_search(&slot) {
                    list.insert(place, slot);
                }
                if list.len() > FEW {
                    let mut bits = Bits::default();
                    bits.extend(list);
                    *self = Self::Many { count: list.len(), bits };
                }
            }
            Self::Many { bits, count } => {
                if !bits.contains(slot) {
                    bits.insert(slot);
                    *count += 1;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Self::Few(list) => {
                if let Ok(place) = list.binary_search(&slot) {
                    list.remove(place);
                }
            }
            Self::Many { bits, count } => {
                if bits.contains(slot) {
                    bits.remove(slot);
                    *count -= 1;
                }
                // The list comes back at half the number only, so that one slot that comes and goes does not convert
                // the set each time.
                if *count < FEW / 2 {
                    *self = Self::Few(bits.iter().collect());
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(list) => list.is_empty(),
            Self::Many { count, .. } => *count == 0,
        }
    }

    /// The lowest slot of the set; `None` if the set is empty.
    pub(super) fn any(&self) -> Option<u32> {
        match self {
            Self::Few(list) => list.first().copied(),
            Self::Many { bits, .. } => bits.iter().next(),
        }
    }

    /// Removes these slots from a set.
    pub(super) fn take_from(&self, set: &mut Bits) {
        match self {
            Self::Few(list) => set.remove_all(list),
            Self::Many { bits, .. } => set.drop_all(bits),
        }
    }

    /// Adds these slots to a set.
    pub(super) fn add_to(&self, set: &mut Bits) {
        match self {
            Self::Few(list) => set.extend(list),
            Self::Many { bits, .. } => set.add_all(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A set has the same slots as a `BTreeSet`, whatever slots are added and removed.
    #[test]
    fn a_set_whatever_its_size() {
        let (mut members, mut model) = (Members::default(), BTreeSet::new());
        let mut state = 7_u32;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 16) % 3000;
            // The set grows in the first half and shrinks in the second.
            let grows = (state >> 8) % 8 < if step < 10_000 { 6 } else { 1 };
            if grows {
                members.insert(slot);
                model.insert(slot);
            } else {
                members.remove(slot);
                model.remove(&slot);
            }
            assert_eq!(members.is_empty(), model.is_empty());
            assert_eq!(members.any(), model.first().copied());
            if step % 500 == 0 {
                let (mut all, mut rest) = (Bits::default(), Bits::default());
                members.add_to(&mut all);
                (0..3000).for_each(|slot| rest.insert(slot));
                members.take_from(&mut rest);
                assert!(all.iter().eq(model.iter().copied()));
                assert!(rest.iter().eq((0..3000).filter(|slot| !model.contains(slot))));
            }
        }
        assert!(model.len() < FEW, "both forms were met");
    }
}
