//! Timers: for each of many keys the time at which the key is due, with the earliest time first.

use std::collections::{BTreeMap, BTreeSet};

use super::time::Time;

/// A set of timers, with at most one time for each key. The cost of finding the due keys depends on how many keys are
/// due, and hardly on how many times are set.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    order: BTreeSet<(Time, K)>,
    by_key: BTreeMap<K, Time>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { order: BTreeSet::new(), by_key: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Timers<K> {
    /// Sets a key's time, instead of the time set before; with `None`, the key has no time any more.
    pub fn set(&mut self, key: &K, at: Option<Time>) {
        if let Some(before) = self.by_key.remove(key) {
            self.order.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.order.insert((at, key.clone()));
        }
    }

    /// A key's time.
    pub fn get(&self, key: &K) -> Option<Time> {
        self.by_key.get(key).copied()
    }

    /// The first of all times.
    pub fn next(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out the first key whose time has come; of several with the same time, the least.
    pub fn pop_due(&mut self, now: Time) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        let (_, key) = self.order.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// How many keys have a time.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no key has a time.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_time_and_the_first_comes_first() {
        let at = Time::from_secs;
        let mut timers = Timers::default();
        for (key, time) in [("a", 30), ("b", 10), ("c", 20), ("a", 5)] {
            timers.set(&key, Some(at(time)));
        }
        assert_eq!((timers.next(), timers.get(&"a"), timers.get(&"d")), (Some(at(5)), Some(at(5)), None));
        timers.set(&"b", None);
        assert_eq!([19, 20, 20].map(|now| timers.pop_due(at(now))), [Some("a"), Some("c"), None]);
        assert!(timers.is_empty());
    }
}
