//! Group trees: the manual's examples, the rules of scaling, and which group a submitter belongs to.

use proptest::prelude::*;

use super::assert_near;
use crate::negotiator::groups::{GroupError, GroupSpec, Quota, Tree, sum_up};

fn tree(groups: &[(&str, Quota)]) -> Tree {
    let specs = groups.iter().map(|(name, quota)| GroupSpec {
        name: (*name).to_owned(),
        quota: Some(*quota),
        ..GroupSpec::default()
    });
    Tree::new(&specs.collect::<Vec<_>>())
}

/// Each group's subtree quota, by name.
fn quota(tree: &Tree, pool: f64, oversubscription: bool, name: &str) -> f64 {
    tree.assign(pool, oversubscription).groups[tree.find(name).unwrap()].subtree_quota
}

use Quota::{Dynamic, Static};

#[test]
fn static_quotas_of_the_manual() {
    let tree = tree(&[("group_physics", Static(20.0)), ("group_chemistry", Static(10.0))]);
    for (pool, oversubscription, physics, chemistry, root) in [
        (30.0, true, 20.0, 10.0, 0.0),
        (30.0, false, 20.0, 10.0, 0.0),
        // After a power failure, quotas are scaled down unless oversubscription is allowed.
        (15.0, false, 10.0, 5.0, 0.0),
        (15.0, true, 20.0, 10.0, 0.0),
        // With twice the slots, quotas are not scaled up.
        (60.0, false, 20.0, 10.0, 30.0),
        (60.0, true, 20.0, 10.0, 30.0),
        (0.0, false, 0.0, 0.0, 0.0),
    ] {
        assert_near(quota(&tree, pool, oversubscription, "group_physics"), physics);
        assert_near(quota(&tree, pool, oversubscription, "GROUP_Chemistry"), chemistry);
        let allotments = tree.assign(pool, oversubscription);
        assert_near(allotments.root.quota, root);
        assert_near(allotments.root.subtree_quota, pool);
    }
}

#[test]
fn dynamic_quotas_of_the_manual() {
    let tree = tree(&[
        ("group_physics.hep", Dynamic(0.75)),
        ("group_physics", Dynamic(0.66667)),
        ("group_physics.lep", Dynamic(0.25)),
        ("group_chemistry", Dynamic(0.33334)),
    ]);
    // The shares add up to more than 1, and are scaled down.
    let scale = 30.0 / 1.00001;
    assert_near(quota(&tree, 30.0, true, "group_physics"), 0.66667 * scale);
    assert_near(quota(&tree, 30.0, true, "group_physics.hep"), 0.75 * 0.66667 * scale);
    assert_near(quota(&tree, 30.0, true, "group_physics.lep"), 0.25 * 0.66667 * scale);
    assert_near(quota(&tree, 30.0, true, "group_chemistry"), 0.33334 * scale);
}

#[test]
fn shares_below_one_are_not_scaled_up_and_come_after_static_quotas() {
    let tree =
        tree(&[("a", Static(40.0)), ("b", Dynamic(0.5)), ("b.x", Static(10.0)), ("b.y", Dynamic(0.5))]);
    assert_near(quota(&tree, 100.0, true, "a"), 40.0);
    assert_near(quota(&tree, 100.0, true, "b"), 30.0);
    assert_near(quota(&tree, 100.0, true, "b.x"), 10.0);
    assert_near(quota(&tree, 100.0, true, "b.y"), 10.0);
    // Static quotas that exceed the pool leave nothing to share.
    assert_near(quota(&tree, 30.0, true, "b"), 0.0);
}

#[test]
fn own_quota_is_what_children_leave_unless_oversubscribed() {
    let tree = tree(&[("p", Static(20.0)), ("p.hep", Static(15.0)), ("p.lep", Static(4.0))]);
    assert_near(tree.assign(30.0, false).groups[0].quota, 1.0);
    assert_near(tree.assign(30.0, true).groups[0].quota, 20.0);
    assert_near(tree.assign(30.0, true).root.quota, 10.0);
}

