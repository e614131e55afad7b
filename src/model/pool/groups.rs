//! The GroupQuotas by the names of their objects and of their groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ids::GroupName;
use super::policy::Group;

/// The GroupQuotas. A group is looked up for each job of a cycle and for each submitter in a group, so that its name has an index.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    objects: BTreeMap<Arc<str>, Group>,
    /// The objects of each group, whose name is in lower case. Two objects may declare one group: the first by name counts.
    by_name: BTreeMap<String, BTreeSet<Arc<str>>>,
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
        self.by_name.entry(folded(&group.name)).or_default().insert(group.object.clone());
        self.objects.insert(group.object.clone(), group);
    }

    pub(super) fn remove(&mut self, object: &str) {
        let Some(group) = self.objects.remove(object) else { return };
        let name = folded(&group.name);
        if let Some(objects) = self.by_name.get_mut(&name) {
            objects.remove(object);
            if objects.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }

    /// The GroupQuotas that declare this group, in upper or lower case.
    pub(super) fn named(&self, name: &GroupName) -> impl Iterator<Item = &Group> + use<'_> {
        let objects = self.by_name.get(&folded(name)).into_iter().flatten();
        objects.filter_map(|object| self.objects.get(object))
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::Quota;
    use super::*;

    #[test]
    fn a_group_is_found_by_its_name_whatever_its_objects() {
        let mut groups = Groups::default();
        let group = |object: &str, name: &str| Group {
            object: object.into(),
            generation: 1,
            name: name.into(),
            owners: None,
            quota: Quota::Static(1.0),
            share_unused: false,
            accept_surplus: None,
            autoregroup: None,
            priority_factor: None,
        };
        let found = |groups: &Groups, name: &str| -> Vec<String> {
            groups.named(&name.into()).map(|group| group.object.to_string()).collect()
        };
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
        groups.remove("none");
        assert_eq!((found(&groups, "physics").len(), found(&groups, "physics.higgs").len()), (0, 1));
        assert_eq!(groups.by_object().len(), 2);
    }
}
