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
        Self {
            accounts,
            groups: cycle.submitters.iter().map(|submitter| submitter.group.filter(known)).collect(),
            used,
            group_used: cycle.groups.iter().map(|group| group.weighted_used.max(0.0)).collect(),
            ungrouped_used: cycle.ungrouped_used.max(0.0),
            parents: cycle.groups.iter().enumerate().map(parent).collect(),
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
    }

    /// The slot weight that a group may still take. `caps` says what each group may use together with all groups below it; the
    /// caps of this group and of each group above it count.
    pub(super) fn headroom(&self, group: Option<usize>, caps: &[f64]) -> f64 {
        let used = sum_up(&self.parents, &self.group_used);
        let mut least = f64::INFINITY;
        let mut node = group;
        while let Some(current) = node {
            let (Some(cap), Some(used)) = (caps.get(current), used.get(current)) else { break };
            least = least.min(cap - used);
            node = self.parents.get(current).copied().flatten();
        }
        least.max(0.0)
    }
}