#[test]
fn groups_that_are_not_accepted() {
    let specs: Vec<GroupSpec> = [
        ("a", Some(Static(1.0))),
        ("A", Some(Static(2.0))),
        ("x.y", Some(Static(1.0))),
        ("bad", Some(Dynamic(1.5))),
        ("bad.child", Some(Static(1.0))),
        ("worse", Some(Static(f64::NAN))),
        ("a..b", None),
        ("<none>", None),
        ("a b", None),
        ("", None),
        ("a.b", None),
    ]
    .into_iter()
    .map(|(name, quota)| GroupSpec { name: name.to_owned(), quota, ..GroupSpec::default() })
    .collect();
    let tree = Tree::new(&specs);
    let accepted: Vec<&str> = tree.groups().iter().map(|group| group.name.as_str()).collect();
    assert_eq!(accepted, ["a", "a.b"]);
    assert_eq!(tree.groups()[1].spec, 10);
    let mut refused = tree.refused().to_vec();
    refused.sort_by_key(|(spec, _)| *spec);
    let kinds: Vec<(usize, char)> = refused
        .iter()
        .map(|(spec, error)| match error {
            GroupError::BadName { .. } => (*spec, 'n'),
            GroupError::Duplicate { .. } => (*spec, 'd'),
            GroupError::MissingParent { .. } => (*spec, 'p'),
            GroupError::BadQuota { .. } => (*spec, 'q'),
        })
        .collect();
    let expected = [(1, 'd'), (2, 'p'), (3, 'q'), (4, 'p'), (5, 'q'), (6, 'n'), (7, 'n'), (8, 'n'), (9, 'n')];
    assert_eq!(kinds, expected);
    assert_eq!(
        refused[1].1.to_string(),
        r#"group "x.y": its parent "x" is not an accepted group; define or correct it"#
    );
}

#[test]
fn submitters_belong_to_the_deepest_known_group() {
    let quotas = ["physics", "physics.hep", "physics.hep.higgs"].map(|name| (name, Static(1.0)));
    let tree = tree(&quotas);
    for (submitter, group) in [
        ("einstein", None),
        ("einstein@cs.wisc.edu", None),
        ("physics.einstein", Some("physics")),
        ("PHYSICS.einstein@cs.wisc.edu", Some("physics")),
        ("physics.hep.peter", Some("physics.hep")),
        ("physics.hep.higgs.peter@x", Some("physics.hep.higgs")),
        ("physics.lep.peter", Some("physics")),
        ("physics.lep.higgs.peter", Some("physics")),
        ("biology.darwin", None),
        ("biology.hep.darwin", None),
        // The user is the part behind the last dot, even if a group of the whole name exists.
        ("physics.hep", Some("physics")),
        ("physics", None),
        ("", None),
        (".x", None),
    ] {
        let found = tree.group_of(submitter).map(|group| tree.groups()[group].name.as_str());
        assert_eq!(found, group, "{submitter}");
    }
}

#[test]
fn usage_goes_up_the_tree() {
    let quotas = ["a", "b", "a.x", "a.y", "a.x.z"].map(|name| (name, Static(1.0)));
    let parents: Vec<Option<usize>> = tree(&quotas).groups().iter().map(|group| group.parent).collect();
    assert_eq!(sum_up(&parents, &[1.0, 2.0, 4.0, 8.0, 16.0]), [29.0, 2.0, 20.0, 8.0, 16.0]);
    assert_eq!(sum_up(&parents, &[1.0]), [1.0, 0.0, 0.0, 0.0, 0.0]);
}

prop_compose! {
    fn any_tree()(quotas in prop::collection::vec((any::<bool>(), 0.0..1.0_f64, any::<u16>()), 0..12)) -> Tree {
        let mut names: Vec<String> = Vec::new();
        let mut specs = Vec::new();
        for (index, (fixed, amount, parent)) in quotas.into_iter().enumerate() {
            let parent = names.get(usize::from(parent) % (index + 1)).map(|name| format!("{name}."));
            let name = format!("{}g{index}", parent.unwrap_or_default());
            names.push(name.clone());
            let quota = Some(if fixed { Static(amount * 100.0) } else { Dynamic(amount) });
            specs.push(GroupSpec { name, quota, ..GroupSpec::default() });
        }
        Tree::new(&specs)
    }
}

proptest! {
    /// Without oversubscription the children's quotas fit into the parent's, and all own quotas together
    /// into the pool.
    #[test]
    fn quotas_fit(tree in any_tree(), pool in 0.0..200.0_f64) {
        let allotments = tree.assign(pool, false);
        let mut sums = vec![0.0; tree.groups().len()];
        let mut top = 0.0;
        for (group, allotment) in tree.groups().iter().zip(&allotments.groups) {
            *group.parent.map_or(&mut top, |parent| &mut sums[parent]) += allotment.subtree_quota;
        }
        prop_assert!(top <= pool + 1e-6);
        for (sum, allotment) in sums.iter().zip(&allotments.groups) {
            prop_assert!(*sum <= allotment.subtree_quota + 1e-6);
        }
        let own: f64 = allotments.groups.iter().map(|allotment| allotment.quota).sum();
        prop_assert!(own + allotments.root.quota <= pool + 1e-6);
    }

    /// In a larger pool, no group's quota is smaller.
    #[test]
    fn quotas_grow_with_the_pool(tree in any_tree(), pool in 0.0..200.0_f64, more in 0.0..200.0_f64) {
        for oversubscription in [false, true] {
            let small = tree.assign(pool, oversubscription);
            let large = tree.assign(pool + more, oversubscription);
            for (before, after) in small.groups.iter().zip(&large.groups) {
                prop_assert!(before.subtree_quota <= after.subtree_quota + 1e-9);
            }
        }
    }
}
