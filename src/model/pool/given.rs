//! The allocations of a cycle to groups.

use std::collections::BTreeMap;

/// The allocation of a cycle to a group, or to the root. All amounts are slot weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allocation {
    /// The amount that the group's own submitters may use without any surplus.
    pub quota: f64,
    /// The amount that the group's own submitters and all groups inside it may use without surplus from outside.
    pub subtree_quota: f64,
    /// The amount that the group's own submitters use and ask for in addition.
    pub requested: f64,
    /// The amount that the group is given: as much of its request as the quota and surplus allow.
    pub allocated: f64,
    /// The amount that the group's own submitters may use in all: what they are given, and at least the quota.
    pub limit: f64,
    /// The amount that the group's own submitters and all groups inside it may use in all.
    pub subtree_limit: f64,
}

impl Allocation {
    /// The amount that the group is given beyond its quota.
    pub fn surplus(&self) -> f64 {
        (self.allocated - self.quota).max(0.0)
    }

    /// This allocation, continued by a later round of the same cycle: a group that was allowed more before keeps that.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            allocated: later.allocated,
            limit: self.limit.max(later.limit),
            subtree_limit: self.subtree_limit.max(later.subtree_limit),
            ..self
        }
    }

    /// The sum of this allocation and the allocation by another negotiator.
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

/// The allocations of the last cycle to groups. New claims are checked against them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// The allocation of jobs of no group; `None` before the first cycle with groups.
    pub root: Option<Allocation>,
    /// The allocations of groups, by their names in lower case.
    pub groups: BTreeMap<String, Allocation>,
}

impl Given {
    /// The sum of these allocations and those by another negotiator.
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
