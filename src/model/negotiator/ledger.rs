//! The slot weight in use while a cycle goes on: by each name, by each group, and by each group with the groups below it.

use std::collections::HashMap;

use super::cycle::Cycle;
use super::groups::sum_up;

/// The usage of all submitters and groups, including the matches of this cycle.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// The account of each submitter entry. Entries of one name share an account.
    accounts: Vec<usize>,
    /// The group of each submitter entry. This group is charged even if the submitter takes part in the root's turn.
    groups: Vec<Option<usize>>,
    /// The slot weight that each account uses.
    used: Vec<f64>,
    group_used: Vec<f64>,
    /// The slot weight that each group uses together with all groups below it.
    subtree_used: Vec<f64>,
    ungrouped_used: f64,
    parents: Vec<Option<usize>>,
    /// The slot weight that each owner with a ceiling uses.
    owner_used: Vec<f64>,
}

impl Ledger {
    pub(super) fn new(cycle: &Cycle) -> Self {
        let mut used: Vec<f64> = Vec::with_capacity(cycle.submitters.len());
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let accounts = cycle.submitters.iter().map(|submitter| {
            *by_name.entry(&submitter.name).or_insert_with(|| {
                used.push(submitter.weighted_used.max(0.0));
                used.len() - 1
            })
        });
        let accounts = accounts.collect();
        let parent =
            |(node, group): (usize, &super::GroupInput)| group.parent.filter(|parent| *parent < node);
        let known = |group: &usize| *group < cycle.groups.len();
        let parents: Vec<Option<usize>> = cycle.groups.iter().enumerate().map(parent).collect();
        let group_used: Vec<f64> = cycle.groups.iter().map(|group| group.weighted_used.max(0.0)).collect();
        Self {
            accounts,
            groups: cycle.submitters.iter().map(|submitter| submitter.group.filter(known)).collect(),
            used,
            subtree_used: sum_up(&parents, &group_used),
            group_used,
            ungrouped_used: cycle.ungrouped_used.max(0.0),
            parents,
            owner_used: cycle.owners.iter().map(|owner| owner.weighted_used.max(0.0)).collect(),
        }
    }

    /// The account of a submitter's entry.
    pub(super) fn account(&self, submitter: usize) -> usize {
        self.accounts.get(submitter).copied().unwrap_or(usize::MAX)
    }

    /// The slot weight that a submitter uses, summed over all entries of its name.
    pub(super) fn used(&self, submitter: usize) -> f64 {
        self.used.get(self.account(submitter)).copied().unwrap_or_default()
    }

    /// The slot weight that a group's own submitters use; for `None`, the submitters of no group.
    pub(super) fn group_used(&self, group: Option<usize>) -> f64 {
        match group {
            Some(group) => self.group_used.get(group).copied().unwrap_or_default(),
            None => self.ungrouped_used,
        }
    }

    /// The group of a submitter; none for the root.
    pub(super) fn group(&self, submitter: usize) -> Option<usize> {
        self.groups.get(submitter).copied().flatten()
    }

    /// The slot weight that all submitters of an owner with a ceiling use.
    pub(super) fn owner_used(&self, owner: usize) -> f64 {
        self.owner_used.get(owner).copied().unwrap_or_default()
    }

    /// Charges `cost` to a submitter and its owner, and `growth` to its group: slot weight that other members of the group gave
    /// up for the match is not charged to the group again.
    pub(super) fn charge(&mut self, submitter: usize, owner: Option<usize>, cost: f64, growth: f64) {
        if let Some(used) = owner.and_then(|owner| self.owner_used.get_mut(owner)) {
            *used += cost;
        }
        let (account, group) = (self.account(submitter), self.group(submitter));
        if let Some(used) = self.used.get_mut(account) {
            *used += cost;
        }
        match group.and_then(|group| self.group_used.get_mut(group)) {
            Some(used) => *used += growth,
            None => self.ungrouped_used += growth,
        }
        let mut node = group;
        while let Some(current) = node {
            if let Some(used) = self.subtree_used.get_mut(current) {
                *used += growth;
            }
            node = self.parent(current);
        }
    }

    /// The slot weight that a group may still take. `cap` says what a group may use together with all groups below it; the caps of
    /// this group and of each group above it count.
    pub(super) fn headroom(&self, group: Option<usize>, cap: impl Fn(usize) -> Option<f64>) -> f64 {
        let mut least = f64::INFINITY;
        let mut node = group;
        while let Some(current) = node {
            let (Some(cap), Some(used)) = (cap(current), self.subtree_used.get(current)) else { break };
            least = least.min(cap - used);
            node = self.parent(current);
        }
        least.max(0.0)
    }

    /// The group above a group, which comes before it.
    fn parent(&self, group: usize) -> Option<usize> {
        self.parents.get(group).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiator::{GroupInput, SubmitterInput};

    /// A ledger of groups, given by their parents, that use 1, 2, 3 and so on; each has one submitter, in the order of the groups.
    fn ledger(parents: &[Option<usize>]) -> Ledger {
        let mut cycle = Cycle::default();
        let mut weighted_used = 0.0;
        for (place, parent) in parents.iter().enumerate() {
            weighted_used += 1.0;
            cycle.groups.push(GroupInput { parent: *parent, weighted_used, ..GroupInput::default() });
            let (name, group) = (place.to_string(), Some(place));
            cycle.submitters.push(SubmitterInput { name, group, ..SubmitterInput::default() });
        }
        Ledger::new(&cycle)
    }

    #[test]
    fn a_charge_counts_in_the_group_and_in_each_group_above() {
        // 0 is above 1 and 2; 2 is above 3; 4 is on its own; the parent of 5 comes after 5, and so counts for none.
        let mut ledger = ledger(&[None, Some(0), Some(0), Some(2), None, Some(6), None]);
        for (charged, expected) in [
            (None, [10.0, 2.0, 7.0, 4.0, 5.0, 6.0, 7.0]),
            (Some((3, 0.5)), [10.5, 2.0, 7.5, 4.5, 5.0, 6.0, 7.0]),
            (Some((0, 8.0)), [18.5, 2.0, 7.5, 4.5, 5.0, 6.0, 7.0]),
            (Some((5, 2.0)), [18.5, 2.0, 7.5, 4.5, 5.0, 8.0, 7.0]),
            // A match for which another member of the group gives up more than the match takes.
            (Some((3, -4.5)), [14.0, 2.0, 3.0, 0.0, 5.0, 8.0, 7.0]),
        ] {
            if let Some((submitter, growth)) = charged {
                ledger.charge(submitter, None, 1.0, growth);
            }
            assert_eq!(ledger.subtree_used, expected, "{charged:?}");
            assert_eq!(ledger.subtree_used, sum_up(&ledger.parents, &ledger.group_used), "{charged:?}");
        }
    }

    #[test]
    fn the_tightest_cap_on_the_way_to_the_root_counts() {
        let mut ledger = ledger(&[None, Some(0), Some(1), None]);
        let caps = [10.0, 9.0, 8.0, 3.0];
        let headroom = |ledger: &Ledger| -> Vec<f64> {
            let groups = (0..4).map(Some).chain([None]);
            groups.map(|group| ledger.headroom(group, |group: usize| caps.get(group).copied())).collect()
        };
        assert_eq!(headroom(&ledger), [4.0, 4.0, 4.0, 0.0, f64::INFINITY]);
        ledger.charge(1, None, 3.0, 3.0);
        assert_eq!(headroom(&ledger), [1.0, 1.0, 1.0, 0.0, f64::INFINITY]);
    }
}
