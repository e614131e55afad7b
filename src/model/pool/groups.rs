//! The GroupQuotas by the names of their objects and of their groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ids::GroupName;
use super::policy::Group;
use super::time::Time;

/// The GroupQuotas. A group is looked up for each job of a cycle and for each submitter in a group, so that its name has an index.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    objects: BTreeMap<Arc<str>, Group>,
    /// The objects of each group, whose name is in lower case. Several objects may declare one group: the first counts.
    by_name: BTreeMap<String, BTreeSet<Rank>>,
}

/// An object's place among the GroupQuotas that declare one group. The object whose own name is the group's comes first, then the older
/// one, then the first by name: somebody who takes another group's name by mistake must not switch that group off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_another_name: bool,
    /// An object that is being created is younger than all others.
    is_new: bool,
    created: Option<Time>,
    object: Arc<str>,
}

impl Rank {
    fn of(group: &Group) -> Self {
        Self {
            has_another_name: !group.object.eq_ignore_ascii_case(group.name.as_str()),
            is_new: group.created.is_none(),
            created: group.created,
            object: Arc::clone(&group.object),
        }
    }
}

fn folded(name: &GroupName) -> String {
    name.as_str().to_ascii_lowercase()
}

impl Groups {
    pub(super) const fn by_object(&self) -> &BTreeMap<Arc<str>, Group> {
        &self.objects
    }

    pub(super) fn insert(&mut self, group: Group) {
        self.remove(&group.object.clone());
        self.by_name.entry(folded(&group.name)).or_default().insert(Rank::of(&group));
        self.objects.insert(group.object.clone(), group);
    }

    pub(super) fn remove(&mut self, object: &str) {
        let Some(group) = self.objects.remove(object) else { return };
        let name = folded(&group.name);
        if let Some(objects) = self.by_name.get_mut(&name) {
            objects.remove(&Rank::of(&group));
            if objects.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }

    /// The GroupQuotas that declare this group, in upper or lower case. The first counts.
    pub(super) fn named(&self, name: &GroupName) -> impl Iterator<Item = &Group> + use<'_> {
        let objects = self.by_name.get(&folded(name)).into_iter().flatten();
        objects.filter_map(|rank| self.objects.get(&rank.object))
    }

    /// All GroupQuotas, by the names of their groups; of those that declare one group, the first counts.
    pub(super) fn ranked(&self) -> impl Iterator<Item = &Group> {
        self.by_name.values().flatten().filter_map(|rank| self.objects.get(&rank.object))
    }

    /// The GroupQuota that counts of each group, by the names of the groups.
    pub(super) fn counting(&self) -> impl Iterator<Item = &Group> {
        let first = self.by_name.values().filter_map(BTreeSet::first);
        first.filter_map(|rank| self.objects.get(&rank.object))
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::Quota;
    use super::*;

    fn group(object: &str, name: &str) -> Group {
        Group {
            object: object.into(),
            generation: 1,
            created: None,
            name: name.into(),
            owners: None,
            quota: Quota::Static(1.0),
            share_unused: false,
            accept_surplus: None,
            autoregroup: None,
            priority_factor: None,
        }
    }

    /// The objects that declare a group, those first that count.
    fn found(groups: &Groups, name: &str) -> Vec<String> {
        groups.named(&name.into()).map(|group| group.object.to_string()).collect()
    }

    #[test]
    fn the_groups_own_object_counts_then_the_oldest() {
        let mut groups = Groups::default();
        for (object, created) in [("zz", Some(5)), ("new", None), ("b", Some(7)), ("a", Some(7))] {
            let created = created.map(Time::from_secs);
            groups.insert(Group { created, ..group(object, "Physics") });
        }
        assert_eq!(found(&groups, "physics"), ["zz", "a", "b", "new"]);
        groups.insert(group("physics", "physics"));
        assert_eq!(found(&groups, "physics"), ["physics", "zz", "a", "b", "new"]);
        groups.insert(group("chem", "chem"));
        let names = |groups: &mut dyn Iterator<Item = &Group>| -> Vec<String> {
            groups.map(|group| group.object.to_string()).collect()
        };
        assert_eq!(names(&mut groups.counting()), ["chem", "physics"]);
        assert_eq!(names(&mut groups.ranked()), ["chem", "physics", "zz", "a", "b", "new"]);
    }

    #[test]
    fn a_group_is_found_by_its_name_whatever_its_objects() {
        let mut groups = Groups::default();
        groups.insert(group("b", "Physics"));
        groups.insert(group("a", "physics"));
        groups.insert(group("c", "physics.higgs"));
        assert_eq!(found(&groups, "PHYSICS"), ["a", "b"]);
        groups.insert(group("a", "biology"));
        assert_eq!(
            (found(&groups, "physics"), found(&groups, "biology")),
            (vec!["b".to_owned()], vec!["a".to_owned()])
        );
        groups.remove("b");
        groups.insert(group("b", "Physics"));
        groups.remove("b");
        groups.remove("none");
        assert_eq!((found(&groups, "physics").len(), found(&groups, "physics.higgs").len()), (0, 1));
        assert_eq!(groups.by_object().len(), 2);
    }
}
