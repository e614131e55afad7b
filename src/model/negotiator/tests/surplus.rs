//! Surplus: the manual's examples in cycles, rounds, floors, and properties of every allocation.

use proptest::prelude::*;

use super::kit::{cycle, expr, jobs, jobs_with, single_cores, slot, submitter, weights};
use crate::negotiator::groups::{GroupSpec, Quota, Tree, sum_up};
use crate::negotiator::{Allocations, Config, Cycle, Demand, allocation::plan, negotiate};

/// A group's name, static quota, and whether it accepts surplus.
type Group<'a> = (&'a str, f64, bool);

fn tree(groups: &[Group<'_>]) -> Tree {
    let spec = |(name, quota, accept_surplus): &Group<'_>| GroupSpec {
        name: (*name).to_owned(),
        quota: Some(Quota::Static(*quota)),
        accept_surplus: *accept_surplus,
        autoregroup: false,
    };
    Tree::new(&groups.iter().map(spec).collect::<Vec<_>>())
}

/// A pool of single cores, with submitters by name and number of jobs.
fn pool(cores: usize, groups: &[Group<'_>], users: &[(&str, u64)]) -> Cycle {
    let tree = tree(groups);
    let entries = users.iter().map(|(name, count)| {
        let mut entry = submitter(name, 1.0, &[jobs(*count)]);
        entry.group = tree.group_of(name);
        entry
    });
    let mut cycle = cycle(single_cores(cores), entries.collect());
    cycle.groups = tree.inputs(cycle.pool_weight, false, &[]);
    cycle
}

fn got(cycle: &Cycle) -> Vec<f64> {
    weights(cycle, &negotiate(cycle))
}

/// "group_physics.lep and group_physics.hep are allowed to exceed their quota of 15 and 5, but their sum cannot exceed 20, for
/// that is their parent's quota. If the group_physics had GROUP_ACCEPT_SURPLUS set to True, then either [...] would not be
/// limited by quota."
#[test]
fn surplus_of_the_manual() {
    let groups = |physics: bool| {
        [
            ("physics", 20.0, physics),
            ("physics.hep", 15.0, true),
            ("physics.lep", 5.0, true),
            ("chemistry", 10.0, false),
        ]
    };
    let alone = [("physics.hep.a", 100)];
    assert_eq!(got(&pool(30, &groups(false), &alone)), [20.0]);
    assert_eq!(got(&pool(30, &groups(true), &alone)), [30.0]);
    let all = [("physics.hep.a", 100), ("physics.lep.b", 100), ("chemistry.c", 4)];
    assert_eq!(got(&pool(30, &groups(false), &all)), [15.0, 5.0, 4.0]);
    // The six that chemistry leaves are divided in the ratio of three to one.
    let divided = got(&pool(30, &groups(true), &all));
    super::assert_near(divided.iter().sum::<f64>(), 30.0);
    assert!((19.0..=20.0).contains(&divided[0]) && (6.0..=7.0).contains(&divided[1]), "{divided:?}");
}

/// The part of a group's quota that nobody in the group wants goes to other groups, and to jobs of no group, in
/// proportion to their quotas.
#[test]
fn surplus_is_divided_by_quota() {
    let groups = [("a", 30.0, true), ("b", 20.0, true), ("c", 50.0, true)];
    let users = [("a.u", 100), ("b.u", 100), ("c.u", 10)];
    assert_eq!(got(&pool(100, &groups, &users)), [54.0, 36.0, 10.0]);
    // If no group accepts surplus, jobs of no group get it.
    let proud = groups.map(|(name, quota, _)| (name, quota, false));
    let users = [("a.u", 100), ("b.u", 100), ("c.u", 10), ("u", 100)];
    assert_eq!(got(&pool(100, &proud, &users)), [30.0, 20.0, 10.0, 40.0]);
    // The quota of jobs of no group is 0 here, so that they come after groups with a quota.
    assert_eq!(got(&pool(100, &groups, &users)), [54.0, 36.0, 10.0, 0.0]);
}

/// A group without a quota has what is left when all groups with a quota are served.
#[test]
fn groups_without_a_quota_come_after_the_others() {
    let groups = [("a", 10.0, true), ("z", 0.0, true), ("y", 0.0, true)];
    let users = [("a.u", 15), ("z.u", 100), ("y.u", 100)];
    assert_eq!(got(&pool(10, &groups, &users)), [10.0, 0.0, 0.0]);
    assert_eq!(got(&pool(35, &groups, &users)), [15.0, 10.0, 10.0]);
}

/// If no slot accepts a group's jobs, the group's allocation goes to others in the next round.
#[test]
fn a_second_round_deals_out_what_the_first_gave_in_vain() {
    let groups = [("a", 10.0, true), ("b", 10.0, true)];
    let mut cycle = pool(20, &groups, &[("a.u", 100), ("b.u", 100)]);
    cycle.submitters[0].requests = vec![jobs_with(100, "Requirements = false")];
    assert_eq!(got(&cycle), [0.0, 20.0]);
    cycle.config.group_quota_max_allocation_rounds = 1;
    assert_eq!(got(&cycle), [0.0, 10.0]);
}

/// "Any groups with autoregroup are allowed to also negotiate in root group": last, together with all others, by
/// priority.
#[test]
fn autoregroup_lets_groups_have_what_is_left() {
    let mut cycle =
        pool(30, &[("a", 10.0, false), ("b", 10.0, false)], &[("a.u", 100), ("b.u", 2), ("u", 1)]);
    assert_eq!(got(&cycle), [10.0, 2.0, 1.0]);
    cycle.groups[0].autoregroup = true;
    let outcome = negotiate(&cycle);
    assert_eq!(weights(&cycle, &outcome), [27.0, 2.0, 1.0]);
    assert_eq!(outcome.stats.pies.last().unwrap().group, None);
    let regrouped = outcome.matches.iter().filter(|each| each.regrouped);
    assert_eq!(regrouped.clone().count(), 17, "what a.u had in its own group's turn is not");
    assert!(regrouped.map(|each| each.submitter).all(|submitter| submitter == 0));
}

/// `SubmitterAutoregroup` is "True if candidate job is negotiated via autoregroup"; in the group's own turn it is
/// false.
#[test]
fn jobs_see_whether_they_are_regrouped() {
    for (regrouped, expected) in [("False", 10.0), ("True", 17.0)] {
        let mut cycle = pool(27, &[("a", 10.0, false)], &[("a.u", 100)]);
        cycle.groups[0].autoregroup = true;
        for slot in &mut cycle.slots {
            let said = format!("TARGET.SubmitterAutoregroup =?= {regrouped}");
            slot.ad.insert("Requirements", expr(&said));
        }
        cycle.slots.truncate(if regrouped == "True" { 17 } else { 27 });
        assert_eq!(got(&cycle), [expected], "{regrouped}");
    }
}

/// "setting the physics quota to a number so large that it cannot ever be met": physics goes first and takes everything
/// that it wants.
#[test]
fn strict_priority_by_huge_quotas() {
    let tree = tree(&[("physics", 1e6, false), ("chemistry", 1e5, false)]);
    let users = |physics| [("physics.a", physics), ("chemistry.b", 100)];
    let mut cycle = pool(30, &[("physics", 1e6, false), ("chemistry", 1e5, false)], &users(20));
    cycle.config.allow_quota_oversubscription = true;
    cycle.groups = tree.inputs(30.0, true, &[20.0, 10.0]);
    cycle.pool_weight = 60.0;
    assert_eq!(got(&cycle), [20.0, 10.0]);
    cycle.submitters[0].requests = vec![jobs(100)];
    assert_eq!(got(&cycle), [30.0, 0.0]);
}

/// With a rate, competing groups take turns, and neither starves.
#[test]
fn round_robin_shares_slots_that_two_groups_want() {
    let groups = [("a", 10.0, false), ("b", 10.0, false)];
    let mut cycle = pool(20, &groups, &[("a.u", 100), ("b.u", 100)]);
    for slot in cycle.slots.iter_mut().skip(10) {
        slot.ad.insert("Requirements", expr("false"));
    }
    assert_eq!(got(&cycle), [10.0, 0.0]);
    cycle.config.group_quota_round_robin_rate = 1.0;
    assert_eq!(got(&cycle), [5.0, 5.0]);
    // Jobs of no group still come last, and with autoregroup all jobs of such groups.
    cycle.groups[0].autoregroup = true;
    assert_eq!(got(&cycle), [5.0, 5.0]);
}

#[test]
fn floors_come_before_shares_and_groups_bound_them() {
    let mut cycle =
        cycle(single_cores(10), vec![submitter("a", 1.0, &[jobs(99)]), submitter("b", 1e6, &[jobs(99)])]);
    // One slot goes to the second submitter, because the first match may exceed a share above zero.
    assert_eq!(got(&cycle), [9.0, 1.0]);
    cycle.submitters[1].floor = Some(4.0);
    assert_eq!(got(&cycle), [6.0, 4.0]);
    // Slots in use count: no submitter is raised above its floor.
    cycle.submitters[1].weighted_used = 3.0;
    cycle.pool_weight = 13.0;
    assert_eq!(got(&cycle), [9.0, 1.0]);
    let mut grouped = pool(10, &[("a", 3.0, false)], &[("a.u", 99), ("b", 99)]);
    grouped.submitters[0].floor = Some(8.0);
    assert_eq!(got(&grouped), [3.0, 7.0]);
}

/// Groups request the weight of their jobs' CPUs. The outcome tells what they were given.
#[test]
fn the_outcome_tells_what_groups_were_given() {
    let mut cycle = pool(0, &[("a", 8.0, true), ("b", 8.0, false)], &[("a.u", 0), ("b.u", 1)]);
    cycle.slots = vec![slot(4); 4];
    cycle.pool_weight = 16.0;
    cycle.submitters[0].requests = vec![jobs_with(3, "RequestCpus = 4")];
    cycle.groups = tree(&[("a", 8.0, true), ("b", 8.0, false)]).inputs(16.0, false, &[]);
    let outcome = negotiate(&cycle);
    let given = outcome.allocations.unwrap();
    assert_eq!((given.groups[0].requested, given.groups[0].allocated), (12.0, 12.0));
    assert_eq!((given.groups[0].limit, given.groups[0].subtree_limit), (12.0, 12.0));
    assert_eq!(
        (given.groups[1].requested, given.groups[1].allocated, given.groups[1].limit),
        (1.0, 1.0, 8.0)
    );
}

prop_compose! {
    fn any_case()(
        groups in prop::collection::vec((any::<bool>(), 0.0..1.0_f64, any::<u16>(), any::<bool>(), 0.0..60.0_f64), 1..14),
        pool in 0.0..200.0_f64, root in 0.0..60.0_f64, use_slot_weights in any::<bool>(),
    ) -> (Tree, Cycle, Demand) {
        let (mut names, mut specs) = (Vec::<String>::new(), Vec::new());
        for (index, (fixed, amount, parent, accept_surplus, _)) in groups.iter().enumerate() {
            let parent = names.get(usize::from(*parent) % (index + 1)).map(|name| format!("{name}."));
            let name = format!("{}g{index}", parent.unwrap_or_default());
            names.push(name.clone());
            let quota = Some(if *fixed { Quota::Static(amount * 60.0) } else { Quota::Dynamic(*amount) });
            specs.push(GroupSpec { name, quota, accept_surplus: *accept_surplus, autoregroup: false });
        }
        let whole = |amount: f64| if use_slot_weights { amount } else { amount.floor() };
        let tree = Tree::new(&specs);
        let asks = tree.groups().iter().map(|group| whole(groups[group.spec].4));
        let demand = Demand { root: whole(root), groups: asks.collect() };
        let pool_weight = whole(pool);
        let config = Config { use_slot_weights, ..Config::default() };
        let inputs = tree.inputs(pool_weight, false, &[]);
        (tree, Cycle { config, groups: inputs, pool_weight, ..Cycle::default() }, demand)
    }
}

/// For each group, the sum of a value over the group and all groups inside it.
fn subtree(tree: &Tree, given: &Allocations, value: impl Fn(usize) -> f64) -> Vec<f64> {
    let parents: Vec<Option<usize>> = tree.groups().iter().map(|group| group.parent).collect();
    sum_up(&parents, &(0..given.groups.len()).map(value).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No group is given more than it requests, and all together no more than the pool. A group that accepts no surplus
    /// is given no more than its quota, together with all groups inside it.
    #[test]
    fn allocations_fit((tree, cycle, demand) in any_case()) {
        let (given, _) = plan(&cycle, &demand);
        let total = given.root.allocated + given.groups.iter().map(|group| group.allocated).sum::<f64>();
        prop_assert!(total <= cycle.pool_weight + 1e-6);
        prop_assert!(given.root.allocated <= demand.root + 1e-6);
        let below = subtree(&tree, &given, |group| given.groups[group].allocated);
        for (place, (group, below)) in given.groups.iter().zip(below).enumerate() {
            prop_assert!(group.allocated <= demand.groups[place] + 1e-6);
            prop_assert!(tree.groups()[place].accept_surplus || below <= group.subtree_quota + 1e-6);
            prop_assert!(below <= group.subtree_limit + 1e-6);
        }
    }

    /// Demand that fits into a group's own quota is met; without weights, up to a fraction of a slot.
    #[test]
    fn demand_that_fits_is_met((_, cycle, demand) in any_case()) {
        let (given, _) = plan(&cycle, &demand);
        let least = if cycle.config.use_slot_weights { 1e-6 } else { 1.0 };
        for (group, asked) in given.groups.iter().zip(&demand.groups) {
            prop_assert!(group.allocated >= asked.min(group.quota) - least);
        }
        prop_assert!(given.root.allocated >= demand.root.min(given.root.quota) - least);
    }

    /// Nothing of the pool is left while a group asks for more that surplus can reach: the root, or a group that
    /// accepts surplus inside groups that all accept it.
    #[test]
    fn no_surplus_is_left_while_somebody_may_have_it((tree, cycle, demand) in any_case()) {
        let (given, _) = plan(&cycle, &demand);
        let total = given.root.allocated + given.groups.iter().map(|group| group.allocated).sum::<f64>();
        let least = if cycle.config.use_slot_weights { 1e-6 } else { 1.0 - 1e-6 };
        let left = cycle.pool_weight - total >= least;
        prop_assert!(!left || demand.root - given.root.allocated <= 1e-6);
        for (place, group) in given.groups.iter().enumerate() {
            let mut above = Some(place);
            let mut reached = true;
            while let Some(group) = above {
                reached &= tree.groups()[group].accept_surplus;
                above = tree.groups()[group].parent;
            }
            let asks = demand.groups[place] - group.allocated > 1e-6;
            prop_assert!(!(left && reached && asks), "{left} {group:?}");
        }
    }
}
