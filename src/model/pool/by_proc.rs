//! Values of procs, kept by ranges of procs: procs that share a value cost one entry, however many they are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::ranges::Ranges;

/// A value for each of some procs.
#[derive(Clone, Debug, PartialEq)]
pub struct ByProc<T> {
    /// The first proc of each range, with the last and the value. The ranges do not overlap.
    spans: BTreeMap<u32, (u32, T)>,
}

impl<T> Default for ByProc<T> {
    fn default() -> Self {
        Self { spans: BTreeMap::new() }
    }
}

impl<T> ByProc<T> {
    /// Whether no proc has a value.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The value of a proc.
    pub fn of(&self, proc: u32) -> Option<&T> {
        self.span_of(proc).map(|(_, value)| value)
    }

    /// The procs that have values.
    pub fn procs(&self) -> Ranges {
        let mut procs = Ranges::default();
        for (first, (last, _)) in &self.spans {
            procs.insert_all(*first..=*last);
        }
        procs
    }

    /// Each proc with its value, in the order of the procs.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.spans.iter().flat_map(|(first, (last, value))| (*first..=*last).map(move |proc| (proc, value)))
    }

    /// Another value made of each value, for the procs for which there is one.
    pub fn filter_map<U: PartialEq>(self, convert: impl Fn(T) -> Option<U>) -> ByProc<U> {
        let mut all = ByProc::default();
        for (first, (last, value)) in self.spans {
            if let Some(value) = convert(value) {
                all.push(first, last, value);
            }
        }
        all
    }

    fn span_of(&self, proc: u32) -> Option<&(u32, T)> {
        let (_, span) = self.spans.range(..=proc).next_back()?;
        (span.0 >= proc).then_some(span)
    }
}

impl<T: Clone> ByProc<T> {
    /// Gives a value to those of some procs that have none yet.
    pub fn give(&mut self, procs: &Ranges, value: &T) {
        for span in procs.spans() {
            self.give_span(span, value);
        }
    }

    fn give_span(&mut self, span: RangeInclusive<u32>, value: &T) {
        let (mut from, last) = span.into_inner();
        loop {
            let end = if let Some((taken, _)) = self.span_of(from) {
                *taken
            } else {
                let next = self.spans.range(from..=last).next().map(|(next, _)| *next);
                let end = next.and_then(|next| next.checked_sub(1)).unwrap_or(last);
                self.spans.insert(from, (end, value.clone()));
                end
            };
            match end.checked_add(1).filter(|next| *next <= last) {
                Some(next) => from = next,
                None => return,
            }
        }
    }
}

impl<T: PartialEq> ByProc<T> {
    /// Adds a range behind all others. A neighbour with an equal value grows.
    fn push(&mut self, first: u32, last: u32, value: T) {
        match self.spans.last_entry() {
            Some(mut entry) if entry.get().0.checked_add(1) == Some(first) && entry.get().1 == value => {
                entry.get_mut().0 = last;
            }
            _ => _ = self.spans.insert(first, (last, value)),
        }
    }
}

impl<T: PartialEq> FromIterator<(u32, T)> for ByProc<T> {
    fn from_iter<I: IntoIterator<Item = (u32, T)>>(values: I) -> Self {
        let sorted: BTreeMap<u32, T> = values.into_iter().collect();
        let mut all = Self::default();
        for (proc, value) in sorted {
            all.push(proc, proc, value);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_billion_procs_cost_one_entry() {
        let all = Ranges::parse("0-4294967295").unwrap();
        let mut values = ByProc::default();
        values.give(&all, &'x');
        values.give(&all, &'y');
        assert_eq!((values.spans.len(), values.of(u32::MAX), values.procs()), (1, Some(&'x'), all));
    }

    #[test]
    fn neighbours_with_one_value_share_a_range() {
        let values: ByProc<_> = [(4, 'b'), (1, 'a'), (2, 'b'), (0, 'a')].into_iter().collect();
        let spans = |values: ByProc<_>| values.spans.into_iter().collect::<Vec<_>>();
        assert_eq!(spans(values.clone()), [(0, (1, 'a')), (2, (2, 'b')), (4, (4, 'b'))]);
        assert_eq!(spans(values.clone().filter_map(|_| Some('c'))), [(0, (2, 'c')), (4, (4, 'c'))]);
        assert_eq!(
            spans(values.filter_map(|value| (value == 'b').then_some(value))),
            [(2, (2, 'b')), (4, (4, 'b'))]
        );
    }

    proptest! {
        #[test]
        fn the_first_value_of_a_proc_counts(
            given in prop::collection::vec((prop::collection::btree_set(0u32..30, 0..12), any::<u8>()), 0..8),
        ) {
            let (mut ours, mut model) = (ByProc::default(), BTreeMap::new());
            for (numbers, value) in given {
                let mut procs = Ranges::default();
                for proc in numbers {
                    procs.insert(proc);
                    model.entry(proc).or_insert(value);
                }
                ours.give(&procs, &value);
            }
            prop_assert!(ours.iter().map(|(proc, value)| (proc, *value)).eq(model.clone()));
            prop_assert!(ours.procs().iter().eq(model.keys().copied()));
            prop_assert!((0..30).all(|proc| ours.of(proc) == model.get(&proc)));
        }
    }
}
