//! Sets of proc numbers, kept and written as ranges: `0-4,7`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::RangeInclusive;

use thiserror::Error;

/// A set of numbers, as ranges that neither touch nor overlap. A million procs in sequence cost one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The first number of each range, with the last.
    spans: BTreeMap<u32, u32>,
}

/// A text that is no list of ranges.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a list of ranges; they read 0-4,7")]
pub struct BadRanges(String);

impl Ranges {
    /// The numbers from 0 up to but not including `end`.
    pub fn up_to(end: u32) -> Self {
        let mut spans = BTreeMap::new();
        if let Some(last) = end.checked_sub(1) {
            spans.insert(0, last);
        }
        Self { spans }
    }

    /// The set of one number.
    pub fn of(n: u32) -> Self {
        Self { spans: BTreeMap::from([(n, n)]) }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many numbers there are.
    pub fn len(&self) -> u64 {
        self.spans.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Whether `n` is in the set.
    pub fn contains(&self, n: u32) -> bool {
        self.end_of(n).is_some()
    }

    /// Adds `n`. False if `n` was in the set already.
    pub fn insert(&mut self, n: u32) -> bool {
        if self.contains(n) {
            return false;
        }
        let below = self.spans.range(..n).next_back().map(|(first, last)| (*first, *last));
        let joined = below.filter(|(_, last)| last.checked_add(1) == Some(n)).map_or(n, |(first, _)| first);
        let above = n.checked_add(1).and_then(|next| self.spans.remove(&next));
        self.spans.insert(joined, above.unwrap_or(n));
        true
    }

    /// Adds all numbers of a range. The cost depends on the number of ranges, and not of numbers.
    pub fn insert_all(&mut self, range: RangeInclusive<u32>) {
        let (mut first, mut last) = range.into_inner();
        if first > last {
            return;
        }
        // Ranges that overlap the new one, or touch it, become part of it.
        let touches = last.saturating_add(1);
        while let Some((start, end)) = self.spans.range(..=touches).next_back().map(|(f, l)| (*f, *l)) {
            if end.saturating_add(1) < first {
                break;
            }
            self.spans.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        self.spans.insert(first, last);
    }

    /// Removes all numbers of another set. The cost depends on the number of ranges, and not of numbers.
    pub fn remove_all(&mut self, other: &Self) {
        for (first, last) in &other.spans {
            while let Some((start, end)) = self.spans.range(..=*last).next_back().map(|(f, l)| (*f, *l)) {
                if end < *first {
                    break;
                }
                self.spans.remove(&start);
                if let Some(after) = last.checked_add(1).filter(|after| *after <= end) {
                    self.spans.insert(after, end);
                }
                if let Some(before) = first.checked_sub(1).filter(|before| *before >= start) {
                    self.spans.insert(start, before);
                }
            }
        }
    }

    /// The ranges, in order.
    pub(super) fn spans(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        self.spans.iter().map(|(first, last)| *first..=*last)
    }

    /// Whether all numbers are below `end`.
    pub fn is_below(&self, end: u32) -> bool {
        self.spans.last_key_value().is_none_or(|(_, last)| *last < end)
    }

    /// Removes `n`. False if `n` was not in the set.
    pub fn remove(&mut self, n: u32) -> bool {
        let Some((first, last)) = self.spans.range(..=n).next_back().map(|(f, l)| (*f, *l)) else {
            return false;
        };
        if last < n {
            return false;
        }
        self.spans.remove(&first);
        if let Some(before) = n.checked_sub(1).filter(|before| *before >= first) {
            self.spans.insert(first, before);
        }
        if let Some(after) = n.checked_add(1).filter(|after| *after <= last) {
            self.spans.insert(after, last);
        }
        true
    }

    /// The last number of the range that contains `n`.
    fn end_of(&self, n: u32) -> Option<u32> {
        let (_, last) = self.spans.range(..=n).next_back()?;
        (*last >= n).then_some(*last)
    }

    /// The least number of the set that is not less than `n`.
    fn first_from(&self, n: u32) -> Option<u32> {
        if self.contains(n) { Some(n) } else { self.spans.range(n..).next().map(|(first, _)| *first) }
    }

    /// The least number that is in none of the other sets. The cost depends on the number of ranges, and not of numbers.
    pub(super) fn first_outside(&self, others: &[&Self]) -> Option<u32> {
        let mut n = self.first_from(0)?;
        while let Some(end) = others.iter().filter_map(|other| other.end_of(n)).max() {
            n = self.first_from(end.checked_add(1)?)?;
        }
        Some(n)
    }

    /// The least number that is in the other set, too. The cost depends on the number of ranges, and not of numbers.
    pub(super) fn first_in(&self, other: &Self) -> Option<u32> {
        let mut n = self.first_from(0)?;
        loop {
            let there = other.first_from(n)?;
            n = self.first_from(there)?;
            if n == there {
                return Some(n);
            }
        }
    }

    /// All numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Reads `0-4,7`. An empty text is the empty set.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, BadRanges> {
        let mut set = Self::default();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                return Err(BadRanges(text.to_owned()));
            };
            // The operator writes ranges in order and apart. Anything else was edited by hand, and is not trusted.
            if last < first
                || set.spans.last_key_value().is_some_and(|(_, end)| first <= end.saturating_add(1))
            {
                return Err(BadRanges(text.to_owned()));
            }
            set.spans.insert(first, last);
        }
        Ok(set)
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.spans.iter().enumerate() {
            if at > 0 {
                f.write_char(',')?;
            }
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn written_as_ranges() {
        let mut set = Ranges::default();
        for n in [3, 1, 0, 2, 9, 7] {
            assert!(set.insert(n));
        }
        assert_eq!(set.to_string(), "0-3,7,9");
        assert!(!set.insert(2));
        assert!(set.remove(1));
        assert_eq!(set.to_string(), "0,2-3,7,9");
        assert_eq!(Ranges::up_to(3).to_string(), "0-2");
        assert_eq!(Ranges::up_to(0).to_string(), "");
    }

    #[test]
    fn ranges_may_reach_the_last_number() {
        let mut set = Ranges::parse("5-4294967295").unwrap();
        set.insert_all(0..=4);
        assert_eq!(set.to_string(), "0-4294967295");
        set.remove_all(&Ranges::parse("1,3-4294967295").unwrap());
        assert_eq!((set.to_string().as_str(), set.is_below(2)), ("0,2", false));
    }

    #[test]
    fn hand_edited_nonsense_is_refused() {
        for text in ["x", "1-", "-1", "3-1", "1,1", "1-2,3", "5,1", "1,,2", "4294967296", " 1"] {
            assert_eq!(Ranges::parse(text), Err(BadRanges(text.to_owned())), "{text}");
        }
    }

    fn set(numbers: &BTreeSet<u32>) -> Ranges {
        let mut set = Ranges::default();
        for n in numbers {
            set.insert(*n);
        }
        set
    }

    proptest! {
        #[test]
        fn the_first_of_what_two_sets_share_or_do_not_is_found(
            all in prop::collection::btree_set(0u32..60, 0..60),
            some in prop::collection::btree_set(0u32..60, 0..30),
            more in prop::collection::btree_set(0u32..60, 0..30),
        ) {
            let (ours, some_of, more_of) = (set(&all), set(&some), set(&more));
            prop_assert_eq!(ours.first_in(&some_of), all.intersection(&some).next().copied());
            prop_assert_eq!(ours.first_outside(&[&some_of]), all.difference(&some).next().copied());
            let neither = all.iter().find(|n| !some.contains(n) && !more.contains(n)).copied();
            prop_assert_eq!(ours.first_outside(&[&some_of, &more_of]), neither);
        }

        #[test]
        fn whole_ranges_come_and_go(
            steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u32..12), 0..40),
        ) {
            let (mut ours, mut model) = (Ranges::default(), BTreeSet::new());
            for (add, first, more) in steps {
                let range = first..=first + more;
                if add {
                    model.extend(range.clone());
                    ours.insert_all(range);
                } else {
                    // The range itself, and two numbers in front of it and behind it.
                    let mut gone: BTreeSet<u32> = range.collect();
                    gone.extend([first.saturating_sub(3), first + more + 3]);
                    model.retain(|n| !gone.contains(n));
                    ours.remove_all(&set(&gone));
                }
                prop_assert!(ours.iter().eq(model.iter().copied()));
                prop_assert_eq!(&Ranges::parse(&ours.to_string()).unwrap(), &ours);
                prop_assert!(ours.is_below(52) && ours.is_below(model.last().map_or(0, |last| last + 1)));
            }
        }

        #[test]
        fn behaves_as_a_set(steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let (mut ours, mut model) = (Ranges::default(), BTreeSet::new());
            for (add, n) in steps {
                if add {
                    prop_assert_eq!(ours.insert(n), model.insert(n));
                } else {
                    prop_assert_eq!(ours.remove(n), model.remove(&n));
                }
                prop_assert_eq!(ours.len(), model.len() as u64);
                prop_assert!(ours.iter().eq(model.iter().copied()));
                prop_assert_eq!(&Ranges::parse(&ours.to_string()).unwrap(), &ours);
            }
        }
    }
}
