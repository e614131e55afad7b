//! The attributes of an ad, in two layers: what many ads have alike, kept once, and what differs.
//!
//! The ads of a cluster's slots have a hundred attributes each, of which a dozen differ from those of another slot. Without layers, the ads
//! of 100,000 slots take 400 MiB.

use std::sync::Arc;

use hashbrown::HashTable;

use super::expr::Expr;
use super::name::Name;

/// Attributes, each with its expression.
type Table = HashTable<(Name, Expr)>;

/// The attributes of an ad.
///
/// Only memory and time depend on the layer that an attribute is in.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    /// The attributes that the common layer lacks, or has with another expression.
    own: Table,
    /// How many of `own` are in the common layer, too.
    replaced: usize,
    /// The layer that other ads have as well; none if the ad shares no layer.
    common: Option<Arc<Common>>,
    /// Names of the common layer that the ad lacks. Never those of `own`.
    lacks: Vec<Name>,
}

/// A layer that several ads share.
#[derive(Default)]
struct Common(Table);

impl Layers {
    /// The number of attributes.
    pub(crate) fn len(&self) -> usize {
        let common = self.common.as_ref().map_or(0, |common| common.0.len());
        (self.own.len() + common).saturating_sub(self.replaced + self.lacks.len())
    }

    /// The attribute with this hash for whose name `is` is true.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&Name) -> bool) -> Option<&(Name, Expr)> {
        self.own.find(hash, |(known, _)| is(known)).or_else(|| self.find_common(hash, is))
    }

    /// As [`Layers::find`], in the common layer, whatever is in `own`.
    fn find_common(&self, hash: u64, is: impl Fn(&Name) -> bool) -> Option<&(Name, Expr)> {
        let found = self.common.as_ref()?.0.find(hash, |(known, _)| is(known))?;
        (!self.lacks.iter().any(is)).then_some(found)
    }

    /// All attributes, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Name, Expr)> {
        let rest = self.common.iter().flat_map(|common| common.0.iter());
        let rest = rest.filter(|(name, _)| !self.has_own(name) && !self.lacks.contains(name));
        self.own.iter().chain(rest)
    }

    fn has_own(&self, name: &Name) -> bool {
        self.own.find(name.hash_code(), |(known, _)| known == name).is_some()
    }

    /// Sets an attribute. An attribute that is there keeps the spelling of its name.
    pub(crate) fn insert(&mut self, name: Name, expr: Expr) {
        let hash = name.hash_code();
        if let Some((_, known)) = self.own.find_mut(hash, |(known, _)| *known == name) {
            *known = expr;
            return;
        }
        let spelled = self.find_common(hash, |known| *known == name).map(|(known, _)| known.clone());
        if spelled.is_some() {
            self.replaced += 1;
        } else if let Some(at) = self.lacks.iter().position(|lacking| *lacking == name) {
            self.lacks.swap_remove(at);
            self.replaced += 1;
        }
        put(&mut self.own, (spelled.unwrap_or(name), expr));
    }

    /// Removes an attribute and returns its expression.
    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(&Name) -> bool) -> Option<Expr> {
        let common = self.find_common(hash, &is).cloned();
        let own = self.own.find_entry(hash, |(known, _)| is(known)).ok().map(|entry| entry.remove().0.1);
        if own.is_some() && common.is_some() {
            self.replaced = self.replaced.saturating_sub(1);
        }
        match common {
            Some((name, expr)) => {
                self.lacks.push(name);
                Some(own.unwrap_or(expr))
            }
            None => own,
        }
    }

    /// Shares memory with the attributes of another ad. If at least half of all attributes are alike, this ad takes what the other has in
    /// common with still others, or else a copy of all that the other has, as its common layer. In any case the two share names and
    /// literals.
    pub(crate) fn share_with(&mut self, other: &Self) {
        let common = other.common.clone().unwrap_or_else(|| Arc::new(Common(other.own.clone())));
        let is_common = |(name, expr): &(Name, Expr)| {
            let there = get(&common.0, name);
            there.is_some_and(|(known, same)| known.as_str() == name.as_str() && expr.is_identical(same))
        };
        let (alike, mut differing): (Vec<_>, Vec<_>) =
            self.iter().map(|entry| shared(entry, other)).partition(is_common);
        let layered = alike.len() * 2 >= common.0.len().max(alike.len() + differing.len());
        let mut next = Self::default();
        if layered {
            let missing = common.0.iter().map(|(name, _)| name);
            next.lacks = missing.filter(|name| self.get(name).is_none()).cloned().collect();
            next.replaced = differing.iter().filter(|(name, _)| get(&common.0, name).is_some()).count();
            next.common = Some(common);
        } else {
            differing.extend(alike);
        }
        next.own.reserve(differing.len(), |(name, _)| name.hash_code());
        for entry in differing {
            put(&mut next.own, entry);
        }
        *self = next;
    }

    fn get(&self, name: &Name) -> Option<&(Name, Expr)> {
        self.find(name.hash_code(), |known| known == name)
    }
}

fn get<'a>(table: &'a Table, name: &Name) -> Option<&'a (Name, Expr)> {
    table.find(name.hash_code(), |(known, _)| known == name)
}

