//! The tree of accounting groups: which group a submitter belongs to, and the quotas that follow from the pool's size.
//!
//! Groups are named by dotted paths whose case does not count: `physics.hep` is within `physics`. The root, `<none>`, is above
//! all groups; submitters that name no group or an unknown group belong to the root.
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
    /// A share, 0 to 1, of what the static quotas of the parent's children leave of the parent's quota.
    Dynamic(f64),
}

/// A group as the administrator describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSpec {
    /// The dotted path, such as `physics.hep`.
    pub name: String,
    /// The quota. If unset, the group's quota is 0.
    pub quota: Option<Quota>,
    /// `GROUP_ACCEPT_SURPLUS_<group>`: the group may use what other groups leave of their quotas.
    pub accept_surplus: bool,
    /// `GROUP_AUTOREGROUP_<group>`: after all groups' turns, the group's submitters compete with those of no group for what is
    /// left.
    pub autoregroup: bool,
}

/// Why a group is not in the tree. Submitters of such a group belong to its deepest ancestor that was accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GroupError {
    /// The name is empty, has an empty part, a blank or an `@`, or is the root's.
    #[error("group {name:?}: not a name for a group; write dotted names without blanks, such as physics.hep")]
    BadName {
        /// The name as given.
        name: String,
    },
    /// A group that was accepted before has the same name; case does not count.
    #[error("group {name:?}: there is already a group {other:?}, and case does not count; remove one")]
    Duplicate {
        /// The name as given.
        name: String,
        /// The name of the group that was accepted.
        other: String,
    },
    /// No accepted group has the name of the parent.
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
    /// The place of the group among the specs that the tree was made of.
    pub spec: usize,
    /// The name, in the case given.
    pub name: String,
    /// The quota as configured.
    pub quota: Quota,
    /// [`GroupSpec::accept_surplus`].
    pub accept_surplus: bool,
    /// [`GroupSpec::autoregroup`].
    pub autoregroup: bool,
    /// The place of the parent in [`Tree::groups`], which comes before its children; none if the parent is the root.
    pub parent: Option<usize>,
}

/// The slot weight that a group may use, given the size of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allotment {
    /// The amount that the group's own submitters may use.
    pub quota: f64,
    /// The amount that the group's own submitters and those of all groups below it may use together.
    pub subtree_quota: f64,
}

/// The allotments of a whole tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Allotments {
    /// The root's allotment.
    pub root: Allotment,
    /// The groups' allotments, in the order of [`Tree::groups`].
    pub groups: Vec<Allotment>,
}

/// A group as the input of a negotiation cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupInput {
    /// The dotted path.
    pub name: String,
    /// The amount that the group's own submitters may use: [`Allotment::quota`].
    pub quota: f64,
    /// The amount that the group's own submitters and those of all groups below it may use together:
    /// [`Allotment::subtree_quota`].
    pub subtree_quota: f64,
    /// The slot weight that the group's own submitters use, without the groups below.
    pub weighted_used: f64,
    /// [`GroupSpec::accept_surplus`].
    pub accept_surplus: bool,
    /// [`GroupSpec::autoregroup`].
    pub autoregroup: bool,
    /// The place of the parent, which comes before its children; none if the parent is the root.
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
    /// Builds the tree of the groups that `specs` describe, in any order. [`Tree::refused`] lists the specs that cannot be
    /// accepted; they do not affect the other groups.
    pub fn new(specs: &[GroupSpec]) -> Self {
        let mut tree = Self::default();
        let mut order: Vec<usize> = (0..specs.len()).collect();
        // Parents come first, because their names have fewer dots. Siblings are sorted by name, as in HTCondor, because groups
        // that GROUP_SORT_EXPR makes equal have their turns in this order. If two groups have one name, the first given is
        // accepted: the caller gives that one first which is to count.
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

    /// The place of the group of this name, whatever its case.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(&fold(name)).copied()
    }

    /// The place of a submitter's group; none for the root. If a submitter is named `path.to.group.user@domain`, the path is
    /// `path.to.group`: all before the last dot that is not in `@domain`. The submitter belongs to the deepest known group on the
    /// path.
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

    /// The amounts that each group may use of a pool of this weight.
    ///
    /// Children with static quotas share the parent's quota first; children with dynamic quotas share what is left. With
    /// `oversubscription` (`NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION`), static quotas are granted even if their sum exceeds the
    /// parent's quota, and a group's own submitters may use all of its quota. Without it, static quotas are scaled down to fit,
    /// and a group's own submitters may use what its children's quotas leave.
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

    /// The groups as the input of a negotiation cycle, in the order of [`Tree::groups`]. `own_usage` is what each group's own
    /// submitters use, in the same order.
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

    /// Makes a group of a spec.
    ///
    /// # Errors
    /// If the spec cannot be accepted beside the groups accepted so far.
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

/// Returns each node's own amount together with those of all nodes below the node; missing entries of `own` count as 0. Parents
/// must come before their children; a node whose parent does not is treated as if it had no parent.
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

/// The sums of the quotas that the children of one node are configured with.
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

    /// The quota of one of the children, given the parent's quota.
    fn child_quota(self, child: Quota, parent: f64, oversubscription: bool) -> f64 {
        let fixed = if oversubscription { self.fixed } else { self.fixed.min(parent) };
        match child {
            // If the parent has no quota, its children have none, even with oversubscription.
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
