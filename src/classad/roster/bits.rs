//! Sets of slots, with a bit for each slot.

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
}

/// The index of the word that a number's bit is in, and the bit.
fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

impl Bits {
    pub(super) fn insert(&mut self, number: u32) {
        let (word, bit) = place(number);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        let (word, bit) = place(number);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !bit;
        }
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Removes the numbers that the other set lacks.
    pub(super) fn keep(&mut self, other: &Self) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        for (word, other) in self.words.iter_mut().zip(others) {
            *word &= other;
        }
    }

    /// Adds numbers.
    pub(super) fn extend(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.insert(*number);
        }
    }

    /// Removes numbers.
    pub(super) fn remove_all(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.remove(*number);
        }
    }

    /// Adds the numbers of the other set.
    pub(super) fn add_all(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes the numbers of the other set.
    pub(super) fn drop_all(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Whether the two sets have a number in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(word, other)| word & other != 0)
    }

    /// The numbers in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        numbers(self.words.iter().copied())
    }

    /// The numbers in ascending order, of a set that is consumed.
    pub(super) fn into_numbers(self) -> impl Iterator<Item = u32> {
        numbers(self.words.into_iter())
    }
}

fn numbers(mut words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    // The rest of the word that is being read, and the number of the bit after its last.
    let (mut left, mut end) = (0_u64, 0_u32);
    std::iter::from_fn(move || {
        while left == 0 {
            left = words.next()?;
            end += 64;
        }
        let bit = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        Some(end - 64 + bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order() {
        let numbers = [0, 1, 63, 64, 65, 127, 128, 1000];
        let mut bits = Bits::default();
        for number in numbers.iter().rev() {
            bits.insert(*number);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), numbers);
        assert_eq!(bits.len(), numbers.len());
        bits.remove(64);
        bits.remove(5000);
        assert!(!bits.contains(64) && bits.contains(65) && !bits.contains(5000));
        let mut few = Bits::default();
        few.insert(63);
        bits.keep(&few);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [63]);
        assert!(bits.meets(&few));
        bits.keep(&Bits::default());
        assert!(!bits.meets(&few));
        few.drop_all(&few.clone());
        assert!(few.is_empty());
        assert!(bits.is_empty());
    }
}
