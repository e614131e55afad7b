//! Knobs that change which slots jobs get, and what groups request.

use super::kit::{cycle, expr, jobs, jobs_with, rejections, slot_with, slots, submitter, weights};
use crate::negotiator::groups::{GroupSpec, Quota, Tree};
use crate::negotiator::{Candidate, Config, Cycle, RejectReason, Request, negotiate};

/// A partitionable slot of this many cores, with 512 MiB for each.
fn pslot(cpus: i64) -> Candidate {
    let memory = cpus * 512;
    slot_with(
        cpus,
        &format!(
            "PartitionableSlot = true\nMemory = {memory}\nDisk = 1000000\nSlotWeight = Cpus\n\
             Requirements = TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory"
        ),
    )
}

fn wanting(count: u64, memory: i64) -> Request {
    jobs_with(count, &format!("RequestMemory = {memory}\nRequestDisk = 100"))
}

#[test]
fn a_jobs_rank_may_be_left_out() {
    let slots_liked =
        || [1, 3, 2].map(|liked| slot_with(1, &format!("Liked = {liked}\nPost = {}", 5 - liked)));
    for (ignore, expected) in [(false, [1, 2, 0]), (true, [0, 2, 1])] {
        let request = jobs_with(3, "Rank = TARGET.Liked");
        let mut cycle = cycle(slots_liked().to_vec(), vec![submitter("a", 1.0, &[request])]);
        cycle.config = Config {
            ignore_job_ranks: ignore,
            pre_job_rank: None,
            post_job_rank: Some(expr("MY.Post")),
            ..Config::default()
        };
        assert_eq!(slots(&negotiate(&cycle)), expected, "{ignore}");
    }
}

/// "The negotiator tries to pack as many jobs as possible on each machine before moving on to the next."
#[test]
fn depth_first_fills_one_machine_after_the_other() {
    // Slots with most cores come first, so that by rank alone the jobs alternate between the machines.
    for (depth_first, caching, expected) in
        [(false, true, [0, 1, 0, 1, 0]), (true, true, [0, 0, 0, 0, 1]), (true, false, [0, 0, 0, 0, 1])]
    {
        let request = wanting(5, 128);
        let mut cycle = cycle(vec![pslot(4), pslot(4)], vec![submitter("a", 1.0, &[request])]);
        cycle.config = Config {
            depth_first,
            match_list_caching: caching,
            pre_job_rank: Some(expr("MY.Cpus")),
            post_job_rank: None,
            ..Config::default()
        };
        assert_eq!(slots(&negotiate(&cycle)), expected, "{depth_first} {caching}");
    }
}

/// As many jobs as fit: by memory, two. The others go to the next machine, and nothing is matched twice.
#[test]
fn depth_first_stops_at_what_fits() {
    let mut cycle = cycle(vec![pslot(4), pslot(4)], vec![submitter("a", 1.0, &[wanting(5, 1024)])]);
    cycle.config.depth_first = true;
    let outcome = negotiate(&cycle);
    assert_eq!(slots(&outcome), [0, 0, 1, 1]);
    assert_eq!(rejections(&outcome), [(0, 0, 1, RejectReason::NoMatch)]);
}

/// The end of a submitter's share also ends the filling of a machine.
#[test]
fn depth_first_takes_no_more_than_a_share() {
    let users = vec![submitter("a", 1.0, &[wanting(9, 128)]), submitter("b", 1.0, &[wanting(9, 128)])];
    let mut cycle = cycle(vec![pslot(4), pslot(4)], users);
    cycle.config.depth_first = true;
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [4.0, 4.0]);
}

/// Two groups that accept surplus, and a third that leaves its quota idle. The jobs of one group are wide.
fn wide_and_narrow(config: Config) -> Cycle {
    let spec = |name: &str, quota| GroupSpec {
        name: name.to_owned(),
        quota: Some(Quota::Static(quota)),
        accept_surplus: true,
        ..GroupSpec::default()
    };
    let tree = Tree::new(&[spec("idle", 12.0), spec("narrow", 2.0), spec("wide", 2.0)]);
    let mut users = vec![
        submitter("wide.a", 1.0, &[jobs_with(2, "RequestCpus = 4")]),
        submitter("narrow.b", 1.0, &[jobs(20)]),
    ];
    for user in &mut users {
        user.group = tree.group_of(&user.name);
    }
    let mut cycle = cycle(vec![pslot(16)], users);
    cycle.groups = tree.inputs(16.0, true, &[0.0; 3]);
    cycle.config = config;
    cycle
}

/// The request of a group is the weight of its jobs, or their number.
#[test]
fn demand_is_weighed_or_counted() {
    let requested = |use_weighted_demand| {
        let config = Config { use_weighted_demand, ..Config::default() };
        let cycle = wide_and_narrow(config);
        let given = negotiate(&cycle).allocations.unwrap();
        // In the order of the tree: idle, narrow, wide.
        given.groups.iter().map(|group| group.requested).collect::<Vec<_>>()
    };
    assert_eq!(requested(true), [0.0, 20.0, 8.0]);
    assert_eq!(requested(false), [0.0, 20.0, 2.0]);
}

/// Running jobs are part of the request. If two entries have the same name, they are counted once.
#[test]
fn without_weights_what_runs_is_counted_once() {
    let config = Config { use_weighted_demand: false, ..Config::default() };
    let mut cycle = wide_and_narrow(config);
    cycle.submitters[0].running = 3;
    cycle.submitters[0].weighted_used = 12.0;
    cycle.submitters.push(cycle.submitters[0].clone());
    let wide = cycle.submitters[0].group.unwrap();
    cycle.groups[wide].weighted_used = 12.0;
    let given = negotiate(&cycle).allocations.unwrap();
    assert!((given.groups[wide].requested - (2.0 + 2.0 + 3.0)).abs() < f64::EPSILON, "{given:?}");
}

/// Without weights each match costs 1, and a quota counts whole slots.
#[test]
fn without_weights_slots_are_counted() {
    let tree = Tree::new(&[GroupSpec {
        name: "g".to_owned(),
        quota: Some(Quota::Static(2.5)),
        ..GroupSpec::default()
    }]);
    let mut user = submitter("g.a", 1.0, &[jobs(9)]);
    user.group = tree.group_of("g.a");
    let slots: Vec<Candidate> = (0..8).map(|_| slot_with(4, "")).collect();
    for (use_slot_weights, expected) in [(true, 0), (false, 2)] {
        let mut cycle = cycle(slots.clone(), vec![user.clone()]);
        cycle.pool_weight = if use_slot_weights { 32.0 } else { 8.0 };
        cycle.groups = tree.inputs(cycle.pool_weight, true, &[0.0]);
        cycle.config.use_slot_weights = use_slot_weights;
        assert_eq!(negotiate(&cycle).matches.len(), expected, "{use_slot_weights}");
    }
}
