//! GroupQuotas of the groups that `GROUP_NAMES` lists.

use std::collections::BTreeSet;

use serde_json::Value;

use super::accounts::Account;
use super::names::Names;
use super::notes::{Notes, place_of};
use super::object::object;
use crate::named_groups::NamedGroup;
use api::{GroupQuota, GroupQuotaSpec};
use condor_config::Config;
use model::negotiator;
use model::negotiator::groups::{GroupSpec, Tree};
use model::pool::GroupName;

/// The most entries that `spec.owners` may have.
const MOST_OWNERS: usize = 256;

/// The groups that the negotiator accepts, and who may charge each.
#[derive(Debug)]
pub(super) struct Groups {
    tree: Tree,
    named: Vec<NamedGroup>,
    /// The owners who may charge each group, by the group's place in the tree.
    owners: Vec<BTreeSet<String>>,
    /// The group of nice users, which needs no declaration.
    nice: GroupName,
}

impl Groups {
    /// The groups of a configuration. Groups that the negotiator ignores are left out, and noted; and so are those whose names no group
    /// has here.
    pub(super) fn new(
        central: &Config,
        named: Vec<NamedGroup>,
        knobs: &negotiator::Config,
        notes: &mut Notes,
    ) -> Self {
        let (named, misnamed): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|group| GroupName::is_valid(&group.name));
        for group in misnamed {
            if let Some(place) = place_of(central, "GROUP_NAMES") {
                let quoted = if group.name.contains('"') { "; write the name without quotes" } else { "" };
                let rule = "letters, digits, _ and -, and a dot before a group inside another";
                notes.at(
                    place,
                    format!("the group {} is left out: a group's name has {rule}{quoted}", group.name),
                );
            }
        }
        let specs: Vec<GroupSpec> = named.iter().map(|group| group.spec(knobs)).collect();
        let tree = Tree::new(&specs);
        let place = |knob: &str| place_of(central, knob);
        for (_, error) in tree.refused() {
            if let Some(place) = place("GROUP_NAMES") {
                notes.at(place, format!("{error}; until then the group is left out, as HTCondor ignores it"));
            }
        }
        for group in &named {
            let both = group.quota.and(group.dynamic_quota);
            let knob = format!("GROUP_QUOTA_DYNAMIC_{}", group.name);
            if let Some(place) = both.and_then(|_| place(&knob)) {
                notes.at(
                    place,
                    format!("{knob} is left out: GROUP_QUOTA_{} is set, and counts instead", group.name),
                );
            }
        }
        let owners = vec![BTreeSet::new(); tree.groups().len()];
        Self { tree, named, owners, nice: knobs.nice_user_group.clone() }
    }

    /// Whether `GROUP_NAMES` lists the group.
    pub(super) fn names(&self, name: &str) -> bool {
        self.named.iter().any(|group| group.name.eq_ignore_ascii_case(name))
    }

    /// Whether the negotiator accepts the group.
    pub(super) fn accepts(&self, name: &str) -> bool {
        self.tree.find(name).is_some()
    }

    /// Whether the group is that of nice users.
    pub(super) fn is_nice(&self, name: &str) -> bool {
        self.nice.is_same(&name.into())
    }

    /// The group in which a submitter is counted, with the factor that the group gives to its submitters.
    pub(super) fn of_submitter(&self, submitter: &str) -> Option<(&str, Option<f64>)> {
        let group = self.tree.groups().get(self.tree.group_of(submitter)?)?;
        Some((&group.name, self.named.get(group.spec)?.priority_factor))
    }

    /// Lets everybody charge every group: the groups at the top, and with them those inside.
    pub(super) fn open(&mut self) {
        for (group, owners) in self.tree.groups().iter().zip(&mut self.owners) {
            if group.parent.is_none() {
                owners.insert("*".to_owned());
            }
        }
    }

    /// Lets those charge a group who have an account in the group.
    pub(super) fn open_to(&mut self, accounts: &[Account]) {
        for account in accounts {
            let group = account.group().and_then(|group| self.tree.find(group));
            if let Some(owners) = group.and_then(|place| self.owners.get_mut(place)) {
                owners.insert(account.owner().to_owned());
            }
        }
    }

    /// Notes groups that nobody may charge, and those that too many owners may.
    pub(super) fn note_closed(&self, central: &Config, notes: &mut Notes) {
        let Some(place) = place_of(central, "GROUP_NAMES") else { return };
        let is_closed = |mut group: usize| loop {
            if self.owners.get(group).is_some_and(|owners| !owners.is_empty()) {
                break false;
            }
            match self.tree.groups().get(group).and_then(|group| group.parent) {
                Some(parent) => group = parent,
                None => break true,
            }
        };
        let all = self.tree.groups().iter().enumerate();
        let closed: Vec<&str> =
            all.filter(|(at, _)| is_closed(*at)).map(|(_, group)| group.name.as_str()).collect();
        if !closed.is_empty() {
            notes.at(
                place.clone(),
                format!(
                    "nobody may charge {}: HTCondor lets everybody charge every group, and here spec.owners of the GroupQuota says who \
                     may; give spec.owners, or --userprio, or --open-groups",
                    closed.join(", ")
                ),
            );
        }
        for (group, owners) in self.tree.groups().iter().zip(&self.owners) {
            if owners.len() > MOST_OWNERS {
                notes.at(
                    place.clone(),
                    format!(
                        "spec.owners of {} has {} owners, and at most {MOST_OWNERS} are possible; replace some by an entry such as team-*",
                        group.name,
                        owners.len()
                    ),
                );
            }
        }
    }

    /// The GroupQuotas, each parent before the groups inside.
    pub(super) fn objects(&self) -> Vec<Value> {
        let mut given = Names::default();
        let all = self.tree.groups().iter().zip(&self.owners);
        let one = |(group, owners): (&negotiator::groups::Group, &BTreeSet<String>)| {
            let named = self.named.get(group.spec)?;
            let name = given.of(&named.name);
            let spec = GroupQuotaSpec {
                group: (name != named.name).then(|| named.name.clone()),
                owners: (!owners.is_empty()).then(|| owners.iter().cloned().collect()),
                quota: named.quota,
                dynamic_quota: named.dynamic_quota.filter(|_| named.quota.is_none()),
                accept_surplus: named.accept_surplus,
                autoregroup: named.autoregroup,
                priority_factor: named.priority_factor,
            };
            Some(object(&GroupQuota::new(&name, spec)))
        };
        all.filter_map(one).collect()
    }
}
