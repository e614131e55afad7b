//! A Negotiator's configuration acts on cycles, each a short story.

use super::governed::negotiate_by;
use super::world::World;
use crate::negotiator::Config;
use crate::pool::Event;
use classad::Expr;

fn world(config: Config) -> World {
    let mut world = World::new();
    for node in ["n1", "n2"] {
        world.node(node, 4, 0);
    }
    negotiate_by(&mut world, config);
    world.pool.apply(Event::Synced, world.now);
    world
}

fn pool_weight(world: &World) -> f64 {
    crate::decide::sharing::weight(&world.pool, &world.pool.at_work()[0], &classad::Env::at(0))
}

/// Which job has which slot.
fn claims(world: &World) -> Vec<(String, String)> {
    let claim = |slot: &crate::pool::Slot| (slot.name().to_string(), slot.claim().last.job.name.to_string());
    world.pool.slots().values().map(claim).collect()
}

/// A claim belongs to the submitter. When it is used for another job of the submitter, the negotiator is not asked.
#[test]
fn only_slots_and_jobs_within_the_constraints_are_matched() {
    let expr = |text: &str| Some(Expr::parse(text).unwrap());
    let mut world = world(Config {
        slot_constraint: expr("Machine == \"n2\""),
        job_constraint: expr("JobPrio >= 0 && Group isnt \"others\""),
        ..Config::default()
    });
    world.submit("ours", "alice", 1, |_| ());
    world.submit("low", "carol", 1, |job| job.priority = -1);
    world.submit("theirs", "bob", 1, |job| {
        job.attributes.insert("Group".to_owned(), "\"others\"".to_owned());
    });
    world.settle();
    assert_eq!(claims(&world), [("slot1_1@n2".to_owned(), "ours".to_owned())]);
}

#[test]
fn only_submitters_within_the_constraint_are_served() {
    let constraint = Expr::parse("Name isnt \"bob\" && IdleJobs > 1").unwrap();
    let mut world = world(Config { submitter_constraint: Some(constraint), ..Config::default() });
    for (name, owner, procs) in [("many", "alice", 2), ("other", "bob", 2), ("few", "carol", 1)] {
        world.submit(name, owner, procs, |_| ());
    }
    world.settle();
    let owners: std::collections::BTreeSet<String> = claims(&world).into_iter().map(|(_, job)| job).collect();
    assert_eq!(owners.into_iter().collect::<Vec<_>>(), ["many"]);
}

/// Whether a slot counts is decided by its own ad, whether it is claimed or free.
#[test]
fn slots_outside_the_constraint_do_not_count_in_the_size_of_the_pool() {
    let weight = |constraint: Option<&str>| {
        let mut world = world(Config {
            slot_poolsize_constraint: constraint.map(|text| Expr::parse(text).unwrap()),
            ..Config::default()
        });
        world.settle();
        world.submit("job", "alice", 1, |job| job.requirements = Some("Machine == \"n2\"".to_owned()));
        let before = pool_weight(&world);
        world.settle();
        assert_eq!(claims(&world).len(), 1);
        (before, pool_weight(&world))
    };
    assert_eq!(weight(None), (8.0, 8.0));
    assert_eq!(weight(Some("Machine == \"n1\"")), (4.0, 4.0));
    assert_eq!(weight(Some("Machine == \"n2\"")), (4.0, 4.0));
}

/// A group whose quota was lowered below its use may still preempt its own jobs, since its use does not grow. Another
/// group may not take what the group has, if the other group's quota leaves no room.
#[test]
fn a_group_above_its_quota_preempts_within_itself() {
    for (group, preempted) in [("g", 1), ("h", 0)] {
        let mut world = world(Config {
            preemption_requirements: Some(Expr::parse("true").unwrap()),
            consider_early_preemption: true,
            ..Config::default()
        });
        world.group("g", 8.0);
        world.group("h", 0.0);
        world.fate = |_| (7200, 0);
        world.submit("long", "alice", 8, |job| job.group = Some("g".into()));
        world.pass(100);
        assert_eq!(world.pool.slots().len(), 8);
        world.group("g", 4.0);
        world.submit("urgent", "bob", 1, |job| job.group = Some(group.into()));
        world.pass(100);
        let taken = world.pool.slots().values().filter(|slot| slot.claim().last.job.name == "urgent".into());
        assert_eq!(taken.count(), preempted, "{group}");
    }
}

/// PREEMPTION_REQUIREMENTS evicts a job for another user's job. One proc takes one slot, however long it waits for the
/// slot.
#[test]
fn a_proc_preempts_one_job_and_no_more() {
    for (requirements, preempted) in [("TARGET.Owner == \"bob\"", 1), ("TARGET.Owner == \"alice\"", 0)] {
        let mut world = world(Config {
            preemption_requirements: Some(Expr::parse(requirements).unwrap()),
            consider_early_preemption: true,
            ..Config::default()
        });
        let policy = crate::startd::config::understand("MAXJOBRETIREMENTTIME = 3600\n").config.unwrap();
        let mut startd = crate::pool::StartdConfig::default();
        policy.put_into(&mut startd);
        world.govern(startd, "retires");
        world.fate = |_| (7200, 0);
        world.submit("long", "alice", 8, |_| ());
        world.pass(10);
        world.submit("urgent", "bob", 1, |_| ());
        world.pass(300);
        let waiting = world.pool.slots().values().filter(|slot| slot.preemptor().is_some()).count();
        assert_eq!(waiting, preempted, "{requirements}");
    }
}
