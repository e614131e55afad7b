//! The amounts of extended resources.

use std::collections::BTreeMap;

use super::resources::ResourceName;

/// The amounts of extended resources, by name and in the order of the names. Most slots and pods have one or two; there may be a
/// hundred thousand of them, and an entry takes a tenth of the memory that the least map takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtendedResources(Box<[(ResourceName, i64)]>);

impl ExtendedResources {
    /// No amounts.
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<&i64> {
        self.place(name).ok().and_then(|at| self.0.get(at)).map(|(_, amount)| amount)
    }

    /// The amount of a resource, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut i64> {
        let at = self.place(name).ok()?;
        self.0.get_mut(at).map(|(_, amount)| amount)
    }

    /// The name under which a resource is kept, and its amount.
    pub fn get_key_value(&self, name: &str) -> Option<(&ResourceName, &i64)> {
        let at = self.place(name).ok()?;
        self.0.get(at).map(|(name, amount)| (name, amount))
    }

    /// Whether the resource has an amount.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Whether there are no amounts.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the amount of a resource.
    pub fn insert(&mut self, name: ResourceName, amount: i64) {
        match self.place(&name) {
            Ok(at) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    *known = amount;
                }
            }
            Err(at) => {
                let mut all = Vec::with_capacity(self.0.len() + 1);
                all.extend(std::mem::take(&mut self.0));
                all.insert(at, (name, amount));
                self.0 = all.into();
            }
        }
    }

    /// Changes the amount of a resource, which is 0 if the resource had none.
    pub fn change(&mut self, name: &ResourceName, change: impl FnOnce(i64) -> i64) {
        match self.get_mut(name) {
            Some(amount) => *amount = change(*amount),
            None => self.insert(name.clone(), change(0)),
        }
    }

    /// Keeps the amounts for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&ResourceName, &mut i64) -> bool) {
        let mut all = Vec::from(std::mem::take(&mut self.0));
        all.retain_mut(|(name, amount)| keep(name, amount));
        self.0 = all.into();
    }

    /// The names and amounts, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, &i64)> {
        self.0.iter().map(|(name, amount)| (name, amount))
    }

    /// The names and amounts in their order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&ResourceName, &mut i64)> {
        self.0.iter_mut().map(|(name, amount)| (&*name, amount))
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

impl FromIterator<(ResourceName, i64)> for ExtendedResources {
    /// If a resource occurs twice, its last amount counts.
    fn from_iter<I: IntoIterator<Item = (ResourceName, i64)>>(amounts: I) -> Self {
        let by_name: BTreeMap<ResourceName, i64> = amounts.into_iter().collect();
        Self(by_name.into_iter().collect())
    }
}

impl<const N: usize> From<[(ResourceName, i64); N]> for ExtendedResources {
    fn from(amounts: [(ResourceName, i64); N]) -> Self {
        amounts.into_iter().collect()
    }
}

impl Extend<(ResourceName, i64)> for ExtendedResources {
    fn extend<I: IntoIterator<Item = (ResourceName, i64)>>(&mut self, amounts: I) {
        for (name, amount) in amounts {
            self.insert(name, amount);
        }
    }
}

impl IntoIterator for ExtendedResources {
    type Item = (ResourceName, i64);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The amounts of a map that changes in the same way.
        #[test]
        fn amounts_are_a_map(changes in prop::collection::vec(("[a-e]", any::<i64>(), 0..3_u8), 0..30)) {
            let (mut amounts, mut map) = (ExtendedResources::new(), BTreeMap::new());
            for (name, amount, how) in changes {
                let name = ResourceName::from(name.as_str());
                match how {
                    0 => {
                        amounts.insert(name.clone(), amount);
                        map.insert(name, amount);
                    }
                    1 => {
                        amounts.change(&name, |before| before.wrapping_add(amount));
                        let sum: &mut i64 = map.entry(name).or_default();
                        *sum = sum.wrapping_add(amount);
                    }
                    _ => {
                        amounts.retain(|known, _| *known != name);
                        map.remove(&name);
                    }
                }
                prop_assert!(amounts.iter().eq(map.iter()));
                prop_assert_eq!(amounts.get("c"), map.get("c"));
                prop_assert_eq!(amounts.contains_key("c"), map.contains_key("c"));
            }
            prop_assert_eq!(&map.into_iter().collect::<ExtendedResources>(), &amounts);
        }
    }
}
