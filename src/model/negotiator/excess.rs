//! Finds groups whose quotas add up to more than there is.

use std::collections::BTreeMap;
use std::fmt;

use super::groups::{Quota, Tree};

/// The most that shares may add up to: 1, and the rounding error of decimal fractions.
const WHOLE: f64 = 1.0 + 1e-9;

/// Sibling groups whose quotas add up to more than there is. The negotiator scales such quotas down.
#[derive(Clone, Debug, PartialEq)]
pub struct Excess {
    /// The index of the spec whose quota first makes the sum too large, among the specs that the tree was made of.
    pub spec: usize,
    /// The name of the group around them; none for the pool.
    pub parent: Option<String>,
    /// The sum of the sibling quotas up to and including that spec's, in the order of the specs.
    pub sum: f64,
    /// The static quota of the group around them; none if the quotas are shares, which have to add up to 1.
    pub quota: Option<f64>,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let around =
            self.parent.as_ref().map_or_else(|| "the pool".to_owned(), |name| format!("group {name}"));
        let sum = (self.sum * 1e6).round() / 1e6;
        match self.quota {
            None => write!(f, "the shares of {around} add up to {sum}, more than 1"),
            Some(quota) => {
                write!(f, "the static quotas inside of {around} add up to {sum}, more than its {quota}")
            }
        }
    }
}

impl Tree {
    /// The excesses of the tree, in the order of the specs. Static quotas are compared with a static quota around them, and
    /// shares with 1.
    pub fn excesses(&self) -> Vec<Excess> {
        let mut groups: Vec<_> = self.groups().iter().collect();
        groups.sort_by_key(|group| group.spec);
        let mut sums: BTreeMap<(Option<usize>, bool), f64> = BTreeMap::new();
        let mut found = Vec::new();
        for group in groups {
            let around = group.parent.and_then(|parent| self.groups().get(parent));
            let (amount, quota) = match (group.quota, around.map(|around| around.quota)) {
                (Quota::Dynamic(share), _) => (share, None),
                (Quota::Static(weight), Some(Quota::Static(quota))) => (weight, Some(quota)),
                (Quota::Static(_), _) => continue,
            };
            let sum = sums.entry((group.parent, quota.is_some())).or_default();
            let (limit, before) = (quota.unwrap_or(WHOLE), *sum);
            *sum += amount;
            if before <= limit && *sum > limit {
                let parent = around.map(|around| around.name.clone());
                found.push(Excess { spec: group.spec, parent, sum: *sum, quota });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::GroupSpec;
    use super::*;

    fn told(specs: &[(&str, Quota)]) -> Vec<(usize, String)> {
        let spec = |(name, quota): &(&str, Quota)| GroupSpec {
            name: (*name).to_owned(),
            quota: Some(*quota),
            ..GroupSpec::default()
        };
        let tree = Tree::new(&specs.iter().map(spec).collect::<Vec<_>>());
        tree.excesses().iter().map(|excess| (excess.spec, excess.to_string())).collect()
    }

    #[test]
    fn shares_add_up_to_one_and_static_quotas_to_what_is_around_them() {
        use Quota::{Dynamic, Static};
        for (specs, expected) in [
            (vec![("a", Dynamic(0.5)), ("b", Dynamic(0.5))], None),
            (vec![("a", Dynamic(0.1)), ("b", Dynamic(0.2)), ("c", Dynamic(0.7))], None),
            (
                vec![("a", Dynamic(0.6)), ("b", Dynamic(0.5)), ("c", Dynamic(0.5))],
                Some((1, "the shares of the pool add up to 1.1, more than 1")),
            ),
            (vec![("a", Static(10.0)), ("b", Static(1e9))], None),
            (
                vec![("a.y", Static(7.0)), ("a", Static(10.0)), ("a.x", Static(4.0))],
                Some((2, "the static quotas inside of group a add up to 11, more than its 10")),
            ),
            (vec![("a", Dynamic(0.5)), ("a.x", Static(4.0)), ("a.y", Static(7.0))], None),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(at, text)| (at, text.to_owned())).collect();
            assert_eq!(told(&specs), expected, "{specs:?}");
        }
    }
}
