//! The tree of accounting groups: who belongs where, and the quotas that follow from the pool's size.
//!
//! Groups are named by dotted paths without regard to case: `physics.hep` is within `physics`. Above all of
//! them is the root, `<none>`, to which everybody belongs who names no group or an unknown one.
//!
//! Source: HTCondor manual, "Accounting Groups with Hierarchical Group Quotas".

use std::collections::HashMap;

/// The name of the root of the tree.
pub const ROOT: &str = "<none>";

/// How much a group may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota {
    /// An amount of slot weight.
    Static(f64),
    /// A part, 0 to 1, of what the parent's static children leave of the parent's quota.
    Dynamic(f64),
}

/// A group as the administrator describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSpec {
    /// The dotted path, such as `physics.hep`.
    pub name: String,
    /// The quota; none counts as 0.
    pub quota: Option<Quota>,
    /// `GROUP_ACCEPT_SURPLUS_<group>`: it may use what other groups leave of theirs.
    pub accept_surplus: bool,
    /// `GROUP_AUTOREGROUP_<group>`: in the end its jobs compete for what is left with those of no group.
    pub autoregroup: bool,
}

/// Why a group is not in the tree. Its submitters count as those of its deepest accepted ancestor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GroupError {
    /// The name is empty, has an empty part, a blank or an `@`, or is the root's.
    #[error("group {name:?}: not a name for a group; write dotted names without blanks, such as physics.hep")]
    BadName {
        /// The name as given.
        name: String,
    },
    /// Another group before it has the same name, but for the case of letters.
    #[error("group {name:?}: there is already a group {other:?}, and case does not count; remove one")]
    Duplicate {
        /// The name as given.
        name: String,
        /// The name of the group that has it.
        other: String,
    },
    /// There is no group of its parent's name, or that was not accepted.
    #[error("group {name:?}: its parent {parent:?} is not an accepted group; define or correct it")]
    MissingParent {
        /// The name as given.
        name: String,
        /// The name that the parent would have.
        parent: String,
    },
    /// The quota is negative or no number, or a share above 1.
    #[error(
        "group {name:?}: quota {quota} is out of range; give a weight of 0 or more, or a share of 0 to 1"
    )]
    BadQuota {
        /// The name as given.
        name: String,
        /// The quota as given.
        quota: f64,
    },
}

/// A group in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its place among the specs that the tree was made of.
    pub spec: usize,
    /// Its name, in the case given.
    pub name: String,
    /// Its quota as configured.
    pub quota: Quota,
    /// [`GroupSpec::accept_surplus`].
    pub accept_surplus: bool,
    /// [`GroupSpec::autoregroup`].
    pub autoregroup: bool,
    /// The place of the parent in [`Tree::groups`], before its own; none if that is the root.
    pub parent: Option<usize>,
}

/// What a group may use, given the size of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allotment {
    /// What the group's own submitters may use.
    pub quota: f64,
    /// What they and all groups below may use together.
    pub subtree_quota: f64,
}

/// The allotments of a whole tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Allotments {
    /// The root's.
    pub root: Allotment,
    /// Those of [`Tree::groups`], in that order.
    pub groups: Vec<Allotment>,
}

/// A group as a negotiation cycle knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupInput {
    /// The dotted path.
    pub name: String,
    /// What the group's own submitters may use: [`Allotment::quota`].
    pub quota: f64,
    /// What they and all groups below may use together: [`Allotment::subtree_quota`].
    pub subtree_quota: f64,
    /// The slot weight that the group's own submitters use, without the groups below.
    pub weighted_used: f64,
    /// [`GroupSpec::accept_surplus`].
    pub accept_surplus: bool,
    /// [`GroupSpec::autoregroup`].
    pub autoregroup: bool,
    /// The place of the parent, which comes before its children; none if that is the root.
    pub parent: Option<usize>,
}

/// All accepted groups, each parent before its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    groups: Vec<Group>,
    by_name: HashMap<String, usize>,
    refused: Vec<(usize, GroupError)>,
}

