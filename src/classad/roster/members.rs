//! Sets of slots that change while jobs are matched: few as a list, many as bits.
//!
//! A match changes what a partitionable slot has left, and with it which values it shares with others: each change must
//! cost little even where a hundred thousand slots have a value in common.

use super::bits::Bits;

/// As many are kept as a list.
const FEW: usize = 512;

/// Slots that have something in common.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// In order.
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
                // Not at the same number, lest one that comes and goes turn it over each time.
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

    /// One of them.
    pub(super) fn any(&self) -> Option<u32> {
        match self {
            Self::Few(list) => list.first().copied(),
            Self::Many { bits, .. } => bits.iter().next(),
        }
    }

    /// Takes them out of a set.
    pub(super) fn take_from(&self, set: &mut Bits) {
        match self {
            Self::Few(list) => set.remove_all(list),
            Self::Many { bits, .. } => set.drop_all(bits),
        }
    }

    /// Puts them into a set.
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

    /// Whatever comes and goes, it is the set that it should be.
    #[test]
    fn a_set_whatever_its_size() {
        let (mut members, mut model) = (Members::default(), BTreeSet::new());
        let mut state = 7_u32;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 16) % 3000;
            // Grows for the first half, shrinks in the second.
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
