//! A map whose values can also be found by what they are about.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A value of an [`Indexed`] map.
pub(super) trait About {
    /// The subject of a value, such as a machine.
    type Subject: Ord;

    /// All subjects of the value.
    fn subjects(&self) -> impl IntoIterator<Item = Self::Subject>;
}

/// A map whose values can also be found by their subjects. Values are changed by the map's own methods alone, so that the subjects
/// always follow from the values.
#[derive(Clone, Debug)]
pub(super) struct Indexed<K, V: About> {
    values: BTreeMap<K, V>,
    /// The keys of the values that are about each subject.
    about: BTreeMap<V::Subject, BTreeSet<K>>,
}

impl<K, V: About> Default for Indexed<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), about: BTreeMap::new() }
    }
}

impl<K, V: About> Deref for Indexed<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl<K: Clone + Ord, V: About> Indexed<K, V> {
    /// The values that are about a subject, in the order of their keys.
    pub(super) fn about<'s, Q: Ord + ?Sized>(
        &'s self,
        subject: &Q,
    ) -> impl Iterator<Item = (&'s K, &'s V)> + Clone + use<'s, K, V, Q>
    where
        V::Subject: Borrow<Q>,
    {
        let keys = self.about.get(subject).into_iter().flatten();
        keys.filter_map(|key| self.values.get_key_value(key))
    }

    /// Sets the value of a key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        for subject in value.subjects() {
            self.about.entry(subject).or_default().insert(key.clone());
        }
        self.values.insert(key, value);
    }

    /// Removes a key. Returns its value.
    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.values.remove_entry(key)?;
        for subject in value.subjects() {
            if let Some(keys) = self.about.get_mut(&subject) {
                keys.remove::<K>(&key);
                if keys.is_empty() {
                    self.about.remove(&subject);
                }
            }
        }
        Some(value)
    }

    /// Changes the value of a key.
    pub(super) fn edit<Q: Ord + ?Sized, T>(&mut self, key: &Q, edit: impl FnOnce(&mut V) -> T) -> Option<T>
    where
        K: Borrow<Q>,
    {
        let key = self.values.get_key_value(key)?.0.clone();
        let mut value = self.remove::<Q>(key.borrow())?;
        let result = edit(&mut value);
        self.insert(key, value);
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value that is about each digit of its number.
    #[derive(Clone, Copy, Debug)]
    struct Number(u32);

    impl About for Number {
        type Subject = u32;

        fn subjects(&self) -> impl IntoIterator<Item = u32> {
            BTreeSet::from([self.0 / 10, self.0 % 10])
        }
    }

    proptest! {
        #[test]
        fn values_are_found_by_what_they_are_about_however_they_changed(
            steps in prop::collection::vec((0_u8..3, 0_u32..20, 0_u32..100), 0..100)
        ) {
            let mut ours: Indexed<u32, Number> = Indexed::default();
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            for (step, key, number) in steps {
                match step {
                    0 => {
                        ours.insert(key, Number(number));
                        model.insert(key, number);
                    }
                    1 => prop_assert_eq!(ours.remove(&key).map(|value| value.0), model.remove(&key)),
                    _ => {
                        let before = ours.edit(&key, |value| std::mem::replace(&mut value.0, number));
                        let known = model.get_mut(&key).map(|value| std::mem::replace(value, number));
                        prop_assert_eq!(before, known);
                    }
                }
                for digit in 0..10 {
                    let found = ours.about(&digit).map(|(key, value)| (*key, value.0));
                    let all = model.iter().filter(|(_, number)| *number / 10 == digit || *number % 10 == digit);
                    prop_assert!(found.eq(all.map(|(key, number)| (*key, *number))));
                }
            }
            prop_assert!(model.is_empty() || !ours.about.is_empty());
            prop_assert!(ours.about.values().all(|keys| !keys.is_empty()));
        }
    }
}