impl Tree {
    /// Makes the tree of the groups described, in whatever order. Groups that cannot be accepted are in
    /// [`Tree::refused`], and do no harm to the others.
    pub fn new(specs: &[GroupSpec]) -> Self {
        let mut tree = Self::default();
        let mut order: Vec<usize> = (0..specs.len()).collect();
        // Parents have fewer dots. Siblings go by name, as in HTCondor, where that is the order of turns among equals; of
        // two of the same name the first given is the one.
        order.sort_by_cached_key(|index| {
            let name = specs.get(*index).map(|spec| fold(&spec.name)).unwrap_or_default();
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            (path.len(), path)
        });
        for (index, spec) in order.into_iter().filter_map(|index| Some((index, specs.get(index)?))) {
            match tree.accept(index, spec) {
                Ok(group) => {
                    tree.by_name.insert(fold(&spec.name), tree.groups.len());
                    tree.groups.push(group);
                }
                Err(error) => tree.refused.push((index, error)),
            }
        }
        tree
    }

    /// The accepted groups, each parent before its children.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Which of the specs were not accepted, and why.
    pub fn refused(&self) -> &[(usize, GroupError)] {
        &self.refused
    }

    /// The group of this name, whatever its case.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(&fold(name)).copied()
    }

    /// The group of a submitter, `path.to.group.user@domain`; none for the root. The `@domain` and what is
    /// after the last dot before it are not the group's. Where the path goes on into unknown groups, the
    /// deepest known one has the submitter.
    pub fn group_of(&self, submitter: &str) -> Option<usize> {
        let local = submitter.rsplit_once('@').map_or(submitter, |(local, _)| local);
        let (path, _) = local.rsplit_once('.')?;
        let mut deepest = None;
        for end in path.match_indices('.').map(|(at, _)| at).chain([path.len()]) {
            let Some(group) = path.get(..end).and_then(|name| self.find(name)) else { break };
            deepest = Some(group);
        }
        deepest
    }

    /// What each group may use of a pool of this weight.
    ///
    /// Static children share the parent's quota first, dynamic ones what is left. With `oversubscription`
    /// static quotas hold even if their sum exceeds the parent's, and a group's own submitters may use all
    /// of its quota; without it they are scaled down to fit, and a group's own submitters have what its
    /// children's quotas leave. (`NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`.)
    pub fn assign(&self, pool_weight: f64, oversubscription: bool) -> Allotments {
        let mut sums = vec![Sums::default(); self.groups.len()];
        let mut root_sums = Sums::default();
        for group in &self.groups {
            let sums = group.parent.and_then(|parent| sums.get_mut(parent)).unwrap_or(&mut root_sums);
            sums.add(group.quota);
        }
        let pool = pool_weight.max(0.0);
        let mut subtree: Vec<f64> = Vec::with_capacity(self.groups.len());
        let mut children = vec![0.0; self.groups.len()];
        let mut root_children = 0.0;
        for group in &self.groups {
            let parent_quota = group.parent.and_then(|parent| subtree.get(parent)).unwrap_or(&pool);
            let sums = group.parent.and_then(|parent| sums.get(parent)).unwrap_or(&root_sums);
            let quota = sums.child_quota(group.quota, *parent_quota, oversubscription);
            *group.parent.and_then(|parent| children.get_mut(parent)).unwrap_or(&mut root_children) += quota;
            subtree.push(quota);
        }
        let own =
            |quota: f64, children: f64| if oversubscription { quota } else { (quota - children).max(0.0) };
        let groups = subtree
            .iter()
            .zip(&children)
            .map(|(quota, children)| Allotment { quota: own(*quota, *children), subtree_quota: *quota });
        let root = Allotment { quota: (pool - root_children).max(0.0), subtree_quota: pool };
        Allotments { root, groups: groups.collect() }
    }

    /// The usage of each group and all groups below, from each group's own (in the order of
    /// [`Tree::groups`]; missing ones count as 0).
    pub fn subtree_usage(&self, own: &[f64]) -> Vec<f64> {
        let parents = self.groups.iter().map(|group| group.parent);
        sum_up(parents.collect::<Vec<_>>().as_slice(), own)
    }

    /// The groups as a negotiation cycle wants them, in the order of [`Tree::groups`], given the pool's
    /// weight and each group's own usage.
    pub fn inputs(&self, pool_weight: f64, oversubscription: bool, own_usage: &[f64]) -> Vec<GroupInput> {
        let allotments = self.assign(pool_weight, oversubscription);
        let usage = own_usage.iter().copied().chain(std::iter::repeat(0.0));
        let groups = self.groups.iter().zip(&allotments.groups).zip(usage);
        groups
            .map(|((group, allotment), weighted_used)| GroupInput {
                name: group.name.clone(),
                quota: allotment.quota,
                subtree_quota: allotment.subtree_quota,
                weighted_used,
                accept_surplus: group.accept_surplus,
                autoregroup: group.autoregroup,
                parent: group.parent,
            })
            .collect()
    }

    /// The spec as a group, if it may be one.
    fn accept(&self, index: usize, spec: &GroupSpec) -> Result<Group, GroupError> {
        let name = spec.name.clone();
        let bad = |part: &str| part.is_empty() || part.contains(|c: char| c.is_whitespace() || c == '@');
        if name.split('.').any(bad) || name == ROOT {
            return Err(GroupError::BadName { name });
        }
        if let Some(other) = self.find(&name).and_then(|other| self.groups.get(other)) {
            return Err(GroupError::Duplicate { name, other: other.name.clone() });
        }
        let quota = spec.quota.unwrap_or(Quota::Static(0.0));
        let in_range = match quota {
            Quota::Static(weight) => weight.is_finite() && weight >= 0.0,
            Quota::Dynamic(share) => (0.0..=1.0).contains(&share),
        };
        if !in_range {
            let (Quota::Static(quota) | Quota::Dynamic(quota)) = quota;
            return Err(GroupError::BadQuota { name, quota });
        }
        let parent = match name.rsplit_once('.') {
            None => None,
            Some((parent, _)) => match self.find(parent) {
                Some(found) => Some(found),
                None => return Err(GroupError::MissingParent { parent: parent.to_owned(), name }),
            },
        };
        let GroupSpec { accept_surplus, autoregroup, .. } = *spec;
        Ok(Group { spec: index, name, quota, accept_surplus, autoregroup, parent })
    }
}

