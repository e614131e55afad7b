//! An ordered map for large values.

use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
#[cfg(test)]
use std::ops::Index;
use std::ops::RangeBounds;

/// An ordered map that keeps each value in a box.
///
/// A `BTreeMap` keeps its values in nodes of eleven places. A map of one value has a whole node; and if keys are inserted in their
/// order, as a list from the API server is, each node stays half empty. With boxed values an empty place takes the memory of a
/// pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxMap<K, V>(BTreeMap<K, Box<V>>);

impl<K, V> Default for BoxMap<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> BoxMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(Box::as_ref)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key).map(Box::as_mut)
    }

    /// Whether the map has a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Sets the value of a key. Returns the value before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        // A value that is replaced leaves its box to the new one.
        match self.0.entry(key) {
            btree_map::Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut().as_mut(), value)),
            btree_map::Entry::Vacant(entry) => {
                entry.insert(Box::new(value));
                None
            }
        }
    }

    /// Removes a key. Returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).map(|value| *value)
    }

    /// Builds the map anew, with full nodes. A map whose keys came in their order, as those of a list do, has nodes that are half
    /// empty.
    pub fn pack(&mut self) {
        self.0 = std::mem::take(&mut self.0).into_iter().collect();
    }

    /// Keeps those keys and values for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|key, value| keep(key, value));
    }

    /// The keys and values in a range, in the order of the keys.
    pub fn range<R: RangeBounds<K>>(
        &self,
        range: R,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> + use<'_, K, V, R> {
        self.0.range(range).map(|(key, value)| (key, value.as_ref()))
    }

    /// The keys and values in a range, in the order of the keys; the values to be changed.
    pub fn range_mut(&mut self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.0.range_mut(range).map(|(key, value)| (key, value.as_mut()))
    }
}

impl<K, V> BoxMap<K, V> {
    /// How many keys the map has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys and values, in the order of the keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.into_iter()
    }

    /// The keys, in their order.
    pub fn keys(&self) -> btree_map::Keys<'_, K, Box<V>> {
        self.0.keys()
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.values().map(Box::as_ref)
    }
}

/// The keys and values of a [`BoxMap`].
pub type Iter<'a, K, V> =
    std::iter::Map<btree_map::Iter<'a, K, Box<V>>, fn((&'a K, &'a Box<V>)) -> (&'a K, &'a V)>;

impl<'a, K, V> IntoIterator for &'a BoxMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value.as_ref()))
    }
}

#[cfg(test)]
impl<K: Borrow<Q> + Ord, V, Q: Ord + ?Sized> Index<&Q> for BoxMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        &self.0[key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_a_map_in_the_order_of_its_keys() {
        let mut map = BoxMap::default();
        for key in [3, 1, 2] {
            assert_eq!(map.insert(key, key * 10), None);
        }
        assert_eq!(map.insert(2, 21), Some(20));
        *map.get_mut(&3).unwrap() += 1;
        map.range_mut(..2).for_each(|(_, value)| *value += 2);
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&1, &12), (&2, &21), (&3, &31)]);
        assert_eq!(map.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(map.values().rev().copied().collect::<Vec<_>>(), [31, 21, 12]);
        assert_eq!(map.range(2..).map(|(key, _)| *key).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((map.get(&1), map.get(&4), map.contains_key(&1)), (Some(&12), None, true));
        map.retain(|key, _| *key != 3);
        assert_eq!((map.remove(&1), map.remove(&1), map.len(), map.is_empty()), (Some(12), None, 1, false));
    }
}
