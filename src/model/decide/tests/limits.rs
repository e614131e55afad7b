//! Concurrency limits, each a short story: a limit is never exceeded, whenever an operator dies.

use super::world::World;
use crate::pool::limits::Wants;
use crate::pool::{Event, LimitObject};

pub(super) fn set(world: &mut World, name: &str, limit: Option<f64>, limit_of_each: Option<f64>) {
    let limit = LimitObject {
        object: name.into(),
        generation: 1,
        name: name.into(),
        limit,
        limit_of_each,
        problems: Vec::new(),
    };
    world.sees(Event::Limit(limit));
}

/// How much claims hold of a limit, by the objects in the API server.
fn in_use(world: &World, name: &str) -> f64 {
    world.slots.values().map(|(_, claim)| claim.limits.amount(name)).sum()
}

fn running(world: &World, job: &str) -> usize {
    world.pool.jobs().values().filter(|c| &*c.key.name == job).map(|c| c.active.len()).sum()
}

#[track_caller]
fn all_done(world: &World, procs: usize) {
    assert_eq!(world.runs.len(), procs);
    assert!(world.runs.values().all(|runs| *runs == 1), "{:?}", world.runs);
}

/// "A maximum of 3 jobs declaring that they need this resource may be executed concurrently."
#[test]
fn three_licenses_run_three_jobs_though_the_operator_dies_each_second() {
    for dies in [false, true] {
        let mut world = World::new();
        world.node("n1", 8, 0);
        world.node("n2", 8, 0);
        set(&mut world, "xsw", Some(3.0), None);
        world.fate = |name| (5 + name.len() as u64 % 3, 0);
        world.submit("licensed", "alice", 8, |job| job.limits = vec!["XSW".to_owned()]);
        world.submit("more", "bob", 4, |job| job.limits = vec!["xsw:1.5".to_owned()]);
        world.submit("free", "bob", 4, |_| {});
        let mut most: f64 = 0.0;
        for _ in 0..900 {
            world.pass(1);
            most = most.max(in_use(&world, "xsw"));
            assert!(in_use(&world, "xsw") <= 3.0, "{}", in_use(&world, "xsw"));
            if dies {
                world.restart();
            }
        }
        assert!(most >= 3.0, "nobody waits for what is there: {most}");
        all_done(&world, 16);
        assert_eq!(world.pool.holdings().book().in_use().count(), 0, "all of it is given back");
    }
}

#[test]
fn an_expression_is_asked_for_the_machine_and_a_set_has_a_limit_for_each() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world.node("n2", 8, 0);
    set(&mut world, "host", None, Some(2.0));
    world.submit("near", "alice", 10, |job| {
        job.limits_expr = Some("strcat(\"host.\", TARGET.Machine)".to_owned());
    });
    world.pass(10);
    assert_eq!((in_use(&world, "host.n1"), in_use(&world, "host.n2")), (2.0, 2.0));
    for _ in 0..600 {
        world.pass(1);
        assert!(in_use(&world, "host.n1") <= 2.0 && in_use(&world, "host.n2") <= 2.0);
    }
    all_done(&world, 10);
}

#[test]
fn a_claim_used_again_takes_what_its_next_job_wants_and_no_more_than_there_is() {
    let mut world = World::new();
    world.node("n1", 2, 0);
    set(&mut world, "xsw", Some(1.0), None);
    world.fate = |name| (if name.starts_with("first") { 5 } else { 20 }, 0);
    world.submit("holder", "alice", 1, |job| job.limits = vec!["xsw".to_owned()]);
    world.submit("first", "alice", 1, |_| {});
    world.submit("waits", "alice", 1, |job| job.limits = vec!["xsw".to_owned()]);
    world.submit("last", "alice", 1, |_| {});
    for _ in 0..200 {
        world.pass(1);
        assert!(in_use(&world, "xsw") <= 1.0);
        assert!(running(&world, "holder") + running(&world, "waits") <= 1);
    }
    all_done(&world, 4);
}

#[test]
fn lowering_a_limit_ends_nobody_and_bars_the_next() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world.fate = |_| (60, 0);
    set(&mut world, "xsw", Some(4.0), None);
    world.submit("licensed", "alice", 8, |job| job.limits = vec!["xsw".to_owned()]);
    world.pass(30);
    assert_eq!(running(&world, "licensed"), 4);
    set(&mut world, "xsw", Some(1.0), None);
    world.pass(20);
    assert_eq!(running(&world, "licensed"), 4, "nobody is evicted");
    world.pass(60);
    assert_eq!((running(&world, "licensed"), in_use(&world, "xsw")), (1, 1.0));
    set(&mut world, "xsw", Some(2.0), None);
    world.pass(30);
    assert_eq!(running(&world, "licensed"), 2, "a raised limit is used in the next cycle");
}

#[test]
fn what_nobody_set_a_limit_for_is_as_good_as_not_limited() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world.submit("free", "alice", 8, |job| job.limits = vec!["anything:1000".to_owned()]);
    world.pass(10);
    assert_eq!(running(&world, "free"), 8);
    let held = Wants::parse("anything:1000");
    assert!(world.slots.values().all(|(_, claim)| claim.limits == held), "it is written down all the same");
}

#[test]
fn procs_that_wait_for_a_limit_are_counted() {
    let mut world = World::new();
    world.node("n1", 8, 0);
    world.fate = |_| (600, 0);
    set(&mut world, "xsw", Some(2.0), None);
    world.submit("licensed", "alice", 6, |job| job.limits = vec!["xsw".to_owned()]);
    world.pass(120);
    assert_eq!(world.pool.barred().get("xsw"), Some(&4));
}