/// Adds to each node's own amount those of all nodes below it. Parents come before their children; a parent
/// that does not is none.
pub(super) fn sum_up(parents: &[Option<usize>], own: &[f64]) -> Vec<f64> {
    let mut sums: Vec<f64> = own.iter().copied().chain(std::iter::repeat(0.0)).take(parents.len()).collect();
    for (node, parent) in parents.iter().enumerate().rev() {
        let below = sums.get(node).copied().unwrap_or_default();
        if let Some(sum) = parent.filter(|parent| *parent < node).and_then(|parent| sums.get_mut(parent)) {
            *sum += below;
        }
    }
    sums
}

/// What the children of one node ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    fixed: f64,
    shares: f64,
}

impl Sums {
    fn add(&mut self, quota: Quota) {
        match quota {
            Quota::Static(weight) => self.fixed += weight,
            Quota::Dynamic(share) => self.shares += share,
        }
    }

    /// The quota of one of the children, given that of the parent.
    fn child_quota(self, child: Quota, parent: f64, oversubscription: bool) -> f64 {
        let fixed = if oversubscription { self.fixed } else { self.fixed.min(parent) };
        match child {
            // Where there is nothing to divide, static quotas do not make something of it, whatever is allowed.
            _ if parent <= 0.0 => 0.0,
            Quota::Static(_) if self.fixed <= 0.0 => 0.0,
            Quota::Static(weight) if fixed >= self.fixed => weight,
            Quota::Static(weight) => weight * fixed / self.fixed,
            Quota::Dynamic(share) => share * (parent - fixed).max(0.0) / self.shares.max(1.0),
        }
    }
}

fn fold(name: &str) -> String {
    name.to_ascii_lowercase()
}
