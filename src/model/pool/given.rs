//! What groups are given in a cycle.

use std::collections::BTreeMap;

/// What a group, or the root, is given in a cycle. All in slot weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allocation {
    /// What its own submitters may use without any surplus.
    pub quota: f64,
    /// What they and all groups below may use without surplus from outside.
    pub subtree_quota: f64,
    /// What its own submitters ask for, what they use included.
    pub requested: f64,
    /// What they are given: of what they ask for as much as the quota and surplus allow.
    pub allocated: f64,
    /// What they may use in all: what they are given, and not less than the quota.
    pub limit: f64,
    /// What they and all groups below may use in all.
    pub subtree_limit: f64,
}

impl Allocation {
    /// What it has beyond its quota.
    pub fn surplus(&self) -> f64 {
        (self.allocated - self.quota).max(0.0)
    }

    /// With what a later round of the same cycle gives: who was allowed more before keeps it.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            allocated: later.allocated,
            limit: self.limit.max(later.limit),
            subtree_limit: self.subtree_limit.max(later.subtree_limit),
            ..self
        }
    }

    /// With what another negotiator gives of its slots.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            quota: self.quota + other.quota,
            subtree_quota: self.subtree_quota + other.subtree_quota,
            requested: self.requested + other.requested,
            allocated: self.allocated + other.allocated,
            limit: self.limit + other.limit,
            subtree_limit: self.subtree_limit + other.subtree_limit,
        }
    }
}

/// What the last cycle gave, for claims to be held against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Those of no group; none before the first cycle with groups.
    pub root: Option<Allocation>,
    /// The groups, by their names in small letters.
    pub groups: BTreeMap<String, Allocation>,
}

impl Given {
    /// With what another negotiator gave of its slots.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.root = match (self.root, other.root) {
            (Some(own), Some(other)) => Some(own.and(other)),
            (own, other) => own.or(other),
        };
        for (name, given) in &other.groups {
            let sum = self.groups.entry(name.clone()).or_default();
            *sum = sum.and(*given);
        }
        self
    }
}
