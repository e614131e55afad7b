//! How much of the pool the groups of a cycle are given, and how much each may therefore use.

use super::cycle::Cycle;
use super::groups::{GroupInput, sum_up};
use super::ledger::Ledger;
use super::surplus::{Sharer, share};
pub use crate::pool::Allocation;

/// The demand of groups, in slot weight, including the slots that they use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// The demand of the submitters of no group.
    pub root: f64,
    /// The demand of each group's own submitters, in the order of [`Cycle::groups`].
    pub groups: Vec<f64>,
}

/// The allocations of the root and of all groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocations {
    /// The root's allocation: for submitters of no group, and in the last turn those of groups with autoregroup.
    pub root: Allocation,
    /// The groups' allocations, in the order of [`Cycle::groups`].
    pub groups: Vec<Allocation>,
}

impl Allocations {
    /// The allocation of a group, or of the root.
    pub fn of(&self, group: Option<usize>) -> Option<&Allocation> {
        group.map_or(Some(&self.root), |group| self.groups.get(group))
    }

    /// Merges these allocations with those of a later round of the same cycle.
    pub(super) fn then(self, later: &Self) -> Self {
        let groups = self.groups.into_iter().zip(&later.groups).map(|(group, later)| group.then(*later));
        Self { root: self.root.then(later.root), groups: groups.collect() }
    }

    /// The most that the own submitters of a group, or of the root, may use in all at this moment: [`Allocation::limit`]. With
    /// `NEGOTIATOR_STRICT_ENFORCE_QUOTA` they may also take no more than the group and each group above it have left.
    pub(super) fn turn_limit(&self, cycle: &Cycle, ledger: &Ledger, group: Option<usize>) -> f64 {
        let limit = self.of(group).map_or(0.0, |allocation| allocation.limit);
        if !cycle.config.strict_enforce_quota {
            return limit;
        }
        let cap = |group: usize| self.groups.get(group).map(|group| group.subtree_limit);
        limit.min(ledger.group_used(group) + ledger.headroom(group, cap))
    }
}

/// Whether any group has autoregroup.
pub(super) fn regroups(groups: &[GroupInput]) -> bool {
    groups.iter().any(|group| group.autoregroup)
}

/// The allocations of the groups in one round if they ask for `demand`: their fair share, including surplus.
pub(super) fn allocate(cycle: &Cycle, demand: &Demand) -> Allocations {
    let groups = &cycle.groups;
    let (root, whole) = (left_by_groups(cycle), !cycle.config.use_slot_weights);
    let asks = |group: usize| demand.groups.get(group).copied().unwrap_or(0.0);
    let root_node = Sharer {
        quota: root,
        subtree_quota: cycle.pool_weight,
        requested: demand.root,
        accepts: true,
        ..Sharer::default()
    };
    let nodes = groups.iter().enumerate().map(|(place, group)| Sharer {
        quota: group.quota,
        subtree_quota: group.subtree_quota,
        requested: asks(place),
        accepts: group.accept_surplus,
        parent: Some(group.parent.map_or(0, |parent| parent + 1)),
    });
    let nodes: Vec<Sharer> = std::iter::once(root_node).chain(nodes).collect();
    let mut allocated = share(&nodes, whole).into_iter();
    let (of_root, of_groups) = (allocated.next().unwrap_or(0.0), allocated.collect::<Vec<f64>>());
    let parents: Vec<Option<usize>> = groups.iter().map(|group| group.parent).collect();
    let below = sum_up(&parents, &of_groups);
    let limit = |allocated: f64, quota: f64| {
        let limit = allocated.max(quota).max(0.0);
        if whole { limit.floor() } else { limit }
    };
    let each = groups.iter().zip(of_groups).zip(below).enumerate();
    let each = each.map(|(place, ((group, allocated), below))| Allocation {
        quota: group.quota,
        subtree_quota: group.subtree_quota,
        requested: asks(place),
        allocated,
        limit: limit(allocated, group.quota),
        subtree_limit: if group.accept_surplus {
            below.max(group.subtree_quota)
        } else {
            group.subtree_quota
        },
    });
    // With autoregroup, the root has the last turn and serves the groups' submitters too: it may use whatever is left.
    let allocated = if regroups(groups) { cycle.pool_weight } else { of_root };
    let quota = root_quota(cycle);
    let root = Allocation {
        quota,
        subtree_quota: cycle.pool_weight,
        requested: demand.root,
        allocated,
        limit: limit(allocated, quota),
        subtree_limit: cycle.pool_weight,
    };
    Allocations { root, groups: each.collect() }
}

/// The quota of the submitters of no group: what the groups' quotas leave of the pool, or the whole pool if any group has autoregroup.
pub(super) fn root_quota(cycle: &Cycle) -> f64 {
    if regroups(&cycle.groups) { cycle.pool_weight } else { left_by_groups(cycle) }
}

/// The slot weight that the groups' quotas leave of the pool.
fn left_by_groups(cycle: &Cycle) -> f64 {
    let tops = cycle.groups.iter().filter(|group| group.parent.is_none());
    (cycle.pool_weight - tops.map(|group| group.subtree_quota).sum::<f64>()).max(0.0)
}

/// The allocations that the groups of a cycle would get if they asked for `demand`, and the limit of each group's turn: first of
/// the groups, in the order of [`Cycle::groups`], then of the root. The cycle needs no slots, submitters or jobs.
pub fn plan(cycle: &Cycle, demand: &Demand) -> (Allocations, Vec<f64>) {
    let allocations = allocate(cycle, demand);
    let ledger = Ledger::new(cycle);
    let turns = (0..cycle.groups.len()).map(Some).chain([None]);
    let limits = turns.map(|group| allocations.turn_limit(cycle, &ledger, group)).collect();
    (allocations, limits)
}