/// Adds an attribute that the table lacks.
fn put(table: &mut Table, entry: (Name, Expr)) {
    table.insert_unique(entry.0.hash_code(), entry, |(name, _)| name.hash_code());
}

/// The attribute, with the name and the literal of another ad where these are the same.
fn shared((name, expr): &(Name, Expr), other: &Layers) -> (Name, Expr) {
    match other.find(name.hash_code(), |known| known.as_str() == name.as_str()) {
        Some((known, same)) => {
            (known.clone(), if expr.is_identical(same) { same.clone() } else { expr.clone() })
        }
        None => (name.clone(), expr.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::{Ad, Expr};

    #[test]
    fn ads_that_share_memory_stay_what_they_were() {
        let first = Ad::new().with("Cpus", 8).with("Machine", "a").with("Load", 0.0).with("Memory", 1024);
        let mut second =
            Ad::new().with("Cpus", 8).with("Machine", "b").with("Load", -0.0).with("MEMORY", 1024);
        second.insert("Rank", Expr::parse("Cpus").unwrap());
        let before = second.to_long();
        second.share_with(&first);
        assert_eq!(second.to_long(), before);
        let shared = |name: &str| first.get(name).unwrap().address() == second.get(name).unwrap().address();
        assert_eq!(["Cpus", "Machine", "Load"].map(shared), [true, false, false]);
    }

    #[test]
    fn an_ad_that_is_mostly_as_another_keeps_what_differs() {
        let mut ads = Vec::<Ad>::new();
        for (slot, lacking) in (1..=3).zip(["A5", "A6", "A7"]) {
            let mut ad = (0..20).map(|n| (format!("A{n}"), Expr::literal(n))).collect::<Ad>();
            ad.set("SlotID", slot);
            ad.remove(lacking);
            if let Some(last) = ads.last() {
                ad.share_with(last);
            }
            ads.push(ad);
        }
        let [_, second, third] = &*ads else { panic!("three ads") };
        // The first ad has no A5, which the second keeps, and has an A6, which the second lacks.
        for ad in [second, third] {
            let layers = ad.layers();
            assert_eq!((layers.own.len(), layers.lacks.len(), layers.replaced), (2, 1, 1), "{ad}");
            assert_eq!(ad.len(), 20);
        }
        let common = |ad: &Ad| ad.layers().common.as_ref().map(|common| std::ptr::from_ref(&**common));
        assert_eq!(common(second), common(third));
    }

    /// A change to an ad.
    #[derive(Clone, Debug)]
    enum Change {
        Set(usize, String, i64),
        Remove(usize, String),
        Copy(usize, usize),
        Share(usize, usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        let name = || "[a-dA-D]";
        let ad = 0..3_usize;
        prop_oneof![
            4 => (ad.clone(), name(), 0..3_i64).prop_map(|(ad, name, value)| Change::Set(ad, name, value)),
            2 => (ad.clone(), name()).prop_map(|(ad, name)| Change::Remove(ad, name)),
            1 => (ad.clone(), ad.clone()).prop_map(|(from, to)| Change::Copy(from, to)),
            3 => (ad.clone(), ad).prop_map(|(one, other)| Change::Share(one, other)),
        ]
    }

    proptest! {
        /// Whatever is shared, an ad is the map that the changes to it make.
        #[test]
        fn an_ad_in_layers_is_the_map_that_it_stands_for(changes in prop::collection::vec(change(), 0..60)) {
            let mut ads = [Ad::new(), Ad::new(), Ad::new()];
            let mut maps: [BTreeMap<String, (String, i64)>; 3] = Default::default();
            for change in changes {
                match change {
                    Change::Set(ad, name, value) => {
                        ads[ad].set(&*name, value);
                        let entry = maps[ad].entry(name.to_ascii_lowercase()).or_insert((name, value));
                        entry.1 = value;
                    }
                    Change::Remove(ad, name) => {
                        let removed = ads[ad].remove(&name).map(|expr| expr.to_string());
                        let known = maps[ad].remove(&name.to_ascii_lowercase());
                        prop_assert_eq!(removed, known.map(|(_, value)| value.to_string()));
                    }
                    Change::Copy(from, to) => {
                        ads[to] = ads[from].clone();
                        maps[to] = maps[from].clone();
                    }
                    Change::Share(one, other) => {
                        let other = ads[other].clone();
                        ads[one].share_with(&other);
                    }
                }
                for (ad, map) in ads.iter().zip(&maps) {
                    let lines: Vec<String> = map.values().map(|(name, value)| format!("{name} = {value}")).collect();
                    let long = ad.to_long();
                    prop_assert_eq!(long.lines().collect::<Vec<_>>(), lines);
                    prop_assert_eq!(ad.len(), map.len());
                    prop_assert_eq!(ad.is_empty(), map.is_empty());
                    for name in ["a", "B", "c", "D"] {
                        let value = map.get(&name.to_ascii_lowercase()).map(|(_, value)| value.to_string());
                        prop_assert_eq!(ad.get(name).map(ToString::to_string), value);
                    }
                    prop_assert_eq!(ad, &map.values().map(|(name, value)| (name.as_str(), Expr::literal(*value))).collect::<Ad>());
                }
            }
        }
    }
}
