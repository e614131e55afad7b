//! Groups in a cycle: their quotas, the quotas of groups around them, and the order of their turns.

use super::kit::{cycle, expr, jobs, rejections, single_cores, slot, submitter, weights};
use crate::negotiator::RejectReason::{GroupQuota, NoSlots, SubmitterLimit};
use crate::negotiator::groups::{GroupSpec, Quota, Tree};
use crate::negotiator::{Cycle, negotiate};

/// A pool of single cores; groups by name, static quota and usage of their own; submitters by name (whose
/// group follows from it), effective priority and jobs.
fn grouped(cores: usize, groups: &[(&str, f64, f64)], submitters: &[(&str, f64, u64)]) -> Cycle {
    let specs = groups.iter().map(|(name, quota, _)| GroupSpec {
        name: (*name).to_owned(),
        quota: Some(Quota::Static(*quota)),
        ..GroupSpec::default()
    });
    let tree = Tree::new(&specs.collect::<Vec<_>>());
    let usage: Vec<f64> = tree.groups().iter().map(|group| groups[group.spec].2).collect();
    let entries = submitters.iter().map(|(name, priority, count)| {
        let mut entry = submitter(name, *priority, &[jobs(*count)]);
        entry.group = tree.group_of(name);
        entry
    });
    let mut cycle = cycle(single_cores(cores), entries.collect());
    cycle.pool_weight += usage.iter().sum::<f64>();
    cycle.groups = tree.inputs(cycle.pool_weight, true, &usage);
    cycle
}

#[test]
fn quotas_limit_groups() {
    // "No more than twenty concurrent jobs are ever running from the physicists, and only ten from the chemists."
    let groups = [("physics", 20.0, 0.0), ("chemistry", 10.0, 0.0)];
    let users = [("physics.a", 1.0, 100), ("chemistry.b", 1.0, 100), ("c", 1.0, 100)];
    for (cores, expected) in [(30, [20.0, 10.0, 0.0]), (60, [20.0, 10.0, 30.0]), (35, [20.0, 10.0, 5.0])] {
        let cycle = grouped(cores, &groups, &users);
        assert_eq!(weights(&cycle, &negotiate(&cycle)), expected, "{cores}");
    }
}

#[test]
fn reasons() {
    let users = [("physics.a", 1.0, 100), ("x", 1.0, 100)];
    let outcome = negotiate(&grouped(30, &[("physics", 20.0, 0.0)], &users));
    assert_eq!(rejections(&outcome), [(0, 0, 80, GroupQuota), (1, 0, 90, NoSlots)]);
    let two = [("physics.a", 1.0, 100), ("physics.b", 1.0, 100)];
    let outcome = negotiate(&grouped(30, &[("physics", 20.0, 0.0)], &two));
    assert_eq!(rejections(&outcome)[0], (0, 0, 90, SubmitterLimit));
}

#[test]
fn a_group_divides_its_quota_by_priority() {
    let users = [("g.a", 10.0, 100), ("g.b", 20.0, 100), ("g.c", 40.0, 100), ("d", 10.0, 100)];
    let cycle = grouped(100, &[("g", 70.0, 0.0)], &users);
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [40.0, 20.0, 10.0, 30.0]);
}

#[test]
fn usage_counts_against_quotas() {
    // Each pair is the weight that the group uses, and the weight that it gets.
    for (used, expected) in [(0.0, 10.0), (4.0, 6.0), (9.5, 0.0), (10.0, 0.0), (15.0, 0.0)] {
        let mut cycle = grouped(20, &[("g", 10.0, used)], &[("g.a", 1.0, 100)]);
        for consider_preemption in [true, false] {
            cycle.config.consider_preemption = consider_preemption;
            assert_eq!(weights(&cycle, &negotiate(&cycle)), [expected], "{used}");
        }
    }
}

/// HTCondor gives a group of quota 5 one slot of weight 8, as it gives a submitter the first slot of a turn. In
/// Slotwright a quota is a promise.
#[test]
fn quotas_are_not_overshot() {
    let mut cycle = grouped(0, &[("g", 5.0, 0.0)], &[("g.a", 1.0, 100)]);
    cycle.slots = vec![slot(8), slot(8)];
    cycle.pool_weight = 16.0;
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [0.0]);
    cycle.groups[0].quota = 8.0;
    cycle.groups[0].subtree_quota = 8.0;
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [8.0]);
}

#[test]
fn fractions_of_quotas_count() {
    let mut cycle = grouped(5, &[("g", 2.5, 0.0)], &[("g.a", 1.0, 100)]);
    cycle.slots = vec![crate::negotiator::Candidate { weight: 0.5, ..slot(1) }; 10];
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [2.5]);
}

/// The quotas of groups around a group hold, even if the quotas inside add up to more.
#[test]
fn ancestors_limit_too() {
    let groups = [("p", 10.0, 1.0), ("p.hep", 8.0, 2.0), ("p.lep", 8.0, 0.0), ("p.hep.higgs", 100.0, 0.0)];
    let both = [("p.hep.a", 1.0, 100), ("p.lep.b", 1.0, 100)];
    let mut cycle = grouped(50, &groups[..3], &both);
    // The quota of 10 less the 1 and 2 in use leaves 7 for both. lep uses the smaller part of its quota and goes first.
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [0.0, 7.0]);
    cycle.config.strict_enforce_quota = false;
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [6.0, 8.0]);
    let deep = grouped(50, &groups, &[("p.hep.higgs.c", 1.0, 100)]);
    assert_eq!(weights(&deep, &negotiate(&deep)), [6.0]);
}

/// The group that uses the smallest part of its quota comes first, jobs of no group last. A group that is given nothing
/// has no turn.
#[test]
fn order_of_groups() {
    let groups = [("half", 10.0, 5.0), ("zero", 0.0, 0.0), ("fifth", 10.0, 2.0), ("none_yet", 1.0, 0.0)];
    let users =
        [("x", 0.5, 9), ("half.a", 1.0, 9), ("zero.b", 1.0, 9), ("fifth.c", 1.0, 9), ("none_yet.d", 1.0, 9)];
    let mut cycle = grouped(40, &groups, &users);
    assert_eq!(turns(&cycle), ["none_yet", "fifth", "half", "<none>"]);
    assert_eq!(rejections(&negotiate(&cycle)).iter().filter(|each| each.3 == GroupQuota).count(), 4);
    // By what each group was allocated; then by an expression that fails, which gives the order of the names, root first.
    cycle.config.group_sort_expr = Some(expr("GroupResourcesAllocated"));
    assert_eq!(turns(&cycle), ["none_yet", "<none>", "fifth", "half"]);
    cycle.config.group_sort_expr = Some(expr("Unknown"));
    assert_eq!(turns(&cycle), ["<none>", "fifth", "half", "none_yet"]);
}

/// The groups, in the order in which they divided pies.
fn turns(cycle: &Cycle) -> Vec<String> {
    let name = |group: Option<usize>| group.map_or("<none>", |group| &cycle.groups[group].name).to_owned();
    let outcome = negotiate(cycle);
    let mut order: Vec<String> = outcome.stats.pies.iter().map(|pie| name(pie.group)).collect();
    order.dedup();
    order
}

/// Without preemption, a group that has its quota gets no pie at all, and neither do members without jobs.
#[test]
fn without_preemption_groups_stop_at_their_quota() {
    let mut cycle = grouped(20, &[("g", 10.0, 10.0)], &[("g.a", 1.0, 100)]);
    cycle.config.consider_preemption = false;
    let outcome = negotiate(&cycle);
    assert!(outcome.stats.pies.is_empty());
    assert_eq!(rejections(&outcome), [(0, 0, 100, GroupQuota)]);
}

/// An index beyond the groups counts as no group, and a tree with a loop does not hang.
#[test]
fn nonsense_is_survived() {
    let mut cycle = grouped(10, &[("a", 5.0, 0.0), ("b", 5.0, 0.0)], &[("a.x", 1.0, 100), ("y", 1.0, 100)]);
    cycle.submitters[1].group = Some(99);
    cycle.groups[0].parent = Some(1);
    cycle.groups[1].parent = Some(0);
    cycle.groups[0].quota = f64::NAN;
    let outcome = negotiate(&cycle);
    assert!(outcome.matches.len() <= 10);
}
